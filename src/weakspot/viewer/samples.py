"""Samples page by page, filtered and sorted, and as a CSV file."""

import csv
import io
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Depends
from fastapi import Query as Parameter
from fastapi.responses import Response, StreamingResponse

from weakspot.core.errors import ConfigError
from weakspot.formatting import csv_cell, label
from weakspot.viewer.columns import Places, SampleColumn
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import pictures_of, read_positions
from weakspot.viewer.responses import NO_STORE, CsvFile, Numbers, as_json
from weakspot.viewer.sample_table import SampleTable, sample_table
from weakspot.viewer.selection import Query, selected
from weakspot.viewer.splits import chosen_split, sampled_splits

router = APIRouter(prefix="/api")
MOST_ROWS = 500
MOST_FILTERS = 32
_BLOCK = 2000
"""Rows of a CSV file that are made at once."""

Split = Annotated[str | None, Parameter(max_length=200, description="A split; by default the test data.")]
ColumnName = Annotated[str, Parameter(max_length=300, description="One of those that /api/samples lists.")]


def asked(
    search: Annotated[str, Parameter(max_length=200, description="Part of the id.")] = "",
    filter: Annotated[
        list[Annotated[str, Parameter(max_length=1000)]],
        Parameter(max_length=MOST_FILTERS, description="column:operator:value; is, not, below, above or has."),
    ] = [],  # noqa: B006 - FastAPI copies it
    sort: Annotated[str, Parameter(max_length=300, description="A column; with - before it for descending.")] = "",
) -> Query:
    """The selection that a request describes."""
    return Query(search, tuple(filter), sort)


Asked = Annotated[Query, Depends(asked)]


@router.get("/samples")
def samples(
    run: Chosen,
    query: Asked,
    split: Split = None,
    offset: Annotated[int, Parameter(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Parameter(ge=0, le=MOST_ROWS)] = 100,
) -> Response:
    """Some of the samples that a query leaves, with all that is known of them."""
    name = chosen_split(run, split)
    table, places = sample_table(run, name), selected(run, name, query)
    shown = places[offset : offset + limit]
    kept = pictures_of(run, name)
    return as_json(
        {
            "split": name,
            "splits": sampled_splits(run),
            "total": len(table),
            "matching": len(places),
            "offset": offset,
            "pictures": kept.described(),
            "columns": [described(column) for column in table.columns.values()],
            "rows": rows(table, shown, kept.has(shown)),
        }
    )


def described(column: SampleColumn) -> dict[str, Any]:
    """A column as the browser needs it to offer filters."""
    low, high = column.range
    return {
        "name": column.name,
        "label": label(column.bare.removeprefix("metadata.")) + _whose(column),
        "finding": column.finding,
        "kind": column.kind,
        "whole": column.whole,
        "about": column.about,
        "low": low,
        "high": high,
        "values": column.frequent,
    }


def _whose(column: SampleColumn) -> str:
    return "" if column.bare == column.name else f" ({label(column.finding).lower()})"


def rows(table: SampleTable, places: Places, pictured: np.ndarray) -> list[dict[str, Any]]:
    """Samples with the values of every column, in the order of the columns."""
    columns = [column.values(places) for column in table.columns.values()]
    values = zip(*columns, strict=True) if columns else [()] * len(places)
    together = zip(places.tolist(), table.names(places), pictured.tolist(), values, strict=True)
    return [{"position": p, "id": name, "picture": has, "values": list(row)} for p, name, has, row in together]


@router.get("/samples/rows")
def rows_of_positions(
    run: Chosen, positions: Annotated[str, Parameter(max_length=4000, description="As 1,2,3.")], split: Split = None
) -> Response:
    """All that is known of up to 256 samples, given by their positions, in that order."""
    name = chosen_split(run, split)
    table = sample_table(run, name)
    places = np.array(read_positions(positions, len(table)), dtype=np.int64)
    return as_json({"split": name, "rows": rows(table, places, pictures_of(run, name).has(places))})


@router.get("/samples/positions", response_class=Numbers)
def positions(run: Chosen, query: Asked, split: Split = None) -> Response:
    """The positions of all samples that a query leaves, as int32 in its order, little-endian."""
    places = selected(run, chosen_split(run, split), query)
    return Response(places.astype("<i4").tobytes(), headers=NO_STORE, media_type="application/octet-stream")


@router.get("/samples/column", response_class=Numbers)
def column_values(run: Chosen, column: ColumnName, split: Split = None) -> Response:
    """One column for every sample as float32, little-endian; texts by their place among the column's texts."""
    table = sample_table(run, chosen_split(run, split))
    values = named_column(table, column)
    return Response(values.numbers.astype("<f4").tobytes(), headers=NO_STORE, media_type="application/octet-stream")


@router.get("/samples/texts")
def column_texts(run: Chosen, column: ColumnName, split: Split = None) -> Response:
    """The texts of a column, in the order that /api/samples/column counts them in."""
    return as_json({"texts": named_column(sample_table(run, chosen_split(run, split)), column).texts})


def named_column(table: SampleTable, name: str) -> SampleColumn:
    """A column of the table."""
    if name not in table.columns:
        raise ConfigError(f"there is no column {name[:80]!r}: expected one of those that /api/samples lists")
    return table.columns[name]


@router.get("/samples.csv", response_class=CsvFile)
def csv_of_query(run: Chosen, query: Asked, split: Split = None) -> Response:
    """The samples that a query leaves as a CSV file."""
    name = chosen_split(run, split)
    return _csv(sample_table(run, name), selected(run, name, query))


@router.post("/samples.csv", response_class=CsvFile)
def csv_of_positions(
    run: Chosen,
    positions: Annotated[list[Annotated[int, Parameter(ge=0)]], Body(embed=True, max_length=1_000_000)],
    split: Split = None,
) -> Response:
    """Chosen samples as a CSV file, in the order in which they were chosen."""
    table = sample_table(run, chosen_split(run, split))
    beyond = next((position for position in positions if position >= len(table)), None)
    if beyond is not None:
        raise ConfigError(f"there is no sample at position {beyond}: the split has {len(table)}")
    return _csv(table, np.array(positions, dtype=np.int64))


def _csv(table: SampleTable, places: Places) -> Response:
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="samples.csv"'}
    return StreamingResponse(csv_lines(table, places), media_type="text/csv; charset=utf-8", headers=headers)


def csv_lines(table: SampleTable, places: Places) -> Iterator[str]:
    """A CSV file piece by piece; no cell is taken for a formula by a spreadsheet, which knows UTF-8 by the mark."""
    yield "\ufeff" + _lines([["id", *map(csv_cell, table.columns)]])
    for start in range(0, len(places), _BLOCK):
        block = places[start : start + _BLOCK]
        cells = (column.values(block) for column in table.columns.values())
        names = map(csv_cell, table.names(block))
        yield _lines([[_cell(value) for value in row] for row in zip(names, *cells, strict=True)])


def _lines(block: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(block)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else csv_cell(value) if isinstance(value, str) else value
