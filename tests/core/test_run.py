"""Runs: a folder of Findings that survives other processes, other versions and other folders."""

import json
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

from weakspot.core import files
from weakspot.core import run as module
from weakspot.core.errors import RunError
from weakspot.core.files import tidy, whole_folder, write_text
from weakspot.core.finding import Estimate, Finding
from weakspot.core.run import Run

SAMPLE = Finding("room.one", summary={"a": Estimate(0.5)}, arrays={"x": np.arange(3)})


@pytest.fixture
def run(tmp_path):
    made = Run.create(tmp_path / "deep" / "run")
    made.save(SAMPLE)
    made.save(Finding("room.two"))
    return made


def test_what_is_saved_is_there_in_order(run):
    opened = Run.open(str(run.folder))
    assert opened.names() == ["room.one", "room.two"]
    assert "room.one" in opened
    assert "room.three" not in opened
    assert opened["room.one"].digest == SAMPLE.digest
    assert [finding.name for finding in opened] == ["room.one", "room.two"]
    assert opened.manifest()["findings"]["room.one"] == SAMPLE.digest


def test_the_manifest_is_as_documented(run):
    run.describe(subject={"model": "Net"}, data={"test": {"samples": 3}}, asked=["room.two"])
    run.describe(subject={"model": "Net"}, data={"test": {"samples": 3}}, asked=["room.one", "room.two"])
    assert json.loads((run.folder / "run.json").read_text()) == {
        "format": "weakspot-run",
        "version": 1,
        "subject": {"model": "Net"},
        "data": {"test": {"samples": 3}},
        "asked": ["room.two", "room.one"],
        "findings": {"room.one": SAMPLE.digest, "room.two": Finding("room.two").digest},
    }


def test_creating_again_goes_on(run):
    assert Run.create(run.folder).names() == ["room.one", "room.two"]


def test_a_finding_that_is_not_there_is_named_with_those_that_are(run, tmp_path):
    with pytest.raises(RunError, match=r"has no Finding 'room.tow'; it has: room.one, room.two"):
        _ = run["room.tow"]
    with pytest.raises(RunError, match="it has: none yet"):
        _ = Run.create(tmp_path / "empty")["x"]


@pytest.mark.parametrize("name", ["../run", "a/b", ""])
def test_a_name_cannot_leave_the_run(run, name):
    with pytest.raises(RunError, match="cannot be a name"):
        run.finding_folder(name)


def test_folders_that_are_no_runs(tmp_path):
    with pytest.raises(RunError, match=r"cannot read .*nowhere/run.json: No such file.*is this a weakspot run\?"):
        Run.open(tmp_path / "nowhere")
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(RunError, match="is not empty and holds no weakspot run: choose another folder"):
        Run.create(tmp_path)
    with pytest.raises(RunError, match="choose another folder"):
        Run.create(tmp_path / "mine.txt")
    with pytest.raises(RunError, match=r"cannot write to .*mine.txt/run: Not a directory; choose another folder"):
        Run.create(tmp_path / "mine.txt" / "run")
    with pytest.raises(RunError, match="Not a directory"):
        Run.open(tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_with_hidden_files_only_will_do(tmp_path):
    (tmp_path / ".DS_Store").write_text("")
    assert Run.create(tmp_path).names() == []


def test_killed_while_it_was_created_it_can_be_created_again(tmp_path, monkeypatch):
    """At every moment the folder is either empty, hidden files aside, or a run."""
    steps = []

    def watched(name, do):
        def step(*args, **kwargs):
            if (tmp_path / "run").exists():
                copied = tmp_path / f"at-{len(steps)}"
                import shutil

                shutil.copytree(tmp_path / "run", copied)
                steps.append(copied)
            return do(*args, **kwargs)

        return step

    monkeypatch.setattr(files.Path, "mkdir", watched("mkdir", files.Path.mkdir))
    monkeypatch.setattr(files.Path, "replace", watched("replace", files.Path.replace))
    Run.create(tmp_path / "run")
    monkeypatch.undo()
    assert steps
    for folder in steps:
        assert Run.create(folder).names() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is damaged"),
        ('{"format": "x"}', "is not a weakspot-run file"),
        ('{"format": "weakspot-run"}', "says no format version"),
    ],
)
def test_a_damaged_manifest(run, content, message):
    (run.folder / "run.json").write_text(content)
    with pytest.raises(RunError, match=message):
        Run.open(run.folder)


