"""Rows: written as they are made, read in the order of the data."""

import json

import numpy as np
import pytest
import torch

from tests.core.helpers import Counting, Keep, numbered
from weakspot.core.driver import examine
from weakspot.core.errors import ProbeError, RunError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.look import Original
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, RowWriter
from weakspot.core.subject import Subject

IDS = [f"id-{i}" for i in range(10)]


def written(folder, *appends):
    """One shard with these appends, each (positions, columns)."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = RowWriter(folder, "rows")
    try:
        for positions, columns in appends:
            writer.append(np.array(positions, dtype=np.int64), columns)
        writer.finish()
    finally:
        writer.close()
    return folder


def table(tmp_path, *shards):
    return RowTable("rows", list(shards), tmp_path / "scratch", IDS)


def test_several_records_per_sample_none_and_one(tmp_path):
    rows = table(
        tmp_path,
        written(tmp_path / "a", ([0, 0, 2], {"x": [1, 2, 3]}), ([3], {"x": [4]})),
        written(tmp_path / "b", ([5, 5, 5, 8], {"x": [5, 6, 7, 8]})),
    )
    assert rows.count == 8
    assert rows.ids == ["id-0", "id-0", "id-2", "id-3", "id-5", "id-5", "id-5", "id-8"]
    assert rows["x"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rows["sample"].tolist() == [0, 0, 2, 3, 5, 5, 5, 8]
    assert [block.tolist() for block in rows.blocks("x")] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert sorted(rows) == ["sample", "x"]
    assert len(rows) == 2


def test_records_appended_look_by_look_come_back_sample_by_sample(tmp_path):
    appends = [([0, 1, 2], {"look": [look] * 3, "value": [[look, s] for s in range(3)]}) for look in range(4)]
    rows = table(tmp_path, written(tmp_path / "a", *appends))
    assert rows["sample"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert rows["look"].tolist() == [0, 1, 2, 3] * 3
    assert rows["value"].tolist() == [[look, s] for s in range(3) for look in range(4)]


def test_unsorted_within_one_append(tmp_path):
    rows = table(tmp_path, written(tmp_path / "a", ([4, 1, 4, 0], {"x": [10.0, 20.0, 30.0, 40.0]})))
    assert rows["x"].tolist() == [40.0, 20.0, 10.0, 30.0]


def test_sorting_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("weakspot.core.rows._BLOCK", 64)
    order = np.random.default_rng(0).permutation(50)
    folder = tmp_path / "a"
    folder.mkdir()
    writer = RowWriter(folder, "rows")
    writer.append(order, {"x": order * 10, "wide": np.repeat(order[:, None], 40, 1)})
    writer.finish()
    rows = RowTable("rows", [folder], tmp_path / "scratch", [str(i) for i in range(50)])
    assert rows["x"].tolist() == [10 * i for i in range(50)]
    assert (rows["wide"] == np.arange(50)[:, None]).all()
    assert sorted(path.name for path in folder.iterdir()) == ["rows.json", "rows.sample", "rows.wide", "rows.x"]


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False]),
        np.array([1, -2], dtype=np.int8),
        np.array([1.5, np.nan], dtype=np.float16),
        np.array([1 + 2j, 3]),
        np.arange(12.0).reshape(2, 3, 2),
        np.zeros((2, 0)),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        [1, 2],
    ],
)
def test_what_goes_in_comes_out(tmp_path, values):
    rows = table(tmp_path, written(tmp_path / "a", ([0, 1], {"x": values})))
    expected = values.detach().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    assert rows["x"].dtype == expected.dtype
    np.testing.assert_array_equal(rows["x"], expected)


def test_not_contiguous_and_bfloat16(tmp_path):
    values = torch.arange(6.0).reshape(3, 2).T
    rows = table(tmp_path, written(tmp_path / "a", ([0, 1], {"x": values, "b": values.to(torch.bfloat16)})))
    assert rows["x"].tolist() == rows["b"].tolist() == values.tolist()
    assert rows["b"].dtype == np.float32


def test_read_rows_are_mapped_and_cannot_be_written(tmp_path):
    rows = table(tmp_path, written(tmp_path / "a", ([0], {"x": [1.0], "large": np.ones((1, 1 << 14))})))
    assert isinstance(rows["large"], np.memmap)
    for name in ("x", "large"):
        with pytest.raises(ValueError, match="read-only"):
            rows[name][0] = 2


def test_no_records_in_some_shard(tmp_path):
    empty = ([], {"x": np.empty((0, 3)), "n": np.empty(0, dtype=np.int64)})
    full = ([1], {"x": [[1.0, 2.0, 3.0]], "n": [7]})
    rows = table(tmp_path, written(tmp_path / "a", empty), written(tmp_path / "b", empty, full, empty))
    assert rows["x"].tolist() == [[1.0, 2.0, 3.0]]
    assert rows.ids == ["id-1"]
    assert len(list(rows.blocks("x"))) == 1


def test_no_records_at_all(tmp_path):
    rows = table(tmp_path, written(tmp_path / "a", ([], {"x": np.empty((0, 3))})))
    assert rows.count == 0
    assert rows.ids == []
    assert rows["x"].shape == (0, 3)
    assert list(rows.blocks("x")) == []


def test_nothing_ever_appended(tmp_path):
    rows = table(tmp_path, written(tmp_path / "a"))
    assert (rows.count, rows.ids, list(rows)) == (0, [], [])
    with pytest.raises(KeyError, match="x"):
        _ = rows["x"]


@pytest.mark.parametrize(
    ("appends", "message"),
    [
        (
            [([0], {"x": [1]}), ([1], {"x": [1.5]})],
            r"column 'x' changed from ColumnType\(dtype='<i8'.*to ColumnType\(dtype='<f8'",
        ),
        ([([0], {"x": [1]}), ([1], {"x": [[1]]})], r"column 'x' changed .*records must be alike .*repeat its id"),
        ([([0], {"x": [1]}), ([1], {"y": [1]})], r"columns \['sample', 'y'\] after \['sample', 'x'\]"),
        ([([0, 1], {"x": [1]})], r"column 'x' has 1 records for 2 ids"),
        ([([0, 1], {"x": 5.0})], r"column 'x' has a single number for 2 ids"),
        ([([0], {"x": ["text"]})], r"column 'x' has type <U4; expected numbers"),
        ([([0], {"x": [None]})], r"column 'x' has type object; expected numbers"),
        ([([0], {"sample": [1]})], r"the name 'sample' is taken, call the column something else"),
        ([([0], {"json": [1]})], r"the name 'json' is taken"),
    ],
)
def test_records_that_do_not_fit_are_refused(tmp_path, appends, message):
    with pytest.raises(ProbeError, match=message):
        written(tmp_path / "a", *appends)


def test_shards_that_do_not_fit_each_other_are_refused(tmp_path):
    first, second = written(tmp_path / "a", ([0], {"x": [1]})), written(tmp_path / "b", ([1], {"x": [1.0]}))
    with pytest.raises(ProbeError, match="column 'x' differs between shards"):
        table(tmp_path, first, second)


def test_a_full_disk_is_reported_with_the_place(tmp_path, monkeypatch):
    writer = RowWriter(tmp_path / "missing", "rows")
    with pytest.raises(RunError, match=r"cannot write .*missing: No such file or directory; check free space"):
        writer.append(np.array([0]), {"x": [1]})


def test_the_index_says_what_the_files_hold(tmp_path):
    written(tmp_path / "a", ([0, 1], {"x": np.zeros((2, 3), dtype=np.float32)}))
    index = json.loads((tmp_path / "a" / "rows.json").read_text())
    assert index == {"count": 2, "columns": {"sample": ["<i8", []], "x": ["<f4", [3]]}}
    assert (tmp_path / "a" / "rows.x").stat().st_size == 2 * 3 * 4


@pytest.mark.parametrize(
    "cut", [{"batch_size": 2, "shard_size": 3}, {"batch_size": 64}, {"batch_size": 1, "shard_size": 1}]
)
def test_rows_of_an_examination_do_not_depend_on_how_it_is_cut(cut):
    net = Counting()
    looks = ((Original(), 3),)
    (found,) = examine(
        Subject(net), numbered(7), [Keep(looks=looks)], execution=ExecutionOptions(**{"workers": 0, **cut})
    )
    with torch.no_grad():
        outputs = net(numbered(7).read(np.arange(7)).inputs)
    assert found.arrays["look"].tolist() == [0, 1, 2] * 7
    np.testing.assert_array_equal(found.arrays["output"], outputs.repeat_interleave(3, 0).numpy())


class Odd(Probe):
    """Uses its rows wrongly, in the way that is chosen."""

    how: str

    kept = Rows()

    def observe(self, seen):
        if self.how == "stranger":
            self.kept.append(["nobody"], x=[1])
        elif self.how == "reads early":
            self.kept.read()

    def finish(self):
        if self.how == "writes late":
            self.kept.append(["s0"], x=[1])
        return self.finding()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("stranger", "rows 'kept': 'nobody' is no sample of this batch"),
        ("reads early", "rows 'kept' can be read in finish only"),
        ("writes late", "rows 'kept' can be written in observe and close only"),
    ],
)
def test_rows_used_at_the_wrong_time_or_for_strangers(how, message):
    with pytest.raises(ProbeError, match=message):
        examine(Subject(Counting()), numbered(3), [Odd(how=how)])


def test_rows_outlive_the_examination():
    class Mapped(Keep):
        """Hands its mapped rows on."""

        def finish(self) -> Finding:
            return self.finding(arrays={"output": self.kept.read()["output"]})

    (found,) = examine(Subject(Counting()), numbered(5), [Mapped()])
    assert found.arrays["output"].shape == (5, 2)
    assert np.isfinite(found.arrays["output"]).all()


def test_appends_without_records_fix_no_type(tmp_path):
    writer = RowWriter(tmp_path, "rows")
    writer.append(np.array([], dtype=int), {"x": []})
    writer.append(np.array([3]), {"x": [7]})
    writer.finish()
    assert RowTable("rows", [tmp_path], tmp_path / "joined", list("abcd"))["x"].dtype == np.int64


def test_shards_without_records_agree_with_any_other(tmp_path):
    for name, positions, values in (("none", [], []), ("some", [0], [7])):
        (tmp_path / name).mkdir()
        writer = RowWriter(tmp_path / name, "rows")
        writer.append(np.array(positions, dtype=int), {"x": values})
        writer.finish()
    table = RowTable("rows", [tmp_path / "none", tmp_path / "some"], tmp_path / "joined", ["a"])
    assert table["x"].tolist() == [7]
    assert RowTable("rows", [tmp_path / "none"], tmp_path / "again", ["a"])["x"].shape == (0,)
