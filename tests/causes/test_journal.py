"""Labels as they are given: nothing that was acknowledged is lost, nothing half written is read."""

import errno
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.full_disk import files_end_at
from weakspot.causes.journal import FILE, LabelJournal
from weakspot.causes.labelling import (
    LABELS,
    LabelsDiffer,
    RunLabels,
    current_labels,
    import_labels,
    keep_labels,
    labels_finding,
)
from weakspot.core.errors import RunError
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run

IDS = ("a", "b", "ü c", "d")


@pytest.fixture
def run(tmp_path):
    made = Run.create(tmp_path / "run")
    table = {"id": list(IDS), "cluster": [1, 1, 2, 2], "distance": [0.5] * 4, "prediction": ["cat"] * 4}
    arrays = {"task": np.array("classification"), "classes": np.array(["cat", "dog"]), "outputs": np.array(2)}
    made.save(Finding(name="causes.unsafe", table=table_of(table), arrays=arrays))
    return made


def test_the_last_word_counts_and_what_stood_before_is_told(run):
    labels = RunLabels(run)
    assert labels.by_id() == {}
    assert labels.change({"a": "cat", "ü c": "dog"}) == {"a": None, "ü c": None}
    assert labels.change({"a": "dog"}) == {"a": "cat"}
    assert labels.change({"ü c": None}) == {"ü c": "dog"}
    assert RunLabels(run).by_id() == labels.by_id() == {"a": "dog"}
    lines = (run.folder / FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [
        {"a": "cat", "ü c": "dog"}, {"a": "dog"}, {"ü c": None},
    ]  # fmt: skip


def test_a_reader_that_stays_sees_what_others_write(run):
    mine, other = RunLabels(run), RunLabels(run)
    mine.change({"a": "cat"})
    assert other.by_id() == {"a": "cat"}
    other.change({"b": "dog"})
    assert mine.by_id() == {"a": "cat", "b": "dog"}
    (run.folder / FILE).write_text('{"labels": {"d": "cat"}}\n')  # restored from elsewhere
    assert mine.by_id() == {"d": "cat"}


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(run):
    labels = RunLabels(run)
    labels.change({"a": "cat"})
    labels.change({"a": "dog"}, expected={"a": "cat"})
    with pytest.raises(LabelsDiffer, match="'a' is dog; nothing was changed") as error:
        labels.change({"a": "cat", "b": "cat"}, expected={"a": "cat", "b": None})
    assert error.value.labels == {"a": "dog"}
    assert labels.by_id() == {"a": "dog"}


def test_labels_of_a_run_that_has_only_the_finding_go_on(run):
    run.save(labels_finding(run["causes.unsafe"], {"a": "cat", "b": "dog"}))
    labels = RunLabels(run)
    assert labels.by_id() == {"a": "cat", "b": "dog"}
    labels.change({"b": None})
    assert labels.by_id() == {"a": "cat"}


def test_the_finding_follows_and_every_reader_sees_the_same(run, tmp_path):
    RunLabels(run).change({"a": "cat"})
    assert LABELS not in run
    assert current_labels(run).summary["labelled"].value == 1
    kept = keep_labels(run)
    assert run[LABELS].digest == kept.digest == run.manifest()["findings"][LABELS]
    (tmp_path / "more.csv").write_text("id,label\nb,dog\n")
    RunLabels(run).change({"a": None})
    assert import_labels(run, tmp_path / "more.csv").table["label"].to_pylist() == [None, "dog", None, None]
    assert run[LABELS].table["label"].to_pylist() == [None, "dog", None, None]
    run.verify()


def test_labels_are_given_while_the_run_is_being_examined(run, tmp_path):
    (tmp_path / "more.csv").write_text("id,label\nb,dog\n")
    with run.locked():
        RunLabels(run).change({"a": "cat"})
        found = import_labels(run, tmp_path / "more.csv")
        assert LABELS not in run
    assert found.summary["labelled"].value == 2
    assert keep_labels(run).digest == found.digest == run[LABELS].digest


def test_nothing_is_written_where_nothing_was_given(run):
    assert keep_labels(run).summary["missing"].value == 4
    assert LABELS not in run
    assert not (run.folder / FILE).exists()


@pytest.mark.parametrize("torn", [b'{"labels": {"a": "do', b'{"labels": {"a": "dog"}}', b"\xff\xfe"])
def test_half_a_line_counts_for_nothing_and_is_taken_away(run, torn):
    labels = RunLabels(run)
    labels.change({"a": "cat"})
    with (run.folder / FILE).open("ab") as file:
        file.write(torn)
    assert RunLabels(run).by_id() == labels.by_id() == {"a": "cat"}
    labels.change({"b": "dog"})
    assert RunLabels(run).by_id() == labels.by_id() == {"a": "cat", "b": "dog"}


@pytest.mark.parametrize("line", ["no json", "[1]", '{"labels": {"a": 3}}', '{"other": 1}', '{"labels": []}', "\udcff"])
def test_a_damaged_line_is_told_with_its_number(run, line):
    text = '{"labels": {"a": "cat"}}\n' + line + "\n"
    (run.folder / FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match=r"labels.jsonl, line 2 is damaged .* delete that line"):
        RunLabels(run).by_id()


def test_no_file_of_another_place_is_touched(run, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (run.folder / FILE).symlink_to(outside)
    for use in (lambda: RunLabels(run).by_id(), lambda: RunLabels(run).change({"a": "cat"})):
        with pytest.raises(RunError, match=r"labels.jsonl"):
            use()
    (run.folder / FILE).unlink()
    os.mkfifo(run.folder / FILE)
    with pytest.raises(RunError, match="it is a FIFO"):
        RunLabels(run).by_id()
    assert outside.read_text() == "mine\n"


def test_on_a_full_disk_a_label_is_refused_and_the_others_stay(run):
    labels = RunLabels(run)
    labels.change({"a": "cat"})
    before = (run.folder / FILE).read_bytes()
    for room in (0, 1, 20):  # part of the line fits, or nothing of it
        with files_end_at(len(before) + room):
            with pytest.raises(RunError, match=r"cannot write .*labels.jsonl: .*check free space"):
                labels.change({"b": "dog"})
            assert labels.by_id() == {"a": "cat"}
        assert (run.folder / FILE).read_bytes() == before
    labels.change({"b": "dog"})
    assert RunLabels(run).by_id() == {"a": "cat", "b": "dog"}


def test_a_label_that_does_not_reach_the_disk_is_refused(run, monkeypatch):
    labels = RunLabels(run)
    labels.change({"a": "cat"})

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="No space left on device; check free space"):
            labels.change({"b": "dog"})
    assert labels.by_id() == RunLabels(run).by_id() == {"a": "cat"}


def test_a_file_that_was_begun_and_never_written_is_no_label_taken_away(run):
    run.save(labels_finding(run["causes.unsafe"], {"a": "cat"}))
    (run.folder / FILE).touch()
    labels = RunLabels(run)
    assert labels.by_id() == {"a": "cat"}
    labels.change({"b": "dog"})
    assert labels.by_id() == {"a": "cat", "b": "dog"}


WRITER = """
import sys
from pathlib import Path
from weakspot.causes.journal import LabelJournal
journal = LabelJournal(Path(sys.argv[1]))
for number in range(150):
    journal.add(lambda known: {f"{sys.argv[2]}-{number}": str(len(known or {}))})
assert "torch" not in sys.modules
"""


def test_several_processes_and_threads_lose_nothing(tmp_path):
    others = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name], stderr=subprocess.PIPE) for name in "pq"]
    journal = LabelJournal(tmp_path)

    def write(name):
        for number in range(100):
            journal.add(lambda known: {f"{name}-{number}": str(len(known or {}))})  # noqa: B023 - called at once

    threads = [threading.Thread(target=write, args=(name,)) for name in "st"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.communicate()[1] for other in others] == [b"", b""]
    found = LabelJournal(tmp_path).labels()
    assert found.keys() == {f"{name}-{n}" for name, count in zip("pqst", (150, 150, 100, 100)) for n in range(count)}  # noqa: B905
    assert sorted(map(int, found.values())) == list(range(500))  # each saw all that were written before it
    assert journal.labels() == found
