"""Where samples belong together, the intervals of a Finding are taken by group, or left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from weakspot.core.finding import Estimate, Finding
from weakspot.core.groups import COLUMN, NUMBER, declared
from weakspot.core.observation import Setting
from weakspot.core.outputs import Outputs, ValueSpec
from weakspot.statistics.clustered import grouped_mean_interval, grouped_share_interval

if TYPE_CHECKING:
    import pyarrow as pa

LEFT_OUT = "no interval: it would take samples that belong together for independent"
_COMPLEMENT = "not "


def by_group(finding: Finding, setting: Setting, own: Sequence[str]) -> Finding:
    """The Finding with intervals that go by group, and the group of each sample; as it is where there are no groups.

    A number that is declared as the mean of a column gets the interval of that mean over samples that belong together.
    All other intervals are left out, but for those that the probe says it takes by group itself.

    own: names of such numbers and columns, or patterns of names.
    """
    if setting.groups is None:
        return finding
    groups = _groups_of_rows(finding, setting)
    numbers = {name: _by_group(finding, name, groups, own) for name in finding.summary}
    table = finding.table
    if table is not None and groups is not None:
        table = table.append_column(COLUMN, [groups])
    elif table is not None:
        table = _without_ends(table, finding.outputs, own)
    return replace(
        finding,
        summary={**numbers, NUMBER: setting.groups.estimate()},
        table=table,
        outputs=declared(finding.outputs, by_sample=groups is not None),
        provenance={**finding.provenance, "groups": {"column": setting.groups.column, "groups": setting.groups.count}},
    )


def _groups_of_rows(finding: Finding, setting: Setting) -> np.ndarray | None:
    """The group of each row of the table; None where its rows are no samples, or several rows are one."""
    names = finding.outputs.columns_of_role(finding, "id")
    if finding.table is None or not names:
        return None
    ids = finding.table[names[0]].to_pylist()
    if len(set(ids)) < len(ids) or not set(ids) <= set(setting.ids):
        return None
    return setting.groups_of(ids)


def _by_group(finding: Finding, name: str, groups: np.ndarray | None, own: Sequence[str]) -> Estimate:
    estimate = finding.summary[name]
    if (estimate.low is None and estimate.high is None) or _named(name, own):
        return estimate
    values = None if groups is None else _values(finding, finding.outputs.number(name).mean_of)
    if groups is None or values is None or not np.isclose(float(estimate), float(values.mean())):
        words = f"{estimate.about}; {LEFT_OUT}" if estimate.about else LEFT_OUT
        return Estimate(estimate.value, about=words)
    level = estimate.confidence or 0.95
    if values.dtype == bool:
        ends = grouped_share_interval(values, groups, confidence=level)
    else:
        ends = grouped_mean_interval(values, groups, confidence=level)
    low, high = map(float, ends)
    if finding.outputs.number(name).unit == "share":
        low, high = max(low, 0.0), min(high, 1.0)
    return replace(estimate, low=low, high=high)


def _values(finding: Finding, mean_of: str) -> np.ndarray | None:
    """The column whose mean a number is, turned where the number is 1 less that mean; None where there is none."""
    column = mean_of.removeprefix(_COMPLEMENT)
    if finding.table is None or not column or column not in finding.table.column_names:
        return None
    values: np.ndarray = finding.table[column].to_numpy()
    if mean_of == column:
        return values
    turned: np.ndarray = ~values if values.dtype == bool else 1 - values
    return turned


def _without_ends(table: "pa.Table", outputs: Outputs, own: Sequence[str]) -> "pa.Table":
    """The table with unknown ends of intervals, but for those of the probe's own making."""
    for name in _ends(table.column_names, outputs.columns):
        if not _named(name, own):
            table = table.set_column(table.column_names.index(name), name, [np.full(len(table), np.nan)])
    return table


def _ends(names: Sequence[str], declared: Mapping[str, ValueSpec]) -> Iterator[str]:
    outputs = Outputs(columns=declared)
    return (name for name in names if outputs.column(name).role == "interval")


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
