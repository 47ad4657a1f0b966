from decimal import Decimal

import pytest

from weakspot.core.finding import Estimate
from weakspot.report.wording import is_share, number, percent, show_estimate, value_text


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
    ("name", "estimate", "share"),
    [
        ("x", Estimate(0.5, about="share of the inputs"), True),
        ("x", Estimate(0.5, 0.1, 0.9, about="Share of the inputs"), True),
        ("weak_share", Estimate(1.0), True),
        ("x", Estimate(0.5, about="shared by all"), False),
        ("x", Estimate(0.5, about="mean accuracy"), False),
        ("x", Estimate(1.5, about="share of the inputs"), False),
        ("x", Estimate(0.5, -0.1, 0.9, about="share of the inputs"), False),
        ("x", Estimate(1, about="inputs with a share"), False),
        ("x", Estimate(None, about="share of no inputs"), False),
        ("x", Estimate("all", about="share of the inputs"), False),
    ],
)
def test_only_what_says_that_it_is_a_share_becomes_a_percentage(name: str, estimate: Estimate, share: bool) -> None:
    assert is_share(name, estimate) is share


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
    shown = show_estimate("x", estimate)
    assert (shown.interval, shown.confidence) == (interval, confidence)


def test_long_values_are_cut_visibly() -> None:
    assert value_text("x" * 300) == "x" * 300
    assert value_text("x" * 301) == "x" * 299 + "…"
    assert value_text(list(range(9))) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"


def test_nested_values() -> None:
    assert value_text({"a": None, "b": [0.5, True]}) == "a: –, b: 0.5, yes"
