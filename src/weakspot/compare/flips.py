"""Which inputs two Runs answer differently, and in which groups of inputs accuracy rose or fell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.compare.pairing import ID, by_id
from weakspot.core.finding import Finding
from weakspot.statistics.groups import value_groups
from weakspot.statistics.paired import paired_difference_interval

LEAST_INPUTS = 10
"""Smaller groups are left out."""
MOST_GROUPS = 1000
"""A column of more values names the inputs rather than groups of them."""


@dataclass(frozen=True)
class GroupDifference:
    """Accuracy in one group of the inputs; its interval holds for all groups at once."""

    by: str
    group: str
    inputs: int
    before: float
    after: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Better or worse where the interval shows it, else nothing."""
        return "" if self.low <= 0 <= self.high else "better" if self.low > 0 else "worse"


@dataclass(frozen=True)
class AnswerChanges:
    """The inputs that both Runs have, by how they are predicted before and after."""

    finding: str
    fixed: list[str]
    broken: list[str]
    incorrect: list[str]
    correct: int
    groups: list[GroupDifference] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many both Runs have."""
        return len(self.fixed) + len(self.broken) + len(self.incorrect) + self.correct


def flips_of(before: Finding, after: Finding, *, confidence: float = 0.95) -> AnswerChanges | None:
    """What became of each input that two Findings say to be correct or not; None where they say nothing of it."""
    old, new = by_id(before.table), by_id(after.table)
    columns = after.outputs.columns_of_role(after, "correct")
    if old is None or new is None or not columns or columns[0] not in old.column_names:
        return None
    ids = np.intersect1d(old[ID].to_numpy(), new[ID].to_numpy())
    if not len(ids):
        return None
    tables = [table.take(np.searchsorted(table[ID].to_numpy(), ids)) for table in (old, new)]
    was, now = (table[columns[0]].to_numpy().astype(bool) for table in tables)
    roles = {name: after.outputs.column(name).role for name in tables[1].column_names}
    naming = {name: tables[1][name].to_numpy() for name, role in roles.items() if role in ("target", "metadata")}
    fixed, broken, incorrect = ([str(name) for name in ids[rows]] for rows in (~was & now, was & ~now, ~was & ~now))
    groups = list(_groups(naming, was, now, confidence))
    return AnswerChanges(after.name, fixed, broken, incorrect, int((was & now).sum()), groups)


def _groups(
    naming: Mapping[str, NDArray[Any]], was: NDArray[np.bool_], now: NDArray[np.bool_], confidence: float
) -> Iterator[GroupDifference]:
    """Every group of enough inputs, with intervals that hold together (Bonferroni)."""
    members = [
        (name.removeprefix("metadata."), group, number == index)
        for name, values in naming.items()
        for groups, number in [value_groups(values)]
        if 1 < len(groups) <= MOST_GROUPS
        for index, group in enumerate(groups)
    ]
    enough = [one for one in members if one[2].sum() >= LEAST_INPUTS]
    each = 1 - (1 - confidence) / max(1, len(enough))
    for by, group, rows in enough:
        low, high = paired_difference_interval(was[rows], now[rows], confidence=each)
        shares = float(was[rows].mean()), float(now[rows].mean())
        yield GroupDifference(
            "class" if by == "target" else by, group, int(rows.sum()), *shares, float(low), float(high)
        )
