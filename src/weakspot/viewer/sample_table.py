"""All that a Run knows of the samples of one split, joined by their ids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.rooms import QUESTIONS
from weakspot.viewer.columns import Places, SampleColumn, column_of
from weakspot.viewer.reading import RunReader
from weakspot.viewer.splits import ID, class_names, findings_of

OF_LABELS = ("target", "prediction", "label")
"""Columns that hold sets of labels where an input may have several."""


@dataclass(frozen=True)
class SampleTable:
    """The samples of a split with their columns; a sample's position is its place here.

    Samples stand in the order of the data where the Run keeps pictures of them, else in that of their ids.
    """

    split: str
    ids: "pa.StringArray"
    columns: Mapping[str, SampleColumn]

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: Sequence[str] | np.ndarray) -> Places:
        """The positions of samples, -1 for those that are not there."""
        matches = pc.index_in(pa.array(list(map(str, ids)), pa.string()), value_set=self.ids)
        return np.asarray(matches.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def names(self, places: Places) -> list[str]:
        """The ids at some positions."""
        return list(self.ids.take(pa.array(places, pa.int64())).to_pylist())

    @cached_property
    def lowered(self) -> "pa.StringArray":
        """The ids in small letters, for searching."""
        return pc.utf8_lower(self.ids)


def sample_table(run: RunReader, split: str) -> SampleTable:
    """The samples of a split; made once as long as the Run stays as it is."""
    return run.kept(("samples", split), lambda: _joined(run, split))


@dataclass(frozen=True)
class _Held:
    """A Finding with the inputs that its table has a row for; None where rows are no inputs."""

    finding: Finding
    ids: "pa.StringArray | None"


def _joined(run: RunReader, split: str) -> SampleTable:
    held = [_Held(finding, ids_in(finding)) for finding in _readable(run, split)]
    ids = _all_ids(held)
    manifest = run.manifest()
    columns = [column for one in held for column in _columns(one, ids, class_names(manifest))]
    if manifest["subject"].get("task") == "multilabel":
        columns = [replace(column, several=column.kind == "text" and column.name in OF_LABELS) for column in columns]
    return SampleTable(split, ids, _unambiguous(columns))


def _readable(run: RunReader, split: str) -> list[Finding]:
    """The Findings that know something of single inputs, those with pictures first."""
    readable = []
    for name in findings_of(run, split):
        try:
            if ID in run.columns(name) or run.head(name).outputs.by_sample:
                readable.append(run.finding(name))
        except RunError:
            continue  # told with the Run's other damages
    return sorted(readable, key=lambda finding: (not in_order_of_data(finding), _room(finding.name)))


def _room(finding: str) -> int:
    """The place of a Finding's question: what the model predicts comes before what is said of it."""
    room, places = finding.partition(".")[0], list(QUESTIONS)
    return places.index(room) if room in places else len(places)


def in_order_of_data(finding: Finding) -> bool:
    """Whether the table has the samples in the order of the data: the probe that keeps pictures does."""
    return "pixels" in finding.arrays


def ids_in(finding: Finding) -> "pa.StringArray | None":
    """The inputs that a table has a row for; None where an input has several, or has no name."""
    table = finding.table
    if table is None or table.column_names.count(ID) != 1:
        return None
    ids = table[ID].combine_chunks()
    named = pa.types.is_string(ids.type) and not ids.null_count
    return ids if named and pc.count_distinct(ids).as_py() == len(ids) else None


def _all_ids(held: Sequence[_Held]) -> "pa.StringArray":
    with_ids = [one.ids for one in held if one.ids is not None]
    if not with_ids:
        return pa.array([], pa.string())
    together = pc.unique(pa.chunked_array(with_ids))
    ordered = any(in_order_of_data(one.finding) for one in held)
    return together if ordered else together.take(pc.sort_indices(together))


def _columns(held: _Held, ids: "pa.StringArray", classes: list[str]) -> Iterator[SampleColumn]:
    """The columns of a Finding, brought into the order of the samples."""
    finding, table = held.finding, held.finding.table
    if held.ids is not None and table is not None:
        places = np.asarray(pc.index_in(held.ids, value_set=ids).to_numpy(zero_copy_only=False), dtype=np.int64)
        for name in table.column_names:
            if name != ID and table.column_names.count(name) == 1:
                column = column_of(name, finding.name, finding.about, table[name], classes)
                if column is not None:
                    yield column.spread(places, len(ids))
    for name in finding.outputs.by_sample:
        yield from _array_column(finding, name, ids)


def _array_column(finding: Finding, name: str, ids: "pa.StringArray") -> Iterator[SampleColumn]:
    """A column that lies in two arrays: ids and, of each, a whole number; 0 stands for none."""
    names, numbers = (finding.arrays.get(array) for array in finding.outputs.by_sample[name])
    if names is None or numbers is None or names.shape != numbers.shape or numbers.dtype.kind not in "iu":
        return
    matches = pc.index_in(pa.array(names.tolist(), pa.string()), value_set=ids).fill_null(-1)
    places = np.asarray(matches.to_numpy(zero_copy_only=False), dtype=np.int64)
    there = (places >= 0) & (numbers > 0)
    column = SampleColumn(name, finding.name, "number", finding.about, numbers[there].astype(float), whole=True)
    yield column.spread(places[there], len(ids))


def _unambiguous(columns: Sequence[SampleColumn]) -> dict[str, SampleColumn]:
    """Columns by name: the bare one where only one Finding has it or all say the same, else with the Finding's."""
    by_name: dict[str, list[SampleColumn]] = {}
    for column in columns:
        by_name.setdefault(column.name, []).append(column)
    named = {}
    for name, alike in by_name.items():
        first = max(alike, key=lambda column: int((~np.isnan(column.numbers)).sum()))
        if all(first.holds(other) for other in alike):
            named[name] = first
        else:
            named |= {f"{one.finding}.{name}": one.named(f"{one.finding}.{name}") for one in alike}
    return named


def column_called(table: SampleTable, *names: str) -> SampleColumn | None:
    """The first column of one of these names, whichever Finding it is of."""
    for name in names:
        for column in table.columns.values():
            if column.bare == name:
                return column
    return None
