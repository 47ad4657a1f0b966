"""Files that somebody else may have made: never waited for, never behind a link, never larger than expected."""

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from weakspot.core import guarded_open, guarded_table
from weakspot.core.digest import digest_file
from weakspot.core.guarded_open import check_fits, check_plain, map_array, open_plain, parse_json, read_json, read_plain
from weakspot.core.guarded_table import read_table

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def folder(tmp_path):
    """One of each kind that a path can lead to."""
    (tmp_path / "plain").write_bytes(b"0123456789")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "link to fifo").symlink_to("fifo")
    (tmp_path / "lost").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(tmp_path / "socket"))
        yield tmp_path


OPENERS = {
    "check": check_plain,
    "open": lambda path, **how: open_plain(path, **how).close(),
    "read": lambda path, **how: read_plain(path, most=99, **how),
    "json": read_json,
    "array": map_array,
    "table": read_table,
    "digest": digest_file,
}


@pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fifo", "it is a FIFO"),
        ("folder", "it is a folder"),
        ("device", "it is a device"),
        ("socket", "it is a socket"),
        ("link to fifo", "it is a FIFO"),
        ("lost", "No such file"),
        ("none", "No such file"),
    ],
)
def test_what_is_no_plain_file_is_refused_and_not_waited_for(folder, opener, name, told):
    with pytest.raises(OSError) as refused:
        opener(folder / name, links=True)
    assert refused.value.strerror.startswith(told)
    assert refused.value.filename == str(folder / name)


@pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)
@pytest.mark.parametrize("name", ["link", "device", "link to fifo", "lost"])
def test_links_are_refused_where_they_are_not_wanted(folder, opener, name):
    with pytest.raises(OSError, match="it is a link, which could lead anywhere") as refused:
        opener(folder / name, links=False)
    assert refused.value.errno == errno.ELOOP


def test_a_plain_file_is_read(folder):
    assert read_plain(folder / "plain", most=10, links=False) == read_plain(folder / "link", most=10) == b"0123456789"
    with pytest.raises(OSError, match="it has 10 bytes, expected 9 at most"):
        read_plain(folder / "plain", most=9)


def test_what_becomes_a_link_or_a_fifo_meanwhile_is_refused_too(folder, monkeypatch):
    monkeypatch.setattr(guarded_open, "check_plain", lambda path, **how: None)
    with pytest.raises(OSError, match="it is a FIFO"):
        open_plain(folder / "fifo")
    with pytest.raises(OSError, match="levels of symbolic links"):
        open_plain(folder / "link", links=False)


def test_what_does_not_say_how_large_it_is_is_read_no_further():
    """As files of the system do."""
    with pytest.raises(OSError, match="it has more than 8 bytes"):
        read_plain("/proc/self/maps", most=8)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ("[" * 500 + "]" * 500, "it is nested too deeply"),
        ('{"a":' * 150 + "1" + "}" * 150, "it is nested too deeply"),
        (r'{"a": "\ud800"}', "it holds half of a surrogate pair"),
        (r'{"\udfff": 1}', "it holds half of a surrogate pair"),
        ("{", "Expecting"),
    ],
)
def test_json_that_python_cannot_deal_with_is_refused(text, told):
    with pytest.raises(ValueError, match=told):
        parse_json(text.encode())


def test_json_as_it_should_be():
    value = {"a": ["☃", "\U0001f600", None, 1.5], "b": {"c": []}}
    assert parse_json(json.dumps(value).encode()) == parse_json(json.dumps(value, ensure_ascii=False).encode()) == value
    deep = json.dumps(["x"]).join(["[" * 90, "]" * 90])
    assert parse_json(deep.encode())


def test_damaged_headers_of_arrays_are_values_that_cannot_be(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12).reshape(3, 4))
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    odd = [
        b"\x93NUMPY\x01\x00\x10\x00{'descr': ('(((\n",
        b"\x93NUMPY\x02\x00" + (1 << 20).to_bytes(4, "little") + b"(" * (1 << 20),
    ]
    for _ in range(300):
        content = bytearray(whole)
        for place in generator.integers(0, 128, 3):
            content[place] = generator.integers(0, 256)
        odd.append(bytes(content))
    ends = set()
    for content in odd:
        path.write_bytes(content)
        try:
            ends.add(type(map_array(path)))
        except (OSError, ValueError) as error:
            ends.add(type(error))
            assert str(error)
    assert ValueError in ends


def test_arrays_are_never_unpickled_nor_taken_for_archives(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "b.npz", a=np.zeros(3))
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError):
            map_array(tmp_path / name)


