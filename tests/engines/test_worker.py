"""A worker by itself, in this process: what it keeps, tells and hands over."""

import os
import time
import traceback
from pathlib import Path

import pytest

from tests.core.helpers import Keep
from tests.engines.helpers import HOW, AlwaysFailing, AtOneInput, samples
from weakspot import Subject
from weakspot.core.errors import BadSample
from weakspot.core.examine import finish, run_shard
from weakspot.core.job import Job
from weakspot.core.progress import Silent
from weakspot.core.user_code import error_frames
from weakspot.engines import worker as module
from weakspot.engines.worker import Trouble, Worker


@pytest.fixture
def worker(monkeypatch, tmp_path):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module.warnings, "showwarning", module.warnings.showwarning)
    return Worker("cpu")


def prepared(worker, job, *, seen):
    """The worker with a job, whose folder it sees or does not see."""
    job.work.mkdir(exist_ok=True)
    if seen:
        (job.work / ".probe").touch()
    worker.take_subject("subject", Subject(job.subject.model))
    worker.take_source("source", job.source)
    assert worker.take(job.shell(), job.work, ".probe", False) is seen
    return worker


@pytest.mark.parametrize("seen", [True, False])
def test_shards_go_to_the_run_where_it_is_seen_and_are_read_in_pieces_otherwise(worker, tmp_path, seen):
    job = Job(Subject(AtOneInput(tmp_path)), samples(16), [Keep()], HOW, tmp_path / "work")
    local = Job(job.subject, samples(16), [Keep()], HOW, tmp_path / "local")
    for shard in local.shards():
        run_shard(local, shard, Silent())
    prepared(worker, job, seen=seen)
    for shard in job.shards():
        outcome = worker.work(shard, 4)
        assert (outcome.trouble, outcome.skipped, outcome.batch_size) == (None, False, 4)
        assert bool(outcome.files) is not seen
        target = job.shard_folder(0, shard.number)
        target.mkdir(parents=True, exist_ok=True)
        for index, name, size in outcome.files:
            pieces = [worker.read(index, shard.number, name, start, 7) for start in range(0, size, 7)]
            (target / name).write_bytes(b"".join(pieces))
        worker.drop(shard)
    assert finish(job, 0).digest == finish(local, 0).digest
    left = [path for path in worker.about()["scratch"].rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["lock"]


def test_what_nobody_waits_for_is_skipped_or_left_at_the_next_batch(worker, tmp_path):
    job = Job(Subject(AtOneInput(tmp_path)), samples(16), [Keep()], HOW, tmp_path / "work")
    prepared(worker, job, seen=True)
    first, second = job.shards()
    worker.forget(first.number)
    assert worker.work(first, 4).skipped
    batches, note = [], worker.note

    def forget_after_one(*, moved=None, said=None):
        batches.append(moved)
        worker.forget(second.number)
        note(moved=moved, said=said)

    worker.note = forget_after_one
    assert worker.work(second, 4).skipped
    assert batches == [(1, 4)]
    assert [shard.missing for shard in job.shards()] == [(0,), (0,)]


def test_an_error_is_handed_over_with_its_places(worker, tmp_path):
    job = Job(Subject(AlwaysFailing(tmp_path)), samples(16, 9), [Keep()], HOW, tmp_path / "work")
    prepared(worker, job, seen=True)
    error = worker.work(job.shards()[1], 4).trouble.exception()
    assert (type(error), str(error)) == (ValueError, "no model for such inputs")
    assert (Path(error_frames(error)[-1].filename).name, error_frames(error)[-1].name) == ("helpers.py", "do")


class Stubborn(Exception):
    def __init__(self, what, more):
        super().__init__(f"{what} and {more}")


def trouble_of(error):
    try:
        raise error
    except Exception as caught:
        return Trouble.of(caught)


def test_exceptions_that_cannot_be_sent_keep_name_and_message():
    error = trouble_of(Stubborn("one", "two")).exception()
    assert (type(error).__name__, str(error)) == ("Stubborn", "one and two")
    assert "Stubborn: one and two" in error.__notes__[0]
    bad = trouble_of(BadSample("s1", "sample s1 is bad")).exception()
    assert (type(bad), bad.sample, str(bad)) == (BadSample, "s1", "sample s1 is bad")


def test_an_error_that_never_left_has_its_own_places():
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        assert error_frames(error) == list(traceback.extract_tb(error.__traceback__))


def test_folders_of_workers_that_are_gone_are_removed_and_those_of_others_are_not(worker, tmp_path):
    gone = tmp_path / "weakspot-worker-gone"
    gone.mkdir()
    (gone / "lock").touch()
    for folder in (gone, worker.about()["scratch"]):
        os.utime(folder, (time.time() - 999,) * 2)
    Worker("cpu")
    assert not gone.exists()
    assert worker.about()["scratch"].exists()


def test_news_is_told_once_and_all_that_was_said_once_more_with_the_shard(worker, tmp_path):
    job = Job(Subject(AtOneInput(tmp_path)), samples(8), [Keep()], HOW, tmp_path / "work")
    prepared(worker, job, seen=True)
    worker.note(said="look here")
    assert worker.news(0.0).said == ["look here"]
    assert worker.news(0.0).said == []
    outcome = worker.work(job.shards()[0], 4)
    assert outcome.news.said == ["look here"]
    assert worker.news(0.0).moved == [(0, 8)]
