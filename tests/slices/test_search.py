"""The search finds what was planted, as an enumeration of everything does."""

from itertools import combinations

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.slices import SliceRule, SliceSearch, Trait, candidate_conditions, find_rules, likelihood_gain
from weakspot.slices.candidates import naming_costs
from weakspot.slices.search import FURTHER


def table(count=800, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Trait("light", rng.random(count), low="dark"),
        Trait("turn", rng.normal(size=count) * 20),
        Trait("weather", rng.choice(["sun", "rain", "fog"], count)),
        Trait("noise", rng.random(count)),
    ], rng


def errors(rng, members, inside, outside):
    return rng.random(len(members)) < np.where(members, inside, outside)


def overlap(rule, traits, members):
    holds = rule.holds({trait.name: trait.column for trait in traits})
    return 2 * (holds & members).sum() / (holds.sum() + members.sum())


def test_one_condition_is_found():
    traits, rng = table()
    dark = traits[0].column < 0.2
    rule, *others = find_rules(traits, errors(rng, dark, 0.8, 0.05))
    assert overlap(rule, traits, dark) > 0.9
    assert rule.text.startswith("dark (light < ")
    assert not others


def test_both_sides_are_one_rule():
    traits, rng = table()
    turned = np.abs(traits[1].column) > 30
    rule, *_ = find_rules(traits, errors(rng, turned, 0.8, 0.05))
    assert rule.conditions[0].outside and overlap(rule, traits, turned) > 0.85


def test_a_combination_is_found_and_two_causes_are_two_rules():
    traits, rng = table(2000)
    both = (traits[0].column < 0.4) & (traits[2].column == "fog")
    noisy = traits[3].column > 0.9
    rules = find_rules(traits, errors(rng, both | noisy, 0.7, 0.05))
    found = [max(overlap(rule, traits, planted) for rule in rules) for planted in (both, noisy)]
    assert len(rules) == 2 and min(found) > 0.85
    assert {len(rule.conditions) for rule in rules} == {1, 2}


def test_the_beam_misses_nothing_that_trying_all_pairs_finds():
    traits, rng = table(300, seed=3)
    wrong = errors(rng, (traits[0].column < 0.4) & (traits[2].column == "fog"), 0.8, 0.1)
    (rule,) = find_rules(traits, wrong, search=SliceSearch(depth=2, most=1))
    conditions = candidate_conditions(traits, np.ones(300, dtype=bool), 10)
    columns = {trait.name: trait.column for trait in traits}
    costs, best = dict(zip(conditions, naming_costs(conditions), strict=True)), (0.0, None)
    singles = [(each,) for each in conditions]
    pairs = [pair for pair in combinations(conditions, 2) if pair[0].trait != pair[1].trait]
    for chosen in singles + pairs:
        holds = SliceRule(chosen).holds(columns)
        size, inside = float(holds.sum()), float((holds & wrong).sum())
        if min(size, 300 - size) < 10:
            continue
        gain = likelihood_gain(size, inside, size * wrong.mean(), 300, float(wrong.sum()))
        own = sorted(costs[each] for each in chosen)
        gain -= own[0] + FURTHER * sum(own[1:])
        best = max(best, (float(gain), SliceRule(chosen)), key=lambda entry: entry[0])
    assert rule == best[1]


def test_a_trait_that_goes_with_a_hard_class_is_not_its_reason():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 1500)
    light = Trait("light", rng.random(1500) * 0.5 + 0.5 * (labels != 2))  # the hard class is dark
    label = Trait("label", labels.astype(str), source="class")
    wrong = rng.random(1500) < np.where(labels == 2, 0.6, 0.05)
    assert [each.text for each in find_rules([light], wrong)] != []
    assert find_rules([light], wrong, strata=labels) == []
    assert [each.text for each in find_rules([light, label], wrong, strata=labels)] == ["label = 2"]


def test_nothing_is_found_where_nothing_or_everything_is_an_error():
    traits, _ = table(100)
    assert find_rules(traits, np.zeros(100, dtype=bool)) == find_rules(traits, np.ones(100, dtype=bool)) == []
    assert find_rules([], np.arange(100) < 50) == []


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="expected depth from 1 to 4"):
        SliceSearch(depth=0)
