"""Root causes, ranked: each rule with its error rates, and wrong members beside correct ones like them."""

from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.causes.slice_examples import example_ids
from weakspot.report.headlines import answer
from weakspot.viewer.finding_access import plain_rows, rows_in
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import pictures_of
from weakspot.viewer.responses import as_json
from weakspot.viewer.sample_table import SampleTable, column_called, sample_table
from weakspot.viewer.splits import split_of

router = APIRouter(prefix="/api")
FINDING = "causes.error_slices"
_EXAMPLES = {"incorrect": "incorrect_examples", "correct": "correct_examples"}


@router.get("/causes")
def causes(run: Chosen) -> Response:
    """Every rule for errors in its order, with its typical images and the filters that list its samples."""
    finding = run.finding(FINDING)
    split = split_of(run, finding)
    table = None if split is None else sample_table(run, split)
    told = any(not headline.further for headline in finding.answers())
    rows = rows_in(finding, "slice", "status", "rule", *_EXAMPLES.values()) if finding.table is not None else []
    return as_json(
        {
            "about": finding.about,
            "answer": "".join(part.text for part in answer("causes", [finding]).sentence) if told else "",
            "split": split,
            "pictures": None if split is None else pictures_of(run, split).described(),
            "causes": [_cause(row, table) for row in plain_rows(rows)],
            "doubtful": _doubtful(finding.arrays, table),
        }
    )


def _cause(row: dict[str, Any], table: SampleTable | None) -> dict[str, Any]:
    examples = {} if table is None else {name: _examples(str(row[of]), table) for name, of in _EXAMPLES.items()}
    of_rule = None if table is None else column_called(table, "slice")
    correct = None if table is None else column_called(table, "correct")
    rule = [] if of_rule is None else [f"{of_rule.name}:is:{row['slice']}"]
    answers = {name: [f"{correct.name}:is:{'yes' if name == 'correct' else 'no'}"] for name in _EXAMPLES if correct}
    return {**row, **examples, "filters": {name: rule + answers.get(name, []) for name in _EXAMPLES} if rule else {}}


def _examples(text: str, table: SampleTable) -> list[dict[str, Any]]:
    """The typical images with their places and what is predicted in place of what."""
    places = {part: int(table.places([part])[0]) for part in example_ids(text, _Known(table))}
    return [{"id": name, "position": place, "line": _line(table, place)} for name, place in places.items()]


class _Known:
    """The ids of a table as a collection."""

    def __init__(self, table: SampleTable):
        self._table = table

    def __contains__(self, name: object) -> bool:
        return bool(self._table.places([str(name)])[0] >= 0)

    def __iter__(self) -> Any:
        return iter(self._table.ids.to_pylist())

    def __len__(self) -> int:
        return len(self._table)


def _line(table: SampleTable, place: int) -> str:
    columns = [column_called(table, name) for name in ("target", "prediction")]
    target, prediction = (None if one is None else one.values(np.array([place]))[0] for one in columns)
    if target is None or prediction is None:
        return ""
    return str(prediction) if target == prediction else f"{target} → {prediction}"


def _doubtful(arrays: Any, table: SampleTable | None) -> list[dict[str, Any]]:
    """Errors whose label may be wrong."""
    names, kinds = (arrays.get(f"doubtful_{part}") for part in ("id", "kind"))
    if table is None or names is None or kinds is None or names.dtype.kind != "U" or names.shape != kinds.shape:
        return []
    places = table.places(names).tolist()
    return [
        {"id": str(name), "position": place, "line": str(kind)}
        for name, kind, place in zip(names, kinds, places, strict=True)
        if place >= 0
    ]
