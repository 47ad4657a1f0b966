"""The room's options as steps: what is asked for, and what is refused."""

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.options import OptionError
from weakspot.robustness import WeakStrips
from weakspot.robustness.room import steps


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": "pool"}, r"robustness: select is 'pool': expected \{from: SPLIT\}"),
        ({"select": {"budget": 3}}, "robustness: select names the split None: expected"),
        ({"select": {"from": "pool", "count": 3}}, "select has no option 'count'; .*it has: from, budget"),
        ({"select": {"from": "pool", "budget": 0}}, "the budget 0: expected a whole number ≥ 1"),
        ({"detector": 5}, "expected true, or options"),
        ({"looks": 10, "detector": True}, "some looks decide whether an input is weak"),
    ],
)
def test_the_room_refuses_what_does_not_go_together(options, message):
    with pytest.raises(ConfigError, match=message):
        steps(options)


def test_the_room_asks_what_is_asked_for():
    select = {"from": "pool", "budget": 7}
    asked = steps({"detector": {"sample": 99}, "select": select, "analysis": True, "threshold": 0.5})
    assert [step.probe.__name__ for step in asked] == [
        *("NeighbourAccuracy", "WeakPlaces", "ClassRobustness", "VariationEffects", "WeakStrips"),
        *("DetectorEvaluation", "WeakInputs"),
    ]
    detectors = {step.upstream["detector"].key for step in asked[-2:]}
    asked_of_numbers = [step.probe.__name__ for step in steps({"analysis": True, "tolerance": 3.0})]
    assert asked_of_numbers == ["NeighbourTolerance", "ToleranceEffects"]
    assert len(detectors) == 1 and asked[-1].split == "pool" and asked[-1].options["budget"] == 7
    assert asked[-1].upstream["detector"].options["threshold"] == 0.5
    with pytest.raises(ConfigError, match="shown ≤ looks"):
        WeakStrips(shown=9, looks=3, accuracy=None)


def test_a_selection_trains_a_detector_without_evaluating_it():
    _, selected = steps({"select": {"from": "pool"}})
    assert (selected.probe.__name__, selected.split, selected.options["budget"]) == ("WeakInputs", "pool", None)
    assert selected.upstream["detector"].probe.__name__ == "WeakDetector"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lokks": 3}, "robustness has no option 'lokks'; did you mean 'looks'.*it has: neighbours, tolerance"),
        ({"variation": {"rotate": 3}}, "robustness has no option 'variation'; it has: neighbours,"),
        ({"detector": {"epoch": 3}}, "detector has no option 'epoch'; did you mean 'epochs'.*it has: recall,"),
    ],
)
def test_unknown_options_are_told_as_a_configuration_names_them(options, message):
    with pytest.raises(OptionError, match=message) as caught:
        steps(options)
    assert "variation," not in str(caught.value)