def test_a_newer_run_is_refused(run):
    path = run.folder / "run.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 3'))
    message = r"run.json has format version 3, this weakspot reads up to 1: upgrade weakspot"
    for opens in (Run.open, Run.create):
        with pytest.raises(RunError, match=message):
            opens(run.folder)


def test_an_older_run_opens_step_by_step_and_the_folder_stays(run, monkeypatch):
    path = run.folder / "run.json"
    before = path.read_bytes()
    monkeypatch.setattr(module, "VERSION", 3)
    monkeypatch.setitem(module.UPGRADES, 1, lambda old: {**old, "version": 2, "steps": ["one"]})
    monkeypatch.setitem(module.UPGRADES, 2, lambda old: {**old, "version": 3, "steps": [*old["steps"], "two"]})
    opened = Run.open(run.folder)
    assert opened.manifest()["steps"] == ["one", "two"]
    assert opened["room.one"].digest == SAMPLE.digest
    assert path.read_bytes() == before


def hold(folder, held, release):
    with Run.open(folder).locked():
        held.set()
        release.wait()


def test_a_second_process_is_refused_and_told_who_writes(run):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=hold, args=(run.folder, held, release), daemon=True)
    process.start()
    try:
        held.wait()
        message = f"is being written by process {process.pid}: wait for it, stop it, or choose another folder"
        with pytest.raises(RunError, match=message), run.locked():
            pass
        assert Run.open(run.folder)["room.one"].digest == SAMPLE.digest
    finally:
        release.set()
        process.join()
    with run.locked():
        pass


def test_a_killed_process_leaves_no_lock(run):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=hold, args=(run.folder, held, release), daemon=True)
    process.start()
    held.wait()
    process.kill()
    process.join()
    with run.locked():
        assert (run.folder / ".lock").read_text() == str(os.getpid())


def test_a_lock_that_cannot_be_written_is_explained(run):
    (run.folder / ".lock").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*\.lock: it is a folder"), run.locked():
        pass


def test_locking_clears_what_a_killed_process_left(run):
    left = [run.folder / ".run.json.12345678.partial", run.folder / "findings" / ".room.one.12345678.partial"]
    left[0].write_text("half")
    left[1].mkdir()
    (left[1] / "x.npy").write_bytes(b"half")
    with run.locked():
        assert not any(path.exists() for path in left)
    assert run["room.one"].digest == SAMPLE.digest


def test_reading_a_run_does_not_load_torch(run):
    script = (
        "import sys; from weakspot import Run, Finding, Estimate, WeakspotError\n"
        f"r = Run.open({str(run.folder)!r}); assert [f.name for f in r] == ['room.one', 'room.two']\n"
        "assert int(r['room.one'].arrays['x'].sum()) == 3\n"
        "assert 'torch' not in sys.modules, 'torch was loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_weakspot_itself_is_lazy_and_complete():
    import weakspot

    assert all(getattr(weakspot, name) is not None for name in weakspot.__all__)
    with pytest.raises(AttributeError, match="module 'weakspot' has no attribute 'Sbject'"):
        _ = weakspot.Sbject
    script = "import sys, weakspot; assert not {'torch', 'numpy', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_folder_is_whole_or_not_there(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "x") as scratch:
        (scratch / "file").write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    for text in ("one", "two"):
        with whole_folder(tmp_path / "x") as scratch:
            (scratch / text).write_text(text)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["two"]


def test_a_text_is_whole_or_the_old_one(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a.txt", "new \udc80")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_text_that_cannot_be_written_names_the_place(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot write .*file/a.txt: Not a directory; check free space"):
        write_text(tmp_path / "file" / "a.txt", "new")


def test_removing_what_is_partial_leaves_the_rest(tmp_path):
    (tmp_path / ".a.partial").mkdir()
    (tmp_path / ".b.partial").write_text("")
    (tmp_path / "c.partial").write_text("")
    (tmp_path / ".lock").write_text("")
    tidy(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"c.partial", ".lock"}
    tidy(tmp_path / "nowhere")


def test_verify_finds_any_change(run):
    run.verify()
    index = run.finding_folder("room.one") / "finding.json"
    index.write_text(index.read_text().replace("0.5", "0.6"))
    with pytest.raises(RunError, match=r"one is damaged: it is not the Finding that the manifest names; examine again"):
        run.verify()
