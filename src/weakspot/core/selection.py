"""The option `select` of a room: from which split to choose inputs, and how many."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from weakspot.core.options import OptionError, fits, refuse_unknown, shortened

_EXPECTED = "expected {from: SPLIT}, or {from: SPLIT, budget: N} for at most N inputs"


@dataclass(frozen=True)
class Selection:
    """From which split to choose, and at most how many inputs; None for all."""

    split: str
    budget: int | None = None


def refuse_earlier_names(options: Mapping[str, Any], names: Collection[str], *, of: str) -> None:
    """Refuse options by which a room chose inputs before `select` did, and say how to write them now."""
    for name in names:
        if name in options:
            raise OptionError(name, f"{of}: the option {name} is now select: {_EXPECTED}")


def read_selection(value: Any, *, of: str) -> Selection:
    """The selection that a configuration asks for.

    >>> read_selection({"from": "pool", "budget": 100}, of="robustness")
    Selection(split='pool', budget=100)
    """
    if not isinstance(value, Mapping):
        raise OptionError("select", f"{of}: select is {shortened(value)}: {_EXPECTED}")
    refuse_unknown(value, ("from", "budget"), of=f"{of}: select")
    split, budget = value.get("from"), value.get("budget")
    if not isinstance(split, str) or not split:
        raise OptionError("select", f"{of}: select names the split {shortened(split)}: {_EXPECTED}")
    if budget is not None and (not fits(budget, int) or budget < 1):
        raise OptionError("select", f"{of}: select has the budget {shortened(budget)}: expected a whole number ≥ 1")
    return Selection(split, budget)
