"""Findings: round trip of everything, versions, damage."""

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core import finding as module
from weakspot.core.digest import digest_file
from weakspot.core.errors import ConfigError, Damaged, RunError
from weakspot.core.finding import Estimate, Finding, Picture, table_of, verify

HOSTILE = [
    "",
    "../../etc/passwd",
    "a/b",
    "nul\0byte",
    'quo"te',
    "<script>",
    "line\nbreak",
    "ü 漢字 🙂",
    "a" * 5000,
    ".",
]


def everything() -> Finding:
    return Finding(
        name="room.probe",
        about="All there is: <b>&amp;</b> “quotes”",
        summary={
            "share": Estimate(0.1 + 0.2, 0.1, 0.9, 0.95, "a share"),
            "count": Estimate(2**60 + 1),
            "yes": Estimate(True),
            "word": Estimate("text"),
            "no word": Estimate(""),
            "none": Estimate(None, about="nothing to count"),
            "from numpy": Estimate(np.float64(0.5), np.float32(0.25), np.int64(1)),
            "tiny": Estimate(5e-324),
            "zero": Estimate(0, 0.0, 0.0),
        },
        table=pa.table(
            {
                "id": ["a", "b/ü", ""],
                "value": [1.0, float("nan"), None],
                "list": [[1], [], [2, 3]],
                "b": [True, None, False],
            }
        ),
        arrays={
            "plain": np.arange(6.0).reshape(2, 3),
            "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
            "scalar": np.array(2.5),
            "empty": np.zeros((0, 3), dtype=np.int8),
            "nan": np.array([np.nan, np.inf, -np.inf]),
            "flags": np.array([True, False]),
            "words": np.array(["ü", "bb"]),
            "big.endian-1": np.arange(3, dtype=">i4"),
        },
        media={
            key: Picture(bytes([i, 255]), caption)
            for i, (key, caption) in enumerate(zip(HOSTILE, HOSTILE[::-1], strict=True))
        },
        provenance={"parameters": {"b": [1, None], "a": {"deep": "ü"}}, "samples": 3},
    )


def test_everything_comes_back(tmp_path):
    made = everything()
    made.save(tmp_path / "x")
    verify(tmp_path / "x")
    back = Finding.load(tmp_path / "x")
    assert (back.name, back.about, back.provenance) == (made.name, made.about, made.provenance)
    assert list(back.summary.items()) == list(made.summary.items())
    assert back.table.drop_columns("value").equals(made.table.drop_columns("value"))
    assert str(back.table["value"].to_pylist()) == "[1.0, nan, None]"
    assert list(back.media.items()) == list(made.media.items())
    assert list(back.arrays) == list(made.arrays)
    for name, array in made.arrays.items():
        assert back.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(back.arrays[name], array, strict=True)
    assert back.digest == made.digest == digest_file(tmp_path / "x" / "finding.json")


def test_a_loaded_finding_saves_to_the_same_bytes(tmp_path):
    made = everything()
    replace(made, table=made.table.drop_columns("list")).save(tmp_path / "x")  # Parquet renames the items of lists
    Finding.load(tmp_path / "x").save(tmp_path / "y")
    names = sorted(path.name for path in (tmp_path / "x").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "y").iterdir())
    assert all((tmp_path / "x" / n).read_bytes() == (tmp_path / "y" / n).read_bytes() for n in names)


def test_only_plain_files_with_safe_names_are_written(tmp_path):
    everything().save(tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"x"}
    assert {path.suffix for path in (tmp_path / "x").iterdir()} == {".json", ".parquet", ".npy", ".png"}


def test_not_a_number_is_none():
    """JSON has no NaN, so an estimate without a value says so."""
    assert json.loads(Finding("x", summary={"a": Estimate(float("nan"))})._index)["summary"] == [["a", {"value": None}]]


def test_an_empty_finding_and_an_empty_table(tmp_path):
    for number, table in enumerate([None, pa.table({}), pa.table({"id": pa.array([], pa.string())})]):
        Finding("x", table=table).save(tmp_path / str(number))
        back = Finding.load(tmp_path / str(number))
        assert (back.table is None) == (table is None)
        assert table is None or back.table.equals(table)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a b", "ü", "a\n", "a\0", "-x"])
def test_names_that_cannot_be_files_are_refused(name):
    message = "cannot be a name: expected letters, digits"
    with pytest.raises(RunError, match=message):
        Finding(name)
    with pytest.raises(RunError, match=message):
        Finding("x", arrays={name: np.zeros(1)})


def test_provenance_that_is_no_json_is_refused():
    with pytest.raises(ConfigError, match="type object cannot be recorded"):
        _ = Finding("x", provenance={"a": object()}).digest


