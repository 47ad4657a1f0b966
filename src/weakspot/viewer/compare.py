"""Two Runs side by side: the same samples before and after, and the numbers that differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow.compute as pc
from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.finding import Finding
from weakspot.formatting import label
from weakspot.rooms import named_groups
from weakspot.viewer.columns import Places
from weakspot.viewer.library import Library
from weakspot.viewer.pictures import pictures_of
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import as_json, finite
from weakspot.viewer.sample_table import SampleTable, column_called, sample_table
from weakspot.viewer.samples import MOST_ROWS, Split, described
from weakspot.viewer.splits import asked, sampled_splits

if TYPE_CHECKING:
    from weakspot.compare import Difference, GroupDifference

router = APIRouter(prefix="/api/compare")
OUTCOMES = ("broken", "fixed", "incorrect", "correct", "unknown")
"""Correct before and incorrect after, the other way round, incorrect both times, correct both times, unknown."""
Outcome = Literal["broken", "fixed", "incorrect", "correct", "unknown"]
SIDES = ("before", "after", "change")


@dataclass(frozen=True)
class Pair:
    """The samples that both Runs have: where each is in either, and how its predictions compare."""

    tables: tuple[SampleTable, SampleTable]
    places: tuple[Places, Places]
    outcome: NDArray[np.int64]
    columns: tuple[str, ...]

    def numbers(self, name: str, side: int) -> NDArray[np.float64]:
        """A column of one side, sample by sample."""
        return self.tables[side].columns[name].numbers[self.places[side]]


def paired(runs: tuple[RunReader, RunReader], split: str | None) -> tuple[str, Pair]:
    """The samples of a split that both Runs have, by their ids."""
    before, after = runs
    common = [name for name in sampled_splits(before) if name in sampled_splits(after)]
    if split is not None and split not in common:
        raise NotThereError(f"no samples of {split!r} in both Runs: expected one of {', '.join(common) or 'none'}")
    if not common:
        raise NotThereError("the Runs have no split with samples in common: ask the same questions of both models")
    name = split or common[0]
    tables = sample_table(before, name), sample_table(after, name)
    # kept with the second Run, and made anew where the first one's table is another
    kept = after.kept(("paired", name), dict[int, Pair])
    pair = kept.get(id(tables[0]))
    if pair is None:
        kept.clear()
        pair = kept[id(tables[0])] = _pair(*tables)
    return name, pair


def two_runs(library: Library) -> tuple[RunReader, RunReader]:
    """Both Runs."""
    if len(library) < 2:
        raise NotThereError("only one Run is shown: start `weakspot view RUN OTHER` to compare two")
    return library.run(0), library.run(1)


def _pair(before: SampleTable, after: SampleTable) -> Pair:
    matches = pc.index_in(after.ids, value_set=before.ids).fill_null(-1)
    first = np.asarray(matches.to_numpy(zero_copy_only=False), dtype=np.int64)
    second = np.flatnonzero(first >= 0)
    places = first[second], second
    correct = [correct_samples(table)[rows] for table, rows in zip((before, after), places, strict=True)]
    outcome = np.select(
        [(correct[0] == 1) & (correct[1] == 0), (correct[0] == 0) & (correct[1] == 1), correct[0] + correct[1] == 0,
         correct[0] + correct[1] == 2], [0, 1, 2, 3], default=4,
    )  # fmt: skip
    both = (name for name, column in before.columns.items() if name in after.columns)
    alike = tuple(name for name in both if before.columns[name].kind == after.columns[name].kind)
    return Pair((before, after), places, outcome, alike)


def correct_samples(table: SampleTable) -> NDArray[np.float64]:
    """Whether each sample is predicted correctly, 1 or 0; NaN where that is not known."""
    correct = column_called(table, "correct")
    if correct is not None and correct.kind == "flag":
        return correct.numbers
    target, prediction = column_called(table, "target"), column_called(table, "prediction")
    if target is None or prediction is None or target.kind != "text" or prediction.kind != "text":
        return np.full(len(table), np.nan)
    codes_of = {text: float(number) for number, text in enumerate(target.texts)}
    same = np.array([codes_of.get(text, -1.0) for text in prediction.texts] + [np.nan])
    codes = np.nan_to_num(prediction.numbers, nan=len(prediction.texts)).astype(np.int64)
    both = ~(np.isnan(prediction.numbers) | np.isnan(target.numbers))
    return np.where(both, (same[codes] == target.numbers).astype(float), np.nan)


@router.get("")
def compare(
    request: Request,
    split: Split = None,
    outcome: Annotated[
        list[Outcome], Parameter(max_length=len(OUTCOMES), description="Only samples with one of these.")
    ] = [],  # noqa: B006 - FastAPI copies it
    search: Annotated[str, Parameter(max_length=200, description="Part of the id.")] = "",
    sort: Annotated[
        str,
        Parameter(max_length=300, description="before., after. or change. and a column; with - for descending."),
    ] = "",
    offset: Annotated[int, Parameter(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Parameter(ge=0, le=MOST_ROWS)] = 100,
) -> Response:
    """Samples that both Runs have, with their predictions before and after, and their other values."""
    runs = two_runs(request.app.state.library)
    name, pair = paired(runs, split)
    chosen = _selected(pair, outcome, search, sort)
    counts = np.bincount(pair.outcome, minlength=len(OUTCOMES)).tolist()
    sides = [len(table) for table in pair.tables]
    return as_json(
        {
            "runs": [run.name for run in runs],
            "split": name,
            "samples": sides,
            "total": len(pair.outcome),
            "outcomes": dict(zip(OUTCOMES, counts, strict=True)),
            "matching": len(chosen),
            "offset": offset,
            "pictures": [pictures_of(run, name).described() for run in runs],
            "columns": [described(pair.tables[1].columns[column]) for column in pair.columns],
            "rows": list(_rows(runs, name, pair, chosen[offset : offset + limit])),
        }
    )


def _selected(pair: Pair, outcomes: list[Outcome], search: str, sort: str) -> Places:
    chosen = np.ones(len(pair.outcome), dtype=bool)
    if outcomes:
        chosen &= np.isin(pair.outcome, [OUTCOMES.index(one) for one in outcomes])
    if search:
        matches = pc.match_substring(pair.tables[1].lowered, search.lower())
        chosen &= np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool)[pair.places[1]]
    places = np.flatnonzero(chosen)
    return places[_order(pair, sort, places)] if sort else places[np.argsort(pair.outcome[places], kind="stable")]


def _order(pair: Pair, sort: str, places: Places) -> Places:
    side, _, column = sort.removeprefix("-").partition(".")
    if side not in SIDES or column not in pair.columns:
        raise ConfigError(f"cannot sort by {sort[:80]!r}: expected before., after. or change. and a common column")
    values = [pair.numbers(column, number)[places] for number in (0, 1)]
    by = values[1] - values[0] if side == "change" else values[SIDES.index(side)]
    return np.argsort(-by if sort.startswith("-") else by, kind="stable")


def _rows(runs: Sequence[RunReader], split: str, pair: Pair, shown: Places) -> Iterator[dict[str, Any]]:
    places = [side[shown] for side in pair.places]
    values = [
        list(zip(*(table.columns[name].values(side) for name in pair.columns), strict=True)) or [()] * len(shown)
        for table, side in zip(pair.tables, places, strict=True)
    ]
    pictured = [pictures_of(run, split).has(side) for run, side in zip(runs, places, strict=True)]
    names = pair.tables[1].names(places[1])
    for row, name in enumerate(names):
        yield {
            "id": name,
            "outcome": OUTCOMES[pair.outcome[shown[row]]],
            "positions": [int(side[row]) for side in places],
            "pictures": [bool(side[row]) for side in pictured],
            "before": list(values[0][row]),
            "after": list(values[1][row]),
        }


@router.get("/numbers")
def differences(request: Request) -> Response:
    """What both Runs say: each fact once with its verdict, the groups that differ, and every number."""
    from weakspot.compare import flips_of, main_differences  # scipy takes long to load, and few ask for this

    before, after = two_runs(request.app.state.library)
    found: dict[str, tuple[Finding, list[Difference]]] = {}
    groups: list[dict[str, Any]] = []
    notes = []
    named: dict[str, Any] = {}
    try:
        named = named_groups(before.names(), before.finding)
    except WeakspotError as error:
        notes.append(str(error))
    wanted = {name for run in (before, after) for name in asked(run.manifest())}
    common = [name for name in before.names() if name in after.names() and name in wanted]
    for name in sorted(common, key=lambda name: not name.startswith("performance.")):
        try:
            pair = before.finding(name), after.finding(name)
            found[name] = pair[1], _differences(*pair)
            changes = None if groups else flips_of(*pair, named=named)
            groups += [] if changes is None else [_group(one) for one in changes.groups if one.verdict]
        except WeakspotError as error:
            notes.append(str(error))
        except Exception as error:  # tables of a damaged Run can be of any kind
            notes.append(f"{name} cannot be compared: {type(error).__name__}; is a table damaged?")
    told = {
        "runs": [before.name, after.name],
        "main": [_told(one) for one in main_differences(found)],
        "groups": groups,
        "differences": [_told(one) for _, of_finding in found.values() for one in of_finding],
        "notes": notes,
    }
    return as_json(told)


def _differences(before: Finding, after: Finding) -> "list[Difference]":
    from weakspot.compare import compare_findings

    return list(compare_findings(before, after))


def _told(one: "Difference") -> dict[str, Any]:
    return {key: finite(value) for key, value in vars(one).items()} | {"verdict": one.verdict, "label": label(one.name)}


def _group(one: "GroupDifference") -> dict[str, Any]:
    return {key: finite(value) for key, value in vars(one).items()} | {"verdict": one.verdict}
