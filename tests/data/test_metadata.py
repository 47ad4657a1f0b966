"""Metadata joined by id, from every kind of table."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from weakspot.core.errors import ConfigError, DataError
from weakspot.data.sources import ArraySource, WithMetadata
from weakspot.data.tables import typed

SOURCE = ArraySource(np.arange(3.0)[:, None], [0, 1, 0], ids=["a", "b", "c"])
COLUMNS = {"id": ["c", "a", "b"], "site": ["x", "y", "z"], "age": [30, 10, 20]}


def tables(folder):
    table = pa.table(COLUMNS)
    parquet.write_table(table, folder / "m.parquet")
    rows = zip(*COLUMNS.values(), strict=True)
    (folder / "m.csv").write_text("\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]))
    return [folder / "m.csv", str(folder / "m.parquet"), table, COLUMNS]


def test_rows_find_their_samples_whatever_the_table(tmp_path):
    prints = set()
    for table in tables(tmp_path):
        source = WithMetadata(SOURCE, table)
        batch = source.read(np.array([2, 0]))
        assert (batch.ids, batch.targets.tolist()) == (("c", "a"), [0, 0])
        assert {key: column.tolist() for key, column in batch.metadata.items()} == {"site": ["x", "y"], "age": [30, 10]}
        assert (source.ids, source.remarks) == (SOURCE.ids, ())
        prints.add(source.fingerprint())
    assert len(prints) == 1
    assert prints.isdisjoint({SOURCE.fingerprint(), WithMetadata(SOURCE, {**COLUMNS, "age": [1, 2, 3]}).fingerprint()})


def test_rows_of_other_samples_are_left_out_and_told_of():
    source = WithMetadata(SOURCE, {"id": [*"abcde"], "m": range(5)})
    assert source.read(np.arange(3)).metadata["m"].tolist() == [0, 1, 2]
    assert source.remarks == ("2 rows of the table belong to no sample and are left out",)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            {"id": ["a", "c"], "m": [1, 2]},
            DataError,
            r"no row for sample 'b' \(1 of 3 samples have none\); its ids look",
        ),
        ({"id": [*"abcb"], "m": [1, 2, 3, 4]}, DataError, "two samples have the id 'b' .*one row per sample"),
        ({"name": [*"abc"]}, ConfigError, r"the table has no column 'id' \(for id_column\): it has name"),
        ({"id": [*"abc"], "m": [1]}, DataError, "the columns of the table differ in length"),
        ({"id": "abc"}, DataError, "column 'id' of the table must be a list or an array, got str"),
        ([1, 2], ConfigError, "a table is a file, an Arrow table or a mapping of columns, got list"),
    ],
)
def test_tables_that_do_not_fit(table, error, message):
    with pytest.raises(error, match=message):
        WithMetadata(SOURCE, table)


def test_a_column_that_is_there_already_is_named():
    twice = WithMetadata(WithMetadata(SOURCE, COLUMNS), {"id": [*"abc"], "age": [1, 2, 3]})
    with pytest.raises(DataError, match="the data have metadata 'age' already: rename that column of the table"):
        twice.read(np.arange(3))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nonsense"])
def test_a_damaged_parquet_file(tmp_path, content):
    (tmp_path / "m.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*m.parquet as a Parquet file"):
        WithMetadata(SOURCE, tmp_path / "m.parquet")


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2", "0"], "i", [1, -2, 0]),
        (["1", "2.5", "1e3"], "f", [1, 2.5, 1000]),
        ([1, None, 3], "f", [1, np.nan, 3]),
        (["", "2", ""], "f", [np.nan, 2, np.nan]),
        (["01", "2", "3"], "O", ["01", "2", "3"]),
        (["", "", ""], "O", ["", "", ""]),
        (["a\ud800", "b", None], "O", ["a\\ud800", "b", ""]),
        ([True, False, True], "O", ["True", "False", "True"]),
        ([0.5, float("nan"), 2.0], "f", [0.5, np.nan, 2]),
    ],
)
def test_columns_are_numbers_only_where_every_cell_is(cells, kind, values):
    column = typed(cells)
    assert column.dtype.kind == kind
    np.testing.assert_array_equal(column, np.array(values, dtype=column.dtype))