def test_memory_is_asked_for_only_where_there_is_enough(monkeypatch):
    check_fits(10**6, "a batch", "take less")
    monkeypatch.setattr(guarded_open, "memory_bytes", lambda: 8 * 10**9)
    with pytest.raises(
        ValueError, match=r"a batch would take 6\.0 GB at once, and this machine has 8\.0 GB of memory: take less"
    ):
        check_fits(6 * 10**9, "a batch", "take less")


def test_the_memory_of_a_container_counts(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(guarded_open, "_CGROUP", limit)
    whole = guarded_open.memory_bytes()
    limit.write_text("1000000\n")
    assert guarded_open.memory_bytes() == 1_000_000
    limit.write_text("max\n")
    assert guarded_open.memory_bytes() == whole > 1_000_000


NESTED = pa.table({
    "id": ["a", "b", None], "list": [["x", "y"], ["x"], []], "code": pa.array(["q", "q", "r"]).dictionary_encode(),
    "struct": [{"a": "u", "b": 1}, {"a": "u", "b": 2}, None], "metadata.light": [1.5, None, 2.0],
    "bytes": [b"\0", b"\0", None], "when": pa.array([1, 2, None], pa.timestamp("ns")),
})  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"use_dictionary": False}, {"compression": "zstd"}, {"row_group_size": 2}])
def test_a_table_is_read_as_it_was_written(tmp_path, how):
    parquet.write_table(NESTED, tmp_path / "t.parquet", **how)
    assert read_table(tmp_path / "t.parquet").equals(parquet.read_table(tmp_path / "t.parquet"))


def bomb(path, kind):
    """A file of few bytes that stands for 50 million."""
    rows, text = 50_000, "x" * 1000
    many = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [text])
    table = {
        "texts": lambda: pa.table({"a": many.cast(pa.string())}),
        "codes": lambda: pa.table({"a": many}),
        "nested": lambda: pa.table({"a": pa.ListArray.from_arrays(np.arange(rows + 1), many.cast(pa.string()))}),
        "numbers": lambda: pa.table({"a": np.zeros(6_000_000)}),
        "nothing": lambda: pa.table({"a": pa.nulls(60_000_000, pa.bool_())}),
        "prefixes": lambda: pa.table({"a": many.cast(pa.string())}),
        "fixed": lambda: pa.table({"a": pa.array([b"x" * 1000] * rows, pa.binary(1000))}),
    }[kind]()
    coded = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}} if kind == "prefixes" else {}
    parquet.write_table(table, path, compression="zstd", **coded)
    assert path.stat().st_size < 250_000
    return path


@pytest.mark.parametrize("kind", ["texts", "codes", "nested", "numbers", "nothing", "prefixes", "fixed"])
def test_a_table_that_would_fill_the_memory_is_not_unpacked(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(guarded_table, "FREE_BYTES", 8 << 20)
    with pytest.raises(ValueError, match=r"would unpack to|whose size cannot be checked"):
        read_table(bomb(tmp_path / "t.parquet", kind))


READ = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from weakspot.core.guarded_table import read_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_table(Path(sys.argv[1]))
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_few_kilobytes_do_not_take_gigabytes(tmp_path):
    """4 GB of text that are stored as 4,000 times the number of one text."""
    path = tmp_path / "t.parquet"
    texts = pa.DictionaryArray.from_arrays(np.zeros(4000, np.int32), ["x" * 1_000_000])
    parquet.write_table(pa.table({"id": texts}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    told = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True).stdout
    error, kilobytes = told.splitlines()
    assert error.startswith("its table would unpack to 4,0")
    assert int(kilobytes) < 300_000


def test_a_damaged_table_is_a_value_that_cannot_be(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(NESTED, path)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-9], whole[: len(whole) // 2], whole[:4] + bytes(len(whole) - 8) + whole[-4:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"."):
            read_table(path)


THREADS = """
import os, sys
import numpy as np
import pyarrow as pa
from pathlib import Path
from pyarrow import parquet
from weakspot.core.finding import Finding
from weakspot.core.guarded_open import open_plain
from weakspot.core.guarded_table import read_table
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
table = pa.table({"id": [f"s{i}" for i in range(200_000)], "score": np.arange(200_000.0)})
folder = Path(sys.argv[1]) / "finding"
Finding("some.finding", table=table).save(folder)
with open_plain(folder / "table.parquet") as file:
    parquet.read_metadata(file)
with open_plain(folder / "table.parquet") as file:
    parquet.read_schema(file)
assert read_table(folder / "table.parquet").sort_by("id").num_rows == 200_000
assert Finding.load(folder).table.equals(table)
print(threads() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux: counts a process's threads")
def test_reading_and_writing_tables_starts_no_threads(tmp_path):
    """A thread of Arrow that held a Python file when the interpreter exited aborted one command in ten (exit 134)."""
    done = subprocess.run([sys.executable, "-c", THREADS, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