def test_arrays_of_objects_are_never_pickled(tmp_path):
    with pytest.raises(RunError, match=r"array of Python objects cannot be saved: use numbers or a table"):
        Finding("x", arrays={"a": np.array([object()])}).save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "other",
    [
        Finding("y"),
        Finding("x", about="b"),
        Finding("x", summary={"a": Estimate(1)}),
        Finding("x", table=pa.table({"a": [1]})),
        Finding("x", arrays={"a": np.zeros(1)}),
        Finding("x", arrays={"a": np.zeros(1, dtype=np.float32)}),
        Finding("x", media={"a": Picture(b"1", "")}),
        Finding("x", media={"a": Picture(b"1", "c")}),
        Finding("x", media={"b": Picture(b"1", "")}),
        Finding("x", provenance={"a": 1}),
    ],
)
def test_the_digest_covers_everything(other):
    plain = Finding("x")
    assert other.digest != plain.digest
    assert plain.with_provenance(a=1).digest == Finding("x", provenance={"a": 1}).digest


def test_estimates_print_shortly():
    assert str(Estimate(0.123456)) == "0.1235"
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.5 (0.25 to 0.75)"
    assert str(Estimate(None)) == "none"
    assert str(Estimate(123456)) == "123456"
    assert str(Estimate(True)) == "True"


@pytest.fixture
def saved(tmp_path):
    everything().save(tmp_path / "x")
    return tmp_path / "x"


def test_every_changed_byte_of_every_file_is_found(saved):
    """Every byte of the small files, a sample of the larger ones; the index itself is covered by the Run's manifest."""
    for path in sorted(saved.iterdir()):
        if path.name == "finding.json":
            continue
        original = path.read_bytes()
        for position in range(0, len(original), max(1, len(original) // 40)):
            changed = bytearray(original)
            changed[position] ^= 1
            path.write_bytes(changed)
            with pytest.raises(RunError, match=f"was changed after it was written: {path.name}; examine again"):
                verify(saved)
        path.write_bytes(original)
    verify(saved)


def test_missing_and_additional_files_are_found(saved):
    (saved / "plain.npy").unlink()
    (saved / "more.npy").write_bytes(b"")
    with pytest.raises(RunError, match=r"written: more\.npy, plain\.npy"):
        verify(saved)


@pytest.mark.parametrize(
    ("file", "damage"),
    [("picture-0000.png", "missing")]  # pictures are bytes, whatever they hold; `verify` finds a change
    + [
        (file, damage)
        for file in ("plain.npy", "table.parquet", "scalar.npy")
        for damage in ("missing", "empty", "cut short", "nonsense")
    ],
)
def test_a_damaged_finding_says_what_to_do(saved, file, damage):
    path = saved / file
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut short": content[: len(content) // 2], "nonsense": b"nonsense" * 9}[damage])
    with pytest.raises(RunError, match=r"x is damaged: .*; delete that folder and examine again"):
        Finding.load(saved)


@pytest.mark.parametrize("missing", ["files", "name", "about", "summary", "arrays", "media", "provenance"])
def test_an_index_without_an_entry_is_damaged(saved, missing):
    path = saved / "finding.json"
    index = json.loads(path.read_text())
    del index[missing]
    path.write_text(json.dumps(index))
    with pytest.raises(RunError, match=f"damaged: '{missing}'"):
        Finding.load(saved)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"provenance": []}, "'provenance' is no mapping"),
        ({"summary": [["a", 5]]}, ""),
        ({"summary": [["a", {"value": []}]]}, "a number of its summary is none"),
        ({"summary": [["a", {"value": 1, "low": "0"}]]}, "a number of its summary is none"),
        ({"summary": [["a", {"value": 10**400}]]}, "a number of its summary is none"),
    ],
)
def test_entries_of_another_kind_are_damaged(saved, entry, said):
    path = saved / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entry}))
    with pytest.raises(RunError, match=f"x is damaged: {said}"):
        Finding.load(saved)


def test_an_index_that_is_nested_too_deep_is_damaged(saved):
    (saved / "finding.json").write_text("[" * 100_000)
    with pytest.raises(RunError, match="is damaged: it is nested too deep"):
        Finding.load(saved)


def test_what_is_no_plain_file_is_refused(saved):
    os.mkfifo(saved / "pipe")  # reading it would never end
    with pytest.raises(RunError, match="pipe: it is a FIFO, expected a plain file"):
        verify(saved)
    (saved / "pipe").unlink()
    (saved / "plain.npy").rename(saved.parent / "plain.npy")
    (saved / "plain.npy").symlink_to(saved.parent / "plain.npy")
    with pytest.raises(RunError, match=r"plain\.npy: it is a link"):
        verify(saved)


def test_a_newer_version_is_refused(saved):
    path = saved / "finding.json"
    path.write_text(path.read_text().replace('"version":2', '"version":3'))
    message = r"finding.json has format version 3, this weakspot reads up to 2: upgrade weakspot"
    for read in (Finding.load, verify):
        with pytest.raises(RunError, match=message):
            read(saved)


