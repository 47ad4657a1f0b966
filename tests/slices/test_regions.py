"""Regions of features: a group of errors is found and so are new inputs like it; chance is not confirmed."""

import numpy as np
import pytest

from weakspot.slices import (
    ErrorRegion,
    SliceData,
    Trait,
    View,
    doubtful_labels,
    error_regions,
    first_half,
    ranked_slices,
)
from weakspot.slices.gains import likelihood_gain
from weakspot.slices.regions import NEAREST, likeness_traits

IDS = [f"i{number}" for number in range(1200)]


def planted(seed=0, *, effect=6.0, count=1200):
    """Features of three classes; a tenth of the inputs is moved in one direction, and most of these are wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    odd = rng.random(count) < 0.1
    values = rng.normal(size=(count, 12)) + 3 * np.eye(12)[labels]
    values[odd, 7] += effect
    wrong = rng.random(count) < np.where(odd, 0.8, 0.08)
    return View("features", values.astype(np.float32)), wrong, odd, labels


def test_a_group_of_errors_is_a_region_that_new_inputs_belong_to():
    view, wrong, odd, labels = planted()
    data = SliceData(wrong, first_half(IDS), labels, views=(view,))
    first, *others = ranked_slices([Trait("speed", np.random.default_rng(1).random(1200))], data)
    assert first.kind == "features" and first.confirmed and first.region is not None
    assert first.inside.low > first.outside.high
    assert 2 * (first.members & odd).sum() / (first.members.sum() + odd.sum()) > 0.9
    assert not any(each.confirmed for each in others)
    new, _, new_odd, _ = planted(9)
    held = first.rule.holds({"features 1": first.region.likeness(new.values)})
    assert (held & new_odd).sum() > 0.7 * new_odd.sum() and (held & new_odd).sum() > 0.9 * held.sum()


def test_a_rule_that_can_be_read_comes_before_a_region_of_the_same_inputs():
    view, wrong, odd, labels = planted()
    rng = np.random.default_rng(2)
    light = Trait("light", np.where(odd, rng.uniform(0, 0.2, 1200), rng.uniform(0.3, 1, 1200)), low="dark")
    first, *_ = ranked_slices([light], SliceData(wrong, first_half(IDS), labels, views=(view,)))
    assert first.kind == "trait" and "light < " in first.rule.text


def test_shuffled_errors_give_no_confirmed_region():
    shown = 0
    for seed in range(20):
        view, wrong, _, labels = planted(seed, count=600)
        data = SliceData(np.random.default_rng(seed).permutation(wrong), first_half(IDS[:600]), labels, views=(view,))
        shown += sum(each.confirmed for each in ranked_slices([], data))
    assert shown <= 4


def test_the_threshold_is_the_best_of_all():
    view, wrong, _, _ = planted(3)
    every = np.ones(1200, dtype=bool)
    for region in error_regions(view, wrong, every)[:5]:
        likeness = region.likeness(view.values)
        gains = {}
        for least in np.unique(likeness[likeness >= NEAREST]):
            held = likeness >= least
            if held.sum() >= 10:
                size, errors, expected = ([float(value)] for value in (held.sum(), wrong[held].sum(),
                                                                       held.sum() * wrong.mean()))  # fmt: skip
                gains[float(least)] = likelihood_gain(*map(np.array, (size, errors, expected)), 1200, wrong.sum())[0]
        assert gains[min(gains, key=lambda one: abs(one - region.least))] == pytest.approx(
            max(gains.values()), rel=0.02
        )


def test_likeness_is_0_for_correct_inputs_on_average_and_the_same_one_by_one_and_together():
    view, wrong, _, _ = planted(4)
    regions = error_regions(view, wrong, np.ones(1200, dtype=bool))
    traits = likeness_traits(regions, view.values)
    assert [trait.name for trait in traits[:2]] == ["features 1", "features 2"]
    for region, trait in zip(regions, traits, strict=True):
        assert region.likeness(view.values)[~wrong].mean() == pytest.approx(0, abs=1e-4)
        assert np.abs(trait.column - region.likeness(view.values)).max() < 1e-5


@pytest.mark.parametrize("values", [np.zeros((200, 4)), np.ones((200, 1)), np.zeros((200, 0))])
def test_a_view_that_says_nothing_gives_no_region(values):
    wrong = np.arange(200) % 4 == 0
    assert error_regions(View("features", values), wrong, np.ones(200, dtype=bool)) == []


def test_few_errors_give_no_region():
    view, _, _, _ = planted(5)
    assert error_regions(view, np.arange(1200) < 15, np.ones(1200, dtype=bool)) == []
    assert isinstance(ErrorRegion("features", np.ones(2), 0.0, 0.5), ErrorRegion)


def test_labels_that_were_changed_are_doubtful_and_others_are_not():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 800)
    features = rng.normal(size=(800, 20)) + 30 * np.eye(20)[truth]
    changed = rng.random(800) < 0.05
    labels = np.where(changed, (truth + 1) % 4, truth)
    flags, near = doubtful_labels(features, labels, truth)
    assert flags[changed].mean() > 0.7 and not flags[~changed].any()
    assert np.isfinite(near[changed]).all() and np.isnan(near[~changed]).all()


def test_no_errors_no_features_and_few_inputs_have_no_doubtful_labels():
    ones = np.ones(30, dtype=np.int64)
    assert not doubtful_labels(np.zeros((30, 3)), ones, ones)[0].any()
    assert not doubtful_labels(np.zeros((30, 0)), ones, 1 - ones)[0].any()
    assert not doubtful_labels(np.zeros((8, 3)), ones[:8], 1 - ones[:8])[0].any()
