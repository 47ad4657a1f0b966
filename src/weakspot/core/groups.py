"""What samples belong to, such as the film that a frame is of."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from weakspot.core.finding import Estimate, Finding
from weakspot.core.outputs import Outputs, ValueSpec, count

NUMBER = "sample_groups"
"""The number of a summary that says how many groups there are."""
COLUMN = "sample_group"
"""The column of a table of samples that names the group of each."""


@dataclass(frozen=True)
class Groups:
    """The group of every sample of a source.

    column: where it was read, such as a column of the metadata.
    names: one per sample, in the source's order.
    """

    column: str
    names: np.ndarray

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return len(np.unique(self.names))

    def estimate(self) -> Estimate:
        """How many, as a number of a summary."""
        return Estimate(self.count, about=f"groups by {self.column}; intervals go by them")

    def taken(self, positions: np.ndarray) -> "Groups":
        """Those of some of the samples."""
        return Groups(self.column, self.names[positions])


def declared(outputs: Outputs, *, by_sample: bool) -> Outputs:
    """The declaration with what is added where samples belong together."""
    summary = {**outputs.summary, NUMBER: count("groups of samples that belong together")}
    column = ValueSpec("what the sample belongs to", "text", role="group")
    return replace(outputs, summary=summary, columns={**outputs.columns, **({COLUMN: column} if by_sample else {})})


def sample_groups(finding: Finding) -> dict[str, str]:
    """The group of each sample in the table of a Finding, by its id; empty where each stands for itself."""
    names = finding.outputs.columns_of_role(finding, "group")
    if finding.table is None or not names or "id" not in finding.table.column_names:
        return {}
    return dict(zip(finding.table["id"].to_pylist(), finding.table[names[0]].to_pylist(), strict=True))


def common_groups(ids: Iterable[str], *findings: Finding) -> np.ndarray | None:
    """The group of each sample, as the first of the Findings says that knows all; None where none does."""
    wanted = list(ids)
    for finding in findings:
        known = sample_groups(finding)
        if known and known.keys() >= set(wanted):
            return np.array([known[name] for name in wanted])
    return None