def test_an_older_version_opens(saved, monkeypatch):
    monkeypatch.setattr(module, "VERSION", 3)
    monkeypatch.setitem(module.UPGRADES, 2, lambda index: {**index, "about": "brought up to date"})
    back = Finding.load(saved)
    assert back.about == "brought up to date"
    assert back.summary["word"] == Estimate("text")
    assert back.digest == digest_file(saved / "finding.json")


def test_a_version_that_nobody_upgrades_is_refused(saved, monkeypatch):
    monkeypatch.setattr(module, "VERSION", 3)
    with pytest.raises(RunError, match="has format version 2, which this weakspot no longer reads: examine again"):
        Finding.load(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "finding.json is damaged: .*restore it or examine again"),
        ("{", "is damaged"),
        ("[]", "is not a weakspot-finding file; is this a weakspot run?"),
        ('{"format": "weakspot-run", "version": 1}', "is not a weakspot-finding file"),
        ('{"format": "weakspot-finding"}', "is damaged: it says no format version"),
        ('{"format": "weakspot-finding", "version": "1"}', "is damaged: it says no format version"),
        ("\udcff", "is damaged"),
    ],
)
def test_what_is_no_index_is_refused(saved, content, message):
    (saved / "finding.json").write_text(content, errors="surrogateescape")
    with pytest.raises(RunError, match=message):
        Finding.load(saved)


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(
        RunError, match=r"cannot read .*finding.json: No such file or directory; is this a weakspot run"
    ):
        Finding.load(tmp_path / "nowhere")


def test_saving_replaces_what_was_there(saved):
    Finding("other", arrays={"a": np.zeros(2)}).save(saved)
    verify(saved)
    assert Finding.load(saved).name == "other"
    assert {path.name for path in saved.iterdir()} == {"finding.json", "a.npy"}
    assert {path.name for path in saved.parent.iterdir()} == {"x"}


def test_a_finding_that_is_mapped_survives_being_replaced(saved):
    loaded = Finding.load(saved)
    Finding("other").save(saved)
    assert loaded.arrays["plain"].sum() == 15
    shutil.rmtree(saved)
    assert loaded.arrays["plain"].sum() == 15


def test_an_exception_while_saving_leaves_the_old_one_and_nothing_else(saved, monkeypatch):
    before = digest_file(saved / "finding.json")

    def breaks(array, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_array", breaks)
    with pytest.raises(RunError, match=r"cannot write .*x: No space left on device; check free space and permissions"):
        Finding("other", arrays={"a": np.zeros(2)}).save(saved)
    assert digest_file(saved / "finding.json") == before
    assert {path.name for path in saved.parent.iterdir()} == {"x"}


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*file/x: Not a directory"):
        Finding("x").save(tmp_path / "file" / "x")


def test_a_notebook_shows_numbers_rows_and_pictures_and_runs_no_name():
    hostile = "<script>alert(1)</script>"
    columns = {"id": np.array([hostile, *map(str, range(9))]), "when": np.arange(10).astype("datetime64[ns]")}
    found = Finding(
        "x",
        about=hostile,
        summary={hostile: Estimate(0.5, 0.25, 0.75, 0.95, hostile)},
        table=table_of(columns),
        media={f'"{i}': Picture(b"png", hostile) for i in range(5)},
    )
    shown = found._repr_html_()
    assert "<script>" not in shown and "0.5 (0.25 to 0.75)" in shown
    assert shown.count("<table>") == 2 and shown.count("<tr>") == 2 + 6 and shown.count("<img ") == 3
    assert 'src="data:image/png;base64,cG5n"' in shown and 'alt="Picture &quot;0"' in shown
    assert Finding("bare")._repr_html_() == "<p><b>bare</b> </p>"


def test_too_many_open_files_are_no_damage(saved, monkeypatch):
    def full(path, flags, mode=0o777):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    monkeypatch.setattr(os, "open", full)
    for read in (Finding.load, Finding.load_head, verify):
        with pytest.raises(RunError, match=r"may open no more files; nothing is damaged: raise the limit") as caught:
            read(saved)
        assert not isinstance(caught.value, Damaged)


OPEN_FILES = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="the system does not list a process's open files")
def test_small_arrays_of_a_loaded_finding_hold_no_file_open(tmp_path):
    arrays = {f"a{number}": np.arange(100.0) for number in range(50)}
    Finding("room.probe", arrays={**arrays, "large": np.zeros(1 << 20)}).save(tmp_path / "f")
    before = len(list(OPEN_FILES.iterdir()))
    loaded = Finding.load(tmp_path / "f")
    assert len(list(OPEN_FILES.iterdir())) == before + 1
    assert isinstance(loaded.arrays["large"], np.memmap) and not loaded.arrays["a0"].flags.writeable
