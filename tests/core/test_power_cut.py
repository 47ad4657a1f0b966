"""A power cut at any moment: what was not on the disk is lost, and the same command still ends with the same bytes."""

import random

import pytest

from tests.core.helpers import After, Counting, Keep, numbered
from tests.core.torn import calls_of, cut
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.files import whole_folder, write_text
from weakspot.core.finding import verify
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent
from weakspot.core.run import Run
from weakspot.core.step import Step
from weakspot.core.subject import Subject


def examined(folder, weight=1.0):
    plan = Plan.of([Step.of(After, weight=weight), Step.of(Keep)])
    data = {"train": numbered(4), "test": numbered(4, prefix="t")}
    how = ExecutionOptions(batch_size=2, shard_size=2, workers=0, threads=1)
    plan.run(Subject(Counting()), data, Run.create(folder), execution=how, progress=Silent())


def contents(folder):
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name != ".lock"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a Run that nothing happened to, and how many calls that matter it takes, anew and over another."""
    base = tmp_path_factory.mktemp("power")
    calls = [calls_of(lambda: examined(base / "run"), base)]
    examined(base / "run", weight=2.0)
    calls.append(calls_of(lambda: examined(base / "run"), base))
    return contents(base / "run"), calls


@pytest.mark.parametrize("seed", range(30))
def test_after_a_power_cut_what_is_named_is_whole_and_every_byte_is_the_same_in_the_end(seed, tmp_path, whole):
    chance, disk, run = random.Random(seed), tmp_path / "disk", tmp_path / "left" / "run"
    disk.mkdir()
    before = chance.random() < 0.5
    if before:
        examined(disk / "run", weight=2.0)
    assert cut(
        lambda: examined(disk / "run"), disk, run.parent, survives=chance.randrange(whole[1][before]), chance=chance
    )
    if before or (run / "run.json").exists():
        with Run.open(run).locked():  # which brings back what was being replaced
            pass
        for name in Run.open(run).names():
            verify(Run.open(run).finding_folder(name))  # it may be the next one: the manifest comes after it
    examined(run)
    assert contents(run) == whole[0]


@pytest.mark.parametrize("survives", range(12))
def test_a_file_and_a_folder_are_as_before_or_as_after(tmp_path, survives):
    """Whatever the disk does with what was not waited for."""
    for seed in range(8):
        disk = tmp_path / f"disk-{seed}"
        (disk / "folder").mkdir(parents=True)
        for path in (disk / "file", disk / "folder" / "inside"):
            path.write_text("before")

        def work(disk=disk):
            write_text(disk / "file", "after " * 100)
            with whole_folder(disk / "new" / "folder") as scratch:
                (scratch / "inside").write_text("after")

        left = tmp_path / f"left-{seed}"
        if cut(work, disk, left, survives=survives, chance=random.Random(seed)):
            assert (left / "file").read_text() in ("before", "after " * 100)
            assert (left / "folder" / "inside").read_text() == "before"
            assert not (left / "new" / "folder").exists() or (left / "new/folder/inside").read_text() == "after"
