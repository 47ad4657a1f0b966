"""The tests behind "confirmed": exact p-values, halves, corrections, and how often chance is confirmed."""

from itertools import permutations, product

import numpy as np
import pytest

from weakspot.slices import (
    SliceData,
    SliceSearch,
    Trait,
    chance_corrected_agreement,
    contrasts,
    excess_p_value,
    first_half,
    grouped_p_value,
    holm,
    ranked_slices,
)


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_p_value_counts_every_way_to_spread_the_errors(seed):
    rng = np.random.default_rng(seed)
    strata = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    members, wrong = rng.random(8) < 0.5, rng.random(8) < 0.5
    within = [sorted(set(permutations(wrong[strata == number].tolist()))) for number in range(3)]
    spread = [np.concatenate(ways) for ways in product(*within)]
    expected = np.mean([(ways & members).sum() >= (wrong & members).sum() for ways in spread])
    assert excess_p_value(members, wrong, strata) == pytest.approx(expected)


def test_no_inputs_prove_nothing():
    nobody = np.zeros(0, dtype=bool)
    assert excess_p_value(nobody, nobody) == 1.0
    assert grouped_p_value(np.zeros(4, dtype=bool), np.ones(4, dtype=bool), np.arange(4)) == 1.0


def test_many_alike_frames_count_as_one():
    """One film of 40 frames, all dark and wrong, is one observation, not 40."""
    groups = np.concatenate([np.zeros(40, dtype=np.int64), np.arange(1, 101)])
    film = groups == 0
    assert excess_p_value(film, film) < 1e-20
    assert grouped_p_value(film, film, groups) == 1.0
    many = np.repeat(np.arange(40), 5)
    rng = np.random.default_rng(0)
    dark = many < 15
    wrong = (rng.random(40) < np.where(np.arange(40) < 15, 0.9, 0.1))[many]
    assert excess_p_value(dark, wrong) < grouped_p_value(dark, wrong, many) < 0.01


def test_grouped_tests_keep_their_level():
    rng = np.random.default_rng(1)
    groups, rejected = np.repeat(np.arange(60), 10), 0
    for _ in range(400):
        members = (rng.random(60) < 0.4)[groups]
        wrong = (rng.random(60) < 0.3)[groups]
        rejected += grouped_p_value(members, wrong, groups) <= 0.05
    assert rejected <= 400 * 0.08


def test_halves_depend_on_names_alone_and_keep_groups_together():
    names = [f"track-{number % 50}" for number in range(500)]
    half = first_half(names, seed=3)
    order = np.random.default_rng(0).permutation(500)
    assert first_half([names[place] for place in order], seed=3).tolist() == half[order].tolist()
    assert all(len(set(half[number::50].tolist())) == 1 for number in range(50))
    assert 150 < half.sum() < 350
    assert first_half(names, seed=4).tolist() != half.tolist()


def test_holm_is_never_below_the_largest_before_it():
    assert holm([]).tolist() == []
    assert holm([0.5, 0.001, 0.02]).tolist() == pytest.approx([0.5, 0.003, 0.04])


def test_agreement_by_chance_is_zero():
    truth = np.repeat(["a", "b"], 50)
    assert chance_corrected_agreement(truth, np.repeat(["a"], 100)) == 0
    assert chance_corrected_agreement(truth, truth) == 1


def planted(count, seed, strength):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, count)
    traits = [
        Trait("light", rng.random(count), low="dark"),
        Trait("turn", rng.normal(size=count)),
        Trait("weather", rng.choice(["sun", "rain", "fog"], count)),
        Trait("label", labels.astype(str), source="class"),
    ]
    rate = 0.1 + strength * (traits[0].column < 0.2)
    half = first_half([f"{seed}-{number}" for number in range(count)])
    return traits, SliceData(rng.random(count) < rate, half, labels)


def test_a_planted_cause_is_confirmed_with_rates_of_the_other_half():
    traits, data = planted(1000, 0, 0.6)
    (dark,) = (each for each in ranked_slices(traits, data) if each.confirmed)
    other = ~data.found_on
    assert dark.kind == "trait" and dark.p_value < 1e-6
    assert dark.inside.errors == (dark.members & other & data.wrong).sum()
    assert dark.inside.inputs + dark.outside.inputs == other.sum()
    assert dark.inside.low < 0.7 < dark.inside.high and dark.outside.low < 0.1 < dark.outside.high
    expected = (data.wrong & dark.members).sum() - dark.members.sum() * dark.outside.share
    assert dark.explained == pytest.approx(expected)


def test_what_an_earlier_rule_explains_confirms_no_other():
    """A copy of the cause explains nothing beyond it."""
    traits, data = planted(1500, 2, 0.6)
    copy = Trait("copy", traits[0].column + np.random.default_rng(9).normal(size=1500) * 0.02)
    confirmed = [each for each in ranked_slices([*traits, copy], data) if each.confirmed]
    assert len(confirmed) == 1


def test_rates_leave_out_what_an_earlier_rule_holds_for():
    traits, data = planted(2000, 3, 0.7)
    turned = traits[1].column > 1
    wrong = data.wrong | (turned & (np.random.default_rng(5).random(2000) < 0.4))
    first, second = ranked_slices(traits, SliceData(wrong, data.found_on, data.labels))[:2]
    left = ~data.found_on & ~first.members
    assert second.inside.inputs == (left & second.members).sum()
    assert second.outside.errors == (left & ~second.members & wrong).sum()
    assert second.outside.share < first.outside.share  # what the first explains is no usual rate


def test_rules_of_the_prediction_are_confusions():
    traits, data = planted(1000, 4, 0.0)
    rng = np.random.default_rng(1)
    said = rng.choice(["a", "b", "c"], 1000)
    wrong = rng.random(1000) < np.where(said == "b", 0.6, 0.05)
    found = ranked_slices(
        [*traits, Trait("prediction", said, source="prediction")], SliceData(wrong, data.found_on, data.labels)
    )
    assert [(each.kind, each.rule.text) for each in found if each.confirmed] == [("confusion", "prediction = b")]


def test_chance_is_confirmed_in_at_most_one_in_twenty():
    """Errors that fall on anyone: the family-wise error over 200 data sets, whatever the size of the list."""
    settings, confirmed, suspected = SliceSearch(depth=2, beam=10), 0, 0
    for seed in range(200):
        found = ranked_slices(*planted(300, seed, 0.0), settings)
        confirmed += any(each.confirmed for each in found)
        suspected += bool(found)
    assert confirmed <= 200 * 0.05
    assert suspected > 0  # the search does find rules, so confirming them is what is tested


def test_a_contrast_names_what_variance_does_not():
    rng = np.random.default_rng(0)
    ones = np.arange(200) < 60
    traits = [
        Trait("turn", np.where(ones, rng.choice([-40.0, 40.0], 200), 0) + rng.normal(size=200)),
        Trait("sticker", np.where(ones, "yes", "no")),
        Trait("nothing", rng.random(200)),
        Trait("light", rng.random(200) - 0.5 * ones, low="darker"),
        Trait("angle", (rng.random(200) * 20 + 90 * ones + 350) % 360, period=360.0),
    ]
    named = {each.trait: each.text for each in contrasts(traits, ones, ~ones)}
    assert set(named) == {"turn", "sticker", "light", "angle"}
    assert named["turn"].startswith("turn further from")
    assert named["sticker"] == "sticker = yes in 100% against 0%"
    assert named["light"].startswith("darker (light median")


def test_a_contrast_of_too_few_says_nothing():
    assert contrasts([Trait("x", np.arange(10.0))], np.arange(10) < 2, np.arange(10) >= 2) == []
