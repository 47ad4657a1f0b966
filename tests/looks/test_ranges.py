"""Variations as a configuration names them."""

import pytest

from weakspot.core.errors import ConfigError
from weakspot.looks import VARIATIONS, Blur, Brightness, Fog, Jpeg, OneOf, Rain, Rotate, Shift, variation


def test_names_and_ranges_become_variations_in_their_order():
    assert variation({"rotate": 30, "shift": 3}) == Rotate(30) & Shift(3)
    assert variation({"shift": [0, 3], "rotate": 30}) == Shift((0, 3)) & Rotate(30)
    assert variation({"brightness": [-0.1, 0.3]}) == Brightness((-0.1, 0.3))
    assert variation({"jpeg": {"quality": [10, 50], "halved_colour": False}}) == Jpeg((10, 50), False)


@pytest.mark.parametrize("name", VARIATIONS)
def test_every_one_has_a_usual_range(name):
    made = variation({name: None})
    assert made == VARIATIONS[name]()
    low, high = made.range
    assert made.limits[0] <= low <= high <= made.limits[1]
    assert all(quantity.name and quantity.unit for quantity in made.quantities)


def test_either_lists_what_takes_turns():
    half = variation({"either": [{"rain": None}, {"fog": [0.3, 1]}]})
    assert half == Rain() | Fog((0.3, 1))
    assert isinstance(half, OneOf)
    assert variation({"rotate": 3, "either": [{"blur": 1}, {"shift": 1, "fog": 1}]}) == Rotate(3) & (
        Blur(1) | (Shift(1) & Fog(1))
    )


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({}, "neighbours is {}: expected names and ranges"),
        (30, "neighbours is 30: expected names and ranges, such as {rotate: 30, shift: 3}"),
        ({"rotat": 30}, r"not made by 'rotat': did you mean 'rotate'\? There are rotate, shift"),
        ({"twirl": 1}, "not made by 'twirl': There are"),
        ({"rotate": "far"}, "degrees of Rotate is 'far'"),
        ({"rotate": [1, 2, 3]}, "expected one number, or"),
        ({"noise": [0.2, 0.1]}, "lower one first"),
        ({"fog": 3}, "expected 0 to 1"),
        ({"jpeg": {"qualty": 3}}, "its options are quality, halved_colour"),
        ({"either": [{"rain": 1}]}, "expected a list of two or more"),
        ({"either": {"rain": 1, "fog": 1}}, "expected a list of two or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(ranges, message):
    with pytest.raises(ConfigError, match=message):
        variation(ranges)
