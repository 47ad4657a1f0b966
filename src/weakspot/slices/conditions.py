"""Rules that an input meets or not: conditions on what is known of it, which apply to new inputs as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Flags = NDArray[np.bool_]
TraitSource = Literal["metadata", "image", "class", "prediction", "features"]
"""Where a trait is from: the data, the image's pixels, its label, the model's prediction, or what its layers show."""


@dataclass(frozen=True)
class Trait:
    """What is known of each input under one name.

    column: one number or text per input; not a number, or empty text, where unknown.
    period: of numbers that go round, such as 360 for angles.
    low, high: a plain word for small and for large values, as "dark" and "bright".
    """

    name: str
    column: NDArray[Any]
    source: TraitSource = "metadata"
    period: float | None = None
    low: str = ""
    high: str = ""

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.column.dtype.kind == "f"


@dataclass(frozen=True)
class SliceCondition:
    """One condition on one trait.

    value: the trait equals it.
    low, high: otherwise, low ≤ trait < high, with one end or both; with `period` the range goes round from low to high.
    outside: the trait is known and not in that range.
    word: a plain word for it.

    >>> dark = SliceCondition("brightness", high=0.21, word="dark")
    >>> dark.holds(np.array([0.1, 0.5, np.nan])).tolist(), dark.text
    ([True, False, False], 'dark (brightness < 0.21)')
    """

    trait: str
    value: str | float | None = None
    low: float | None = None
    high: float | None = None
    outside: bool = False
    period: float | None = None
    word: str = ""

    def holds(self, column: NDArray[Any]) -> Flags:
        """Whether each value of the trait meets it; an unknown value never does."""
        if self.value is not None:
            return np.asarray(column == self.value)
        low, high = (-np.inf if self.low is None else self.low), (np.inf if self.high is None else self.high)
        values = np.asarray(column, dtype=np.float64)
        if self.period is None:
            within = (values >= low) & (values < high)
        else:
            within = (values - low) % self.period < (high - low) % self.period
        return np.asarray((~within if self.outside else within) & ~np.isnan(values))

    @property
    def text(self) -> str:
        """The condition in words and numbers."""
        plain = self._plain
        return f"{self.word} ({plain})" if self.word else plain

    @property
    def _plain(self) -> str:
        value, low, high = _digits(self.value), _digits(self.low), _digits(self.high)
        if self.value is not None:
            return f"{self.trait} = {value}"
        if self.low is None or self.high is None:
            return f"{self.trait} < {high}" if self.low is None else f"{self.trait} ≥ {low}"
        if self.outside:
            return f"{self.trait} < {low} or ≥ {high}"
        return f"{low} ≤ {self.trait} < {high}" + (f" (mod {_digits(self.period)})" if self.period else "")

    def as_json(self) -> dict[str, Any]:
        """The entries that are set."""
        entries = {name: getattr(self, name) for name in ("value", "low", "high", "period")}
        present = {name: entry for name, entry in entries.items() if entry is not None}
        return {"trait": self.trait, **present, **({"outside": True} if self.outside else {})}


@dataclass(frozen=True)
class SliceRule:
    """Conditions that all hold for the inputs of a slice."""

    conditions: tuple[SliceCondition, ...]

    def holds(self, columns: Mapping[str, NDArray[Any]]) -> Flags:
        """Which inputs it holds for; columns: one number or text per input, by the name of the trait.

        >>> rule = SliceRule((SliceCondition("light", high=0.2), SliceCondition("weather", value="fog")))
        >>> rule.holds({"light": np.array([0.1, 0.1, 0.9]), "weather": np.array(["fog", "sun", "fog"])}).tolist()
        [True, False, False]
        """
        missing = [each.trait for each in self.conditions if each.trait not in columns]
        if missing:
            have = ", ".join(sorted(columns)) or "nothing"
            raise DataError(f"the rule needs the trait {missing[0]!r}, and there is {have}: add that column")
        return np.asarray(np.all([each.holds(columns[each.trait]) for each in self.conditions], axis=0))

    @property
    def text(self) -> str:
        """The conditions in words and numbers."""
        return " and ".join(each.text for each in self.conditions)

    def as_json(self) -> list[dict[str, Any]]:
        """The conditions as plain JSON."""
        return [each.as_json() for each in self.conditions]

    @classmethod
    def from_json(cls, entries: Sequence[Mapping[str, Any]]) -> SliceRule:
        """The rule as it was written.

        >>> rule = SliceRule((SliceCondition("turn", low=350.0, high=10.0, period=360.0),))
        >>> SliceRule.from_json(rule.as_json()) == rule
        True
        """
        keys = ("trait", "value", "low", "high", "outside", "period")
        for entry in entries:
            odd = sorted(set(entry) - set(keys))
            if "trait" not in entry or odd:
                raise DataError(
                    f"{dict(entry)!r} is no condition: expected the name of a trait and some of {', '.join(keys[1:])}"
                )
        return cls(tuple(SliceCondition(**entry) for entry in entries))


def _digits(value: str | float | None) -> str:
    return f"{value:.12g}" if isinstance(value, float | int) else str(value)


def columns_of(traits: Sequence[Trait]) -> dict[str, NDArray[Any]]:
    """The column of each trait, by its name."""
    return {trait.name: trait.column for trait in traits}
