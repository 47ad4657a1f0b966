"""What a figure is drawn from: the arrays and columns of a Finding by name, never the probe that made it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from weakspot.core.finding import Finding

COLUMN = "table."
"""Before the name of a column of the table; names without it are arrays."""


@dataclass(frozen=True, eq=False)
class FindingView:
    """A Finding's arrays and columns, and the names of the model's classes."""

    finding: Finding
    classes: Sequence[str] = ()

    def __getitem__(self, name: str) -> np.ndarray:
        return _value(self.finding, name)

    def has(self, name: str) -> bool:
        """Whether there is an array or column of that name, or one that fits the pattern."""
        return name in _names(self.finding) or ("*" in name and bool(self.like(name)))

    def like(self, pattern: str) -> dict[str, np.ndarray]:
        """Arrays and columns by what stands for the star of a pattern.

        >>> sorted(FindingView(Finding("f", arrays={"found_nc": np.ones(2), "cost": np.ones(2)})).like("found_*"))
        ['nc']
        """
        before, _, after = pattern.partition("*")
        return {name[len(before) : len(name) - len(after)]: self[name] for name in self.matching(pattern)}

    def matching(self, pattern: str) -> list[str]:
        """The names of arrays and columns that fit a pattern."""
        return [name for name in _names(self.finding) if fnmatchcase(name, pattern)]

    def words(self, name: str) -> list[str]:
        """An array or column as names."""
        return [str(item) for item in self[name].tolist()]

    def class_names(self, numbers: np.ndarray | None = None) -> list[str]:
        """The names of these classes, or of all; a class without a name goes by its number."""
        wanted = range(len(self.classes)) if numbers is None else [int(number) for number in numbers]
        return [str(self.classes[number]) if number < len(self.classes) else str(number) for number in wanted]


def _names(finding: Finding) -> list[str]:
    columns = [] if finding.table is None else finding.table.column_names
    return [*finding.arrays, *(COLUMN + name for name in columns)]


def _value(finding: Finding, name: str) -> np.ndarray:
    if not name.startswith(COLUMN):
        return np.asarray(finding.arrays[name])
    table = finding.table
    return np.empty(0) if table is None else np.asarray(table[name.removeprefix(COLUMN)].to_numpy())
