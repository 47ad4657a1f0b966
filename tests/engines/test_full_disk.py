"""A full disk on the machine of a worker, and on that of the driver that fetches what workers made."""

from types import SimpleNamespace

import pytest

from tests.core.helpers import Keep
from tests.engines.helpers import HOW, AtOneInput, samples
from tests.engines.test_worker import prepared, worker
from tests.full_disk import files_end_at
from weakspot import Subject
from weakspot.core.errors import RunError
from weakspot.core.examine import finish, run_shard
from weakspot.core.job import Job
from weakspot.core.progress import Silent
from weakspot.engines.gathering import gather

__all__ = ["worker"]


def made(tmp_path, name):
    return Job(Subject(AtOneInput(tmp_path)), samples(16), [Keep()], HOW, tmp_path / name)


@pytest.mark.parametrize("seen", [True, False], ids=["writes to the Run", "is fetched from"])
@pytest.mark.parametrize("size", [0, 100])
def test_a_worker_without_room_says_so_and_does_the_shard_when_there_is_some(worker, tmp_path, seen, size):
    job = made(tmp_path, "work")
    prepared(worker, job, seen=seen)
    shard = job.shards()[0]
    with files_end_at(size):
        outcome = worker.work(shard, 4)
    error = outcome.trouble.exception()
    assert isinstance(error, RunError) and "check free space" in str(error)
    assert not outcome.files
    assert not [path for folder in (job.work, worker.about()["scratch"]) for path in folder.rglob("*.partial")]
    assert worker.work(shard, 4).trouble is None


@pytest.mark.parametrize("size", [0, 100])
def test_a_driver_without_room_says_so_and_nothing_half_fetched_stays(worker, tmp_path, size):
    job, local = made(tmp_path, "work"), made(tmp_path, "local")
    for shard in local.shards():
        run_shard(local, shard, Silent())
    prepared(worker, job, seen=False)
    member = SimpleNamespace(talk=lambda name, *arguments: getattr(worker, name)(*arguments))
    ray = SimpleNamespace(get=lambda piece, timeout: piece)
    for shard in job.shards():
        outcome = worker.work(shard, 4)
        with files_end_at(size), pytest.raises(RunError, match=r"cannot write .*: File too large; check free space"):
            gather(ray, member, job, shard, outcome)
        assert not list(job.work.rglob("shard-*"))[shard.number :]
        assert not list(job.work.rglob("*.partial"))
        gather(ray, member, job, shard, outcome)
        worker.drop(shard)
    assert finish(job, 0).digest == finish(local, 0).digest
