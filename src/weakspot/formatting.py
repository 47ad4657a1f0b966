"""Numbers and names as people read them: four significant digits, thousands separators, percentages for shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

from weakspot.core.finding import Estimate
from weakspot.core.outputs import ValueSpec

MISSING = "–"
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet takes for a formula."""
_LONGEST_TEXT = 300
_LONGEST_LIST = 8
_WITHOUT_SIGN = ("number", "count", "flag", "text")
_ACRONYMS = {
    name.lower(): name for name in "NC KMNC NBC SNAC TKNC TKNP IDC LSC DSC LSA DSA AUROC APFD F1 IoU GCN PCS".split()
}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class ShownEstimate:
    """One line of a summary, ready to print."""

    label: str
    value: str
    interval: str
    confidence: str
    about: str


def show_estimate(name: str, estimate: Estimate, declared: ValueSpec) -> ShownEstimate:
    """An estimate in words, by its declared unit; an interval without a stated confidence says so."""
    interval = interval_text(estimate, declared.unit)
    level = percent(estimate.confidence) + " confidence" if estimate.confidence else "confidence not stated"
    return ShownEstimate(
        label=label(name),
        value=in_unit(estimate.value, declared.unit),
        interval=interval,
        confidence=level if interval else "",
        about=estimate.about or declared.about,
    )


def in_unit(value: Any, unit: str) -> str:
    r"""A value with its unit: shares in percent, other units after the number.

    >>> [in_unit(0.45, unit) for unit in ("share", "number", "seconds")]
    ['45\xa0%', '0.45', '0.45\xa0seconds']
    """
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if unit in _WITHOUT_SIGN or not real:
        return value_text(value)
    return percent(float(value)) if unit == "share" else f"{number(value)}\u00a0{unit}"


def with_interval(estimate: Estimate, unit: str) -> str:
    r"""A number with its interval, as it stands in a sentence.

    >>> with_interval(Estimate(0.5, 0.4, 0.6, 0.95), "number")
    '0.5 (95\xa0% interval 0.4 to 0.6)'
    """
    value, low, high = (_rough(end, unit) for end in (estimate.value, estimate.low, estimate.high))
    name = f"{percent(estimate.confidence)} interval" if estimate.confidence else "interval"
    return f"{value} ({name} {low} to {high})" if estimate.low is not None and estimate.high is not None else value


def _rough(value: Any, unit: str) -> str:
    return roughly(value) if unit == "share" and isinstance(value, float) else in_unit(value, unit)


def interval_text(estimate: Estimate, unit: str) -> str:
    """From where to where, or the one bound there is, or nothing."""
    low, high = (None if end is None else in_unit(end, unit) for end in (estimate.low, estimate.high))
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return "" if high is None else f"at most {high}"


def value_text(value: Any) -> str:
    """Any value of a summary, a table or a provenance as text.

    >>> [value_text(value) for value in (None, True, 12200, 0.30327868, "a", [1, 2.5], b"abc")]
    ['–', 'yes', '12,200', '0.3033', 'a', '1, 2.5', '3 bytes']
    """
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | Decimal):
        return number(value)
    if isinstance(value, bytes):
        return counted(len(value), "byte")
    if isinstance(value, Mapping):
        return value_text([f"{key}: {value_text(item)}" for key, item in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = [f"… ({number(len(value))} in all)"] if len(value) > _LONGEST_LIST else []
        return ", ".join([*map(value_text, value[:_LONGEST_LIST]), *more])
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def number(value: float | Decimal) -> str:
    """Whole numbers in full, others to four significant digits, very large and very small ones as powers of ten.

    >>> [number(value) for value in (1234567, 1234.56, 0.81967, -0.5, 0.0000123456, 0.0)]
    ['1,234,567', '1,235', '0.8197', '−0.5', '1.235 × 10⁻⁵', '0']
    """
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    real = float(value) or 0.0  # minus zero is zero
    if not isfinite(real):
        return "not a number" if isnan(real) else "∞" if real > 0 else "−∞"
    if real != 0 and not 1e-4 <= abs(real) < 1e15:
        mantissa, _, exponent = f"{real:.3e}".partition("e")
        shown = f"{float(mantissa):.4g} × 10{str(int(exponent)).translate(_RAISED)}"
    else:
        shown = f"{real:,.0f}" if abs(real) >= 999.95 else f"{real:.4g}"
    return shown.replace("-", "−")


def percent(share: float) -> str:
    """A share in percent; what is not all is never rounded up to all, and what is none has no percent sign.

    >>> print(percent(0.95), percent(1.0), percent(0.999999), percent(float("nan")), sep=", ")
    95 %, 100 %, > 99.99 %, –
    """
    if isnan(share):
        return MISSING
    return "> 99.99\u00a0%" if 0.99995 <= share < 1 else f"{number(100 * share)}\u00a0%"


def roughly(share: float) -> str:
    """A share in percent to three digits, for a sentence; what is not all is never rounded up to all.

    >>> print(roughly(0.66611), roughly(0.9996), roughly(1.0), sep=", ")
    66.6 %, 99.96 %, 100 %
    """
    return percent(share) if share > 0.999 else percent(float(f"{share:.3g}"))


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "class")
    ('1 row', '1,200 rows', '2 classes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{number(count)} {noun}{ending}"


def points(share: float) -> str:
    """A difference of shares in percentage points, to two digits.

    >>> points(0.0512), points(-0.2), points(0.001)
    ('5.1', '−20', '0.1')
    """
    return number(float(f"{100 * share:.2g}"))


def label(name: str) -> str:
    """A name as a heading: without the room before the dot, with spaces, and with other data than usual in brackets.

    >>> label("coverage.neuron_coverage"), label("apfd_kmnc"), label("coverage.neuron_coverage-train.like.test")
    ('Neuron coverage', 'APFD KMNC', 'Neuron coverage (train, as many as test)')
    """
    words, _, data = (name.partition(".")[2] or name).partition("-")
    parts = [_ACRONYMS.get(part, part) for part in words.split("_") if part]
    spaced = (" ".join(parts) or name) + (f" ({split_label(data)})" if data else "")
    return spaced[:1].upper() + spaced[1:]


def split_label(name: str) -> str:
    """A split as people say it; one that is drawn from another is called by both.

    >>> split_label("test"), split_label("train.like.test")
    ('test', 'train, as many as test')
    """
    return name.replace(".like.", ", as many as ").replace(".", " ")


def short(fingerprint: str) -> str:
    """Enough of a digest to tell it from others by eye."""
    return fingerprint[:12]


def csv_cell(text: str) -> str:
    """A cell of a CSV file, with an apostrophe before it where a spreadsheet would take it for a formula.

    >>> csv_cell("=1+1"), csv_cell("eye-01")
    ("'=1+1", 'eye-01')
    """
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text
