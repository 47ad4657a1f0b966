"""Rules: whom they hold for, how they read, and that they apply to new inputs."""

import json

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.slices import SliceCondition, SliceRule, Trait, candidate_conditions


@pytest.mark.parametrize(
    ("condition", "expected", "text"),
    [
        (SliceCondition("x", low=2.0), [False, True, True, False], "x ≥ 2"),
        (SliceCondition("x", high=2.0), [True, False, False, False], "x < 2"),
        (SliceCondition("x", low=1.0, high=3.0), [True, True, False, False], "1 ≤ x < 3"),
        (SliceCondition("x", low=2.0, high=3.0, outside=True), [True, False, True, False], "x < 2 or ≥ 3"),
        (SliceCondition("x", value=3.0), [False, False, True, False], "x = 3"),
        (SliceCondition("x", low=3.0, high=2.0, period=4.0), [True, False, True, False], "3 ≤ x < 2 (mod 4)"),
    ],
)
def test_a_condition_on_numbers(condition, expected, text):
    assert condition.holds(np.array([1.0, 2.0, 3.0, np.nan])).tolist() == expected
    assert condition.text == text


def test_a_rule_is_plain_json_and_holds_for_new_inputs():
    rule = SliceRule((SliceCondition("light", high=0.25, word="dark"), SliceCondition("weather", value="fog")))
    assert rule.text == "dark (light < 0.25) and weather = fog"
    again = SliceRule.from_json(json.loads(json.dumps(rule.as_json())))
    new = {"light": np.array([0.2, 0.2, 0.3]), "weather": np.array(["fog", "", "fog"]), "more": np.zeros(3)}
    assert again.holds(new).tolist() == rule.holds(new).tolist() == [True, False, False]


def test_a_rule_says_which_trait_is_missing():
    with pytest.raises(DataError, match=r"needs the trait 'light', and there is speed: add that column"):
        SliceRule((SliceCondition("light", high=0.2),)).holds({"speed": np.zeros(2)})


def test_what_is_no_condition_is_refused():
    with pytest.raises(DataError, match="is no condition: expected the name of a trait"):
        SliceRule.from_json([{"below": 0.2}])


def test_candidates_have_enough_inputs_on_either_side():
    rng = np.random.default_rng(0)
    traits = [
        Trait("x", rng.normal(size=200)),
        Trait("few", rng.integers(0, 3, 200).astype(float)),
        Trait("angle", rng.random(200) * 360, period=360.0),
        Trait("place", rng.choice(["here", "there", ""], 200)),
        Trait("constant", np.ones(200)),
        Trait("unknown", np.full(200, np.nan)),
    ]
    columns = {trait.name: trait.column for trait in traits}
    conditions = candidate_conditions(traits, np.ones(200, dtype=bool), smallest=20)
    counts = [int(each.holds(columns[each.trait]).sum()) for each in conditions]
    assert min(counts) >= 20 and max(counts) <= 180
    assert {each.trait for each in conditions} == {"x", "few", "angle", "place"}
    assert {each.value for each in conditions if each.trait == "place"} == {"here", "there"}
    assert {each.value for each in conditions if each.trait == "few"} >= {0.0, 1.0, 2.0}
    assert any(each.outside for each in conditions)


def test_printed_numbers_are_the_numbers_of_the_rule():
    values = np.random.default_rng(1).random(500) * 0.1 + 7
    for each in candidate_conditions([Trait("x", values)], np.ones(500, dtype=bool), smallest=5):
        for end in (each.low, each.high):
            assert end is None or (f"{end:.12g}" in each.text and float(f"{end:.6g}") == end)
