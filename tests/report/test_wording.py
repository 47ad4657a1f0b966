from decimal import Decimal

import pytest

from weakspot.core.finding import Estimate
from weakspot.core.outputs import ValueSpec, share
from weakspot.formatting import in_unit, number, percent, show_estimate, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1234, "−1,234"),
        (2**70, "1,180,591,620,717,411,303,424"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.12345678, "0.1235"),
        (999.94, "999.9"),
        (999.96, "1,000"),
        (9999.7, "10,000"),
        (123456.7, "123,457"),
        (0.0001, "0.0001"),
        (0.00009999, "9.999 × 10⁻⁵"),
        (-1.5e20, "−1.5 × 10²⁰"),
        (float("nan"), "not a number"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (Decimal("12.50"), "12.5"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (1.0, "100"), (0.29, "29"), (0.30327868, "30.33"), (0.99994, "99.99"), (0.99996, "> 99.99")],
)
def test_percentages(share: float, text: str) -> None:
    assert percent(share) == f"{text}\u00a0%"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "share", "50\u00a0%"),
        (1, "share", "100\u00a0%"),
        (0.5, "number", "0.5"),
        (12200, "count", "12,200"),
        (3.0, "seconds", "3\u00a0seconds"),
        (None, "share", "–"),
        (True, "flag", "yes"),
        ("cat", "text", "cat"),
    ],
)
def test_values_are_printed_in_their_declared_unit(value: object, unit: str, text: str) -> None:
    assert in_unit(value, unit) == text


def test_a_number_is_a_share_because_it_is_declared_so_and_not_by_its_words() -> None:
    estimate = Estimate(0.45, 0.4, 0.5, 0.95, "share of the inputs")
    assert show_estimate("weak_share", estimate, ValueSpec("")).value == "0.45"
    shown = show_estimate("x", estimate, share("of the inputs"))
    assert (shown.value, shown.interval) == ("45\u00a0%", "40\u00a0% to 50\u00a0%")


@pytest.mark.parametrize(
    ("estimate", "interval", "confidence"),
    [
        (Estimate(2.0), "", ""),
        (Estimate(2.0, 1.0, 3.0, 0.95), "1 to 3", "95\u00a0% confidence"),
        (Estimate(2.0, 1.0, 3.0, 0.999), "1 to 3", "99.9\u00a0% confidence"),
        (Estimate(2.0, 1.0, 3.0), "1 to 3", "confidence not stated"),
        (Estimate(2.0, low=1.0, confidence=0.9), "at least 1", "90\u00a0% confidence"),
        (Estimate(2.0, high=3.0, confidence=0.9), "at most 3", "90\u00a0% confidence"),
    ],
)
def test_intervals(estimate: Estimate, interval: str, confidence: str) -> None:
    shown = show_estimate("x", estimate, ValueSpec(""))
    assert (shown.interval, shown.confidence) == (interval, confidence)


def test_long_values_are_cut_visibly() -> None:
    assert value_text("x" * 300) == "x" * 300
    assert value_text("x" * 301) == "x" * 299 + "…"
    assert value_text(list(range(9))) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"


def test_nested_values() -> None:
    assert value_text({"a": None, "b": [0.5, True]}) == "a: –, b: 0.5, yes"
