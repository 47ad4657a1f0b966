"""Which inputs two Runs answer differently, and in which groups of inputs accuracy rose or fell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.compare.pairing import ID, by_id
from weakspot.core.finding import Finding
from weakspot.core.groups import common_groups
from weakspot.statistics.clustered import grouped_paired_interval
from weakspot.statistics.groups import value_groups
from weakspot.statistics.paired import paired_difference_interval

_Members = tuple[str, str, NDArray[np.bool_]]
"""By what a group is, its name, and which inputs are in it."""
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
class FlippedInputs:
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


def flips_of(
    before: Finding, after: Finding, *, confidence: float = 0.95, named: Mapping[str, Mapping[str, str]] | None = None
) -> FlippedInputs | None:
    """What became of each input that two Findings say to be correct or not; None where they say nothing of it.

    named: further groups, by what they are called: the group of each input by its id; inputs without one are in none.
    """
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
    belongs = common_groups([str(name) for name in ids], after, before)
    members = [*_members(naming), *_named_members([str(name) for name in ids], named or {})]
    groups = list(_groups(members, was, now, belongs, confidence))
    return FlippedInputs(after.name, fixed, broken, incorrect, int((was & now).sum()), groups)


def _members(naming: Mapping[str, NDArray[Any]]) -> Iterator[_Members]:
    """The groups by classes and metadata, with their inputs."""
    for name, values in naming.items():
        groups, number = value_groups(values)
        if 1 < len(groups) <= MOST_GROUPS:
            by = "class" if name == "target" else name.removeprefix("metadata.")
            yield from ((by, group, number == index) for index, group in enumerate(groups))


def _named_members(ids: list[str], named: Mapping[str, Mapping[str, str]]) -> Iterator[_Members]:
    """The groups that a Run names, with their inputs, in the order in which they come."""
    for by, group_of in named.items():
        held = np.array([group_of.get(name, "") for name in ids], dtype=np.str_)
        yield from ((by, group, held == group) for group in dict.fromkeys(group_of.values()))


def _groups(
    members: Sequence[_Members],
    was: NDArray[np.bool_],
    now: NDArray[np.bool_],
    belongs: NDArray[np.str_] | None,
    confidence: float,
) -> Iterator[GroupDifference]:
    """Every group of enough inputs, with intervals that hold together (Bonferroni).

    belongs: what each input belongs to, such as a film, where some belong together; intervals then go by it.
    """
    enough = [one for one in members if one[2].sum() >= LEAST_INPUTS]
    each = 1 - (1 - confidence) / max(1, len(enough))
    for by, group, rows in enough:
        if belongs is None:
            low, high = paired_difference_interval(was[rows], now[rows], confidence=each)
        else:
            low, high = grouped_paired_interval(was[rows], now[rows], belongs[rows], confidence=each)
        shares = float(was[rows].mean()), float(now[rows].mean())
        yield GroupDifference(by, group, int(rows.sum()), *shares, float(low), float(high))
