import math

import pyarrow as pa
import pytest

from weakspot.core.outputs import Outputs
from weakspot.report.tables import TableCell, show_table


def cells(values: list[object], kind: pa.DataType | None = None, name: str = "x") -> list[TableCell]:
    return [row[0] for row in show_table(pa.table({name: pa.array(values, kind)}), Outputs()).rows]


def test_numbers_are_rounded_for_the_eye_and_exact_for_sorting() -> None:
    assert cells([0.047619047619047616]) == [TableCell("0.04762", "number", "0.047619047619047616")]
    assert cells([12200]) == [TableCell("12,200", "number", "12200")]


def test_identifiers_keep_their_digits_together() -> None:
    assert cells([12200], name="id")[0].text == "12200"
    assert cells([12200], name="patient_id")[0].text == "12200"
    assert cells([12200], name="valid")[0].text == "12,200"


def test_what_is_missing_has_no_number_to_sort_by() -> None:
    assert cells([None, math.nan], pa.float64()) == [
        TableCell("–", "number missing"),
        TableCell("not a number", "number missing"),
    ]
    assert cells([None], pa.string()) == [TableCell("–", "missing")]


def test_infinity_is_spelled_as_a_browser_reads_it() -> None:
    assert [cell.value for cell in cells([math.inf, -math.inf])] == ["Infinity", "-Infinity"]


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([True], pa.bool_(), "yes"),
        (["<b>"], pa.string(), "<b>"),
        (["a"], pa.dictionary(pa.int32(), pa.string()), "a"),
        ([[1.0, 2.5]], pa.list_(pa.float64()), "1, 2.5"),
        ([{"a": 1}], pa.struct([("a", pa.int64())]), "a: 1"),
        ([b"12345"], pa.binary(), "5 bytes"),
        ([1], pa.timestamp("ns"), "1970-01-01 00:00:00.000000001"),
    ],
)
def test_any_type_of_column_is_shown(values: list[object], kind: pa.DataType, text: str) -> None:
    assert cells(values, kind) == [TableCell(text)]


@pytest.mark.parametrize(
    ("rows", "columns", "extent"),
    [
        (2, 2, "2 rows"),
        (3, 2, "first 2 of 3 rows"),
        (1, 3, "1 row, first 2 of 3 columns"),
        (3, 3, "first 2 of 3 rows, first 2 of 3 columns"),
    ],
)
def test_the_extent_says_what_is_left_out(rows: int, columns: int, extent: str) -> None:
    table = pa.table({f"c{i}": list(range(rows)) for i in range(columns)})
    shown = show_table(table, Outputs(), rows=2, columns=2)
    assert shown.extent == extent
    assert len(shown.rows) == min(rows, 2) and len(shown.columns) == min(columns, 2)
    assert shown.cut is (rows > 2)


def test_columns_of_one_name_are_told_apart() -> None:
    table = pa.table([pa.array([1]), pa.array(["b"])], names=["same", "same"])
    assert [cell.text for cell in show_table(table, Outputs()).rows[0]] == ["1", "b"]


def test_a_table_without_rows_or_columns() -> None:
    assert show_table(pa.table({"x": pa.array([], pa.int64())}), Outputs()).extent == "0 rows"
    assert show_table(pa.table({}), Outputs()).rows == []
