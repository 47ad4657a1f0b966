"""A Finding is used again only if every byte of it is as it was written; else it is made again, which is said."""

import random

import numpy as np
import pytest

from tests.core.helpers import Counting, Heard, Tally, TrainTally, numbered
from tests.core.test_damaged_shards import DAMAGES
from weakspot.core import sealed
from weakspot.core.costs import costs
from weakspot.core.errors import RunError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Estimate, Finding
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.step import Step
from weakspot.core.subject import Subject

HOW = ExecutionOptions(batch_size=2, shard_size=4, workers=0, threads=1)


class Compared(Tally):
    """Holds what it is shown against what came before.

    weight: of each output.
    before: the Finding of `TrainTally`.
    """

    before: Finding

    @classmethod
    def upstream(cls, options):
        return {"before": Step.of(TrainTally)}

    def finish(self):
        return self.finding(
            summary={"difference": Estimate(float((self.total.numpy() - self.before.arrays["total"]).sum()))}
        )


def examined(run, *steps):
    heard = Heard()
    data = {"train": numbered(6, prefix="train"), "test": numbered(5, prefix="test")}
    plan = Plan.of(steps)
    plan.run(Subject(Counting()), data, run, execution=HOW, progress=heard)
    return {finding.name: finding.digest for finding in run}, heard.said


@pytest.fixture
def run(tmp_path):
    made = Run.create(tmp_path / "run")
    examined(made, Step.of(TrainTally))
    return made


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    return examined(Run.create(tmp_path_factory.mktemp("fresh") / "run"), Step.of(Compared))[0]


def test_an_array_that_was_changed_is_not_built_upon(run, fresh):
    path = run.finding_folder("train_tally") / "total.npy"
    np.save(path, np.load(path) + 1000)
    digests, said = examined(run, Step.of(Compared))
    assert digests == fresh
    assert said == [
        "the Finding train_tally is damaged and is not used again: it was changed after it was written: total.npy"
    ]


@pytest.mark.parametrize("name", ["total.npy", "finding.json"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_finding_damaged_in_any_way_is_made_again(run, fresh, kind, name):
    DAMAGES[kind](run.finding_folder("train_tally") / name, random.Random(kind))
    digests, said = examined(run, Step.of(Compared))
    assert digests == fresh and len(said) == 1
    assert said[0].startswith("the Finding train_tally is damaged and is not used again: ")
    assert examined(run, Step.of(Compared)) == (fresh, [])


def test_what_nobody_damaged_is_used_again_without_a_word(run, fresh):
    before = (run.finding_folder("train_tally") / "finding.json").stat().st_mtime_ns
    assert examined(run, Step.of(Compared)) == (fresh, [])
    assert (run.finding_folder("train_tally") / "finding.json").stat().st_mtime_ns == before


def test_what_is_damaged_is_counted_among_the_costs(run):
    data = {"train": numbered(6, prefix="train"), "test": numbered(5, prefix="test")}
    plan = Plan.of([Step.of(TrainTally)])
    assert [cost.reused for cost in costs(plan, Subject(Counting()), data, run, execution=HOW)] == [("train_tally",)]
    (run.finding_folder("train_tally") / "total.npy").write_bytes(b"")
    assert [cost.reused for cost in costs(plan, Subject(Counting()), data, Run(run.folder), execution=HOW)] == [()]


def test_each_byte_is_read_once_by_whoever_opens_a_run(run, monkeypatch):
    read = []
    digest_file = sealed.digest_file
    monkeypatch.setattr(sealed, "digest_file", lambda path: read.append(path.name) or digest_file(path))
    opened = Run.open(run.folder)
    for _ in range(3):
        assert opened["train_tally"].arrays["total"].shape == (2,)
        assert opened.head("train_tally").name == "train_tally"
    assert read == ["total.npy"]
    opened.verify()
    assert read == ["total.npy"] * 2


def test_all_that_is_damaged_is_named(run):
    examined(run, Step.of(Compared))
    for name in run.names():
        (run.finding_folder(name) / "more").write_text("x")
    with pytest.raises(RunError, match=r"train_tally is damaged: it was changed .* · .*compared is damaged: it was"):
        list(run)
