"""Plans: equal steps merge, passes are few, and what was computed is used again if and only if it fits."""

import itertools
import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.core.helpers import After, Counting, Heard, Keep, Tally, TrainTally, numbered
from weakspot.core.costs import costs
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding, verify
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.source import limited
from weakspot.core.step import Step
from weakspot.core.subject import Subject
from weakspot.coverage import NeuronCoverage
from weakspot.data import digits
from weakspot.looks import Brightness
from weakspot.robustness import NeighbourAccuracy

HOW = ExecutionOptions(batch_size=2, shard_size=4, workers=0)


def data(train=6, test=5):
    return {"train": numbered(train, prefix="train"), "test": numbered(test, prefix="test")}


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run")


def forwards(net):
    """How many samples the model saw since the last call."""
    seen = sum(size for size in net.batches)
    net.batches.clear()
    return seen


def work(plan, net, run, sources=None, **options):
    """Run a plan; how many samples it looked at, and its Findings by name."""
    forwards(net)
    sources = sources or data()
    found = plan.run(Subject(net), sources, run, execution=HOW, **options)
    return forwards(net), {plan.names[step.key]: finding for step, finding in zip(plan.steps, found, strict=True)}


def counted(*sizes, known=(), checked=True):
    """The samples seen in passes over splits of these sizes: of each, two are tried twice.

    known: splits for which it is noted what the model answers, and that are tried once; checked: whether the model was
    asked again what is noted.
    """
    return sum(size + 4 for size in sizes) + sum(size + 2 for size in known) + 2 * checked


def test_equal_steps_merge_and_upstream_comes_first():
    plan = Plan.of([Step.of(After), Step.of(Tally), Step.of(After), Step.of(TrainTally)])
    assert [(step.probe, step.split) for step in plan.steps] == [
        (TrainTally, "train"),
        (Tally, "test"),
        (After, "test"),
    ]
    assert [plan.names[step.key] for step in plan.steps] == ["train_tally", "tally", "after"]


def test_names_tell_steps_of_one_probe_apart():
    steps = [Step.of(Tally), Step.of(Tally, weight=2.0), Step.of(Tally, split="train"), Step.of(Tally, split="extra")]
    names = [Plan.of(steps).names[step.key] for step in steps]
    assert names[0] == "tally"
    assert names[1] == f"tally-{steps[1].key[:6]}"
    assert names[2:] == ["tally-train", "tally-extra"]
    assert len(set(names)) == 4


def test_one_pass_over_each_split_where_that_is_enough():
    plan = Plan.of([Step.of(After), Step.of(After, weight=2.0), Step.of(Tally), Step.of(Keep)])
    assert [(p.split, sorted(step.probe.__name__ for step in p.steps)) for p in plan.passes()] == [
        ("train", ["TrainTally", "TrainTally"]),
        ("test", ["After", "After", "Keep", "Tally"]),
    ]


def chain(*splits, branch=0):
    """Steps that each need the one before, over these splits."""
    step = None
    for number, split in enumerate(splits):
        upstream = {} if step is None else {"before": step}
        step = Step(Tally, {"weight": float(100 * branch + number)}, split, upstream)
    return step


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([chain("a")], "a"),
        ([chain("a", "b", "a")], "aba"),
        ([chain("a", "b"), chain("b", branch=1)], "ab"),
        ([chain("a", "b", "a"), chain("a", branch=1)], "aba"),
        ([chain("a", "b", "c"), chain("b", branch=1), chain("c", branch=2), chain("a", branch=3)], "abc"),
        ([chain("a", "a")], "aa"),
        ([chain("a", "b"), chain("a", branch=1), chain("b", "b", branch=2)], "abb"),
    ],
)
def test_passes_are_few(steps, expected):
    plan = Plan.of(steps)
    assert len(plan.passes()) == len(expected)
    assert sorted(p.split for p in plan.passes()) == sorted(expected)


def test_whatever_the_steps_each_comes_once_and_after_those_it_needs():
    rng = np.random.default_rng(0)
    for _ in range(200):
        steps = []
        for number in range(rng.integers(1, 8)):
            before = [steps[i] for i in range(len(steps)) if rng.random() < 0.3]
            upstream = {f"u{i}": step for i, step in enumerate(before)}
            steps.append(Step(Tally, {"weight": float(number)}, str(rng.choice(["a", "b"])), upstream))
        done = []
        for planned in Plan.of(steps).passes():
            keys = {key for step in planned.steps for key in [step.key]}
            for step in planned.steps:
                assert step.split == planned.split
                assert all(needed.key in done for needed in step.upstream.values())
            done += keys
        assert sorted(done) == sorted(step.key for step in steps)


def test_a_plan_into_a_run(run):
    net = Counting()
    plan = Plan.of([Step.of(After), Step.of(Tally)])
    seen, found = work(plan, net, run)
    assert seen == counted(6, 5, checked=False)
    assert run.names() == ["train_tally", "tally", "after"] == list(found)
    assert found["after"].provenance["parameters"]["before"] == found["train_tally"].digest
    for name, finding in found.items():
        verify(run.finding_folder(name))
        assert run.manifest()["findings"][name] == finding.digest == run[name].digest
    assert not (run.folder / "work").exists()
    manifest = run.manifest()
    assert manifest["subject"]["fingerprint"] == Subject(net).fingerprint()
    assert manifest["data"] == {
        split: {"fingerprint": source.fingerprint(), "samples": len(source.ids)} for split, source in data().items()
    }


def test_a_finding_in_a_run_is_that_of_a_plain_examination(run):
    net = Counting()
    _, found = work(Plan.of([Step.of(Tally)]), net, run)
    (alone,) = examine(Subject(net), data()["test"], [Tally()], execution=HOW)
    assert found["tally"].digest == alone.digest


def test_what_is_there_is_used_again(run):
    net, plan = Counting(), Plan.of([Step.of(After)])
    _, first = work(plan, net, run)
    seen, second = work(plan, net, run)
    assert seen == counted()
    assert {name: f.digest for name, f in first.items()} == {name: f.digest for name, f in second.items()}


def test_another_cut_of_the_work_does_not_make_it_new(run):
    net, plan = Counting(), Plan.of([Step.of(Tally)])
    work(plan, net, run)
    forwards(net)
    plan.run(Subject(net), data(), run, execution=ExecutionOptions(batch_size=3, shard_size=3, workers=0))
    assert forwards(net) == counted()


def test_a_changed_model_makes_everything_new(run):
    net, plan = Counting(), Plan.of([Step.of(After)])
    _, before = work(plan, net, run)
    with torch.no_grad():
        net.layer.bias.add_(1)
    seen, after = work(plan, net, run)
    assert seen == counted(6, 5, checked=False)
    assert all(before[name].digest != after[name].digest == run[name].digest for name in before)


def test_changed_test_data_make_only_the_test_steps_new(run):
    net, plan = Counting(), Plan.of([Step.of(After)])
    _, before = work(plan, net, run)
    seen, after = work(plan, net, run, data(test=7))
    assert seen == counted(7)
    assert before["train_tally"].digest == after["train_tally"].digest


def test_changed_training_data_make_what_stands_on_them_new(run):
    net, plan = Counting(), Plan.of([Step.of(After), Step.of(Tally)])
    _, before = work(plan, net, run)
    seen, after = work(plan, net, run, data(train=7))
    assert seen == counted(7, known=(5,))
    assert before["after"].digest != after["after"].digest
    assert before["tally"].digest == after["tally"].digest


def test_other_parameters_are_another_finding(run):
    net = Counting()
    _, before = work(Plan.of([Step.of(Tally)]), net, run)
    seen, after = work(Plan.of([Step.of(Tally, weight=2.0)]), net, run)
    assert seen == counted(known=(5,))
    assert (2 * before["tally"].arrays["total"]).tolist() == after["tally"].arrays["total"].tolist()


def test_adding_a_question_keeps_what_was_computed(run):
    net = Counting()
    work(Plan.of([Step.of(After)]), net, run)
    seen, found = work(Plan.of([Step.of(After), Step.of(Keep), Step.of(TrainTally, weight=5.0)]), net, run)
    assert seen == counted(known=(6, 5))
    assert run.names() == [
        "train_tally",
        "after",
        *sorted(set(found) - {"train_tally", "after"}, key=run.names().index),
    ]
    seen, _ = work(Plan.of([Step.of(Tally)]), net, run)
    assert seen == counted(known=(5,))
    assert "keep" in run


@pytest.mark.parametrize("hurt", ["deleted", "index changed", "not in the manifest"])
def test_a_finding_that_was_lost_is_made_again(run, hurt):
    net, plan = Counting(), Plan.of([Step.of(After)])
    _, before = work(plan, net, run)
    folder = run.finding_folder("after")
    if hurt == "deleted":
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    elif hurt == "index changed":
        path = folder / "finding.json"
        path.write_text(path.read_text().replace('"value":5', '"value":6'))
    else:
        manifest = json.loads((run.folder / "run.json").read_text())
        del manifest["findings"]["after"]
        (run.folder / "run.json").write_text(json.dumps(manifest))
    heard = Heard()
    seen, after = work(plan, net, run, progress=heard)
    assert seen == counted(known=(5,))
    assert [said[:29] for said in heard.said] == ["the Finding after is damaged "] * (hurt != "not in the manifest")
    assert after["after"].digest == before["after"].digest == run.manifest()["findings"]["after"]
    verify(folder)


def test_killed_between_a_finding_and_its_line_in_the_manifest(run):
    """The folder is the new one, the manifest names the old one: it must not be left at that."""
    net, plan = Counting(), Plan.of([Step.of(Tally)])
    work(plan, net, run)
    old = (run.folder / "run.json").read_text()
    with torch.no_grad():
        net.layer.bias.add_(1)
    _, new = work(plan, net, run)
    (run.folder / "run.json").write_text(old)
    heard = Heard()
    work(plan, net, run, progress=heard)
    assert heard.said == [
        "the Finding tally is damaged and is not used again: it is not the Finding that the manifest names"
    ]
    assert run.manifest()["findings"]["tally"] == new["tally"].digest


class Breaks(Tally):
    """Fails at a sample of the test data."""

    broken = True

    def observe(self, seen):
        super().observe(seen)
        if self.broken and "test3" in seen.ids:
            raise ZeroDivisionError


@pytest.mark.parametrize("size", [1, 2])
def test_a_run_goes_on_from_the_last_finished_shard(run, monkeypatch, size):
    net, how = Counting(), ExecutionOptions(batch_size=1, shard_size=size, workers=0)
    plan = Plan.of([Step.of(After), Step.of(Breaks), Step.of(Tally)])
    with pytest.raises(ZeroDivisionError):
        plan.run(Subject(net), data(), run, execution=how)
    assert run.names() == ["train_tally"]
    assert (run.folder / "work").is_dir()
    monkeypatch.setattr(Breaks, "broken", False)
    forwards(net)
    plan.run(Subject(net), data(), run, execution=how)
    assert forwards(net) == 1 + 1 + 5 - 3 // size * size  # asked again, tried, and what is left
    fresh = Run.create(run.folder.parent / "fresh")
    plan.run(Subject(net), data(), fresh, execution=how)
    assert [f.digest for f in fresh] == [f.digest for f in run]
    assert not (run.folder / "work").exists()


def test_killed_while_it_clears_up_it_leaves_no_half_shard_to_go_on_from(run, monkeypatch):
    """Shards of another, unfinished plan are cleared away too: all of a shard or nothing."""
    net, unfinished = Counting(), Plan.of([Step.of(Breaks)])
    with pytest.raises(ZeroDivisionError):
        unfinished.run(Subject(net), data(), run, execution=ExecutionOptions(1, 1, 0))
    assert list((run.folder / "work").glob("*/shard-*"))

    class Killed(BaseException):
        pass

    def half(folder, **options):
        next(path for path in sorted(Path(folder).rglob("state.npz"))).unlink()
        raise Killed

    monkeypatch.setattr("shutil.rmtree", half)
    with pytest.raises(Killed):
        Plan.of([]).run(Subject(net), data(), run)
    monkeypatch.undo()
    monkeypatch.setattr(Breaks, "broken", False)
    (found,) = unfinished.run(Subject(net), data(), run, execution=ExecutionOptions(1, 1, 0))
    assert found.summary["count"].value == 5
    assert not list(run.folder.glob(".*.partial"))


def test_the_run_is_locked_while_it_is_written(run):
    class Second(Tally):
        """Tries to write to the same run."""

        def observe(self, seen):
            with run.locked():
                raise AssertionError("two writers")

    from weakspot.core.errors import RunError

    with pytest.raises(RunError, match="is being written by process"):
        Plan.of([Step.of(Second)]).run(Subject(Counting()), data(), run)


def test_a_missing_split_is_named():
    plan = Plan.of([Step.of(After)])
    with pytest.raises(
        ConfigError, match=r"train_tally needs the split 'train', and the data have only 'test': add it"
    ):
        plan.check({"test": numbered(2)})
    with pytest.raises(ConfigError, match="have only none"):
        plan.check({})


def test_an_empty_split_is_named():
    with pytest.raises(DataError, match=r"tally-train\.like\.test needs the split 'test', which has no samples"):
        Plan.of([Step.of(Tally, split="train.like.test")]).check(data(test=0))


def test_a_missing_split_leaves_the_run_alone(run):
    before = (run.folder / "run.json").read_text()
    with pytest.raises(ConfigError, match="needs the split"):
        Plan.of([Step.of(After)]).run(Subject(Counting()), {"test": numbered(2)}, run)
    assert (run.folder / "run.json").read_text() == before


def test_a_question_for_another_task_leaves_the_run_alone(run):
    class OfNumbers(Tally):
        tasks = ("regression",)

    before = (run.folder / "run.json").read_text()
    with pytest.raises(ConfigError, match="of_numbers examines regression, the subject's task is classification"):
        Plan.of([Step.of(TrainTally), Step.of(OfNumbers)]).run(Subject(Counting()), data(), run)
    assert (run.folder / "run.json").read_text() == before


def test_a_split_made_of_others_stays_known_while_another_question_is_asked(run):
    work(Plan.of([Step.of(Tally, split="train.like.test")]), Counting(), run)
    made = run.manifest()["data"]["train.like.test"]
    work(Plan.of([Step.of(Tally)]), Counting(), run)
    assert run.manifest()["data"]["train.like.test"] == made
    work(Plan.of([Step.of(Tally)]), Counting(), run, data(train=9))
    assert run.manifest()["data"]["train.like.test"]["fingerprint"] != made["fingerprint"]
    work(Plan.of([Step.of(Tally)]), Counting(), run, {"test": numbered(5, prefix="test")})
    assert list(run.manifest()["data"]) == ["test"]


def test_a_black_box_without_a_name_cannot_have_a_run(run):
    with pytest.raises(ConfigError, match="give the subject fingerprint='name and version'"):
        Plan.of([Step.of(Tally)]).run(Subject(lambda x: x), data(), run)
    named = Subject(lambda x: x, fingerprint="same 1")
    assert len(Plan.of([Step.of(Tally)]).run(named, data(), run)) == 1


def snapshot(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_costs_write_nothing_and_know_what_is_there(run):
    net = Counting()
    work(Plan.of([Step.of(After)]), net, run)
    before = snapshot(run.folder)
    plan = Plan.of([Step.of(After), Step.of(Keep), Step.of(TrainTally)])
    first, second = costs(plan, Subject(net), data(), run, execution=HOW)
    assert snapshot(run.folder) == before
    assert (first.planned.split, first.samples, first.forward_passes, first.seconds) == ("train", 6, 0, 0.0)
    assert (first.reused, second.reused) == (("train_tally",), ("after",))
    assert (second.samples, second.forward_passes) == (5, 1)
    assert second.seconds > 0
    assert second.row_bytes > 5 * (8 + 8 + 2 * 4)


def test_costs_without_a_run_and_with_findings_as_options():
    """Steps are told apart by their keys: two Findings cannot be compared with ==."""
    one, other = (Finding("x", arrays={"a": np.arange(n)}) for n in (3, 3))
    other.arrays["a"][0] = 7
    plan = Plan.of([Step.of(After, before=one), Step.of(After, before=other), Step.of(Keep)])
    (cost,) = costs(plan, Subject(Counting()), data(), None, execution=HOW)
    assert cost.reused == ()
    assert cost.forward_passes == 1
    assert cost.state_bytes == 2 * (8 + 2 * 8)


def test_costs_look_at_a_few_batches_only():
    net = Counting()
    list(costs(Plan.of([Step.of(Tally)]), Subject(net), data(test=200), None, execution=HOW))
    assert forwards(net) < 20


@pytest.mark.parametrize("samples", [150, 500])
def test_a_plan_shows_the_model_at_most_a_tenth_of_a_small_examination(run, samples):
    plan, sources, how = Plan.of([Step.of(After), Step.of(Keep)]), data(samples, samples), ExecutionOptions(workers=0)
    net = Counting()
    plan.run(Subject(net), sources, run, execution=how)
    examined = forwards(net)
    assert len(list(costs(plan, Subject(net), sources, None, execution=how))) == 2
    assert forwards(net) <= 0.1 * examined


class SlowToFinish(Tally):
    """Takes its time when all samples were seen."""

    def finish(self):
        time.sleep(0.2)
        return super().finish()


def test_costs_count_what_follows_the_pass():
    (cost,) = costs(Plan.of([Step.of(SlowToFinish)]), Subject(Counting()), data(), None, execution=HOW)
    assert cost.seconds >= 0.2


class SeesBefore(Tally):
    """Looks into the Finding that came before."""

    before: Finding

    @classmethod
    def upstream(cls, options):
        return {"before": Step.of(TrainTally)}

    def observe(self, seen):
        assert self.before.arrays["total"].shape == (2,)
        super().observe(seen)


def test_costs_of_a_step_are_tried_with_the_findings_of_tried_steps():
    first, second = costs(Plan.of([Step.of(SeesBefore)]), Subject(Counting()), data(), None, execution=HOW)
    assert (first.planned.split, second.planned.split) == ("train", "test")


def test_a_plan_of_nothing_is_nothing(run):
    plan = Plan.of([])
    assert (plan.steps, plan.passes()) == ((), [])
    assert plan.run(Subject(Counting()), data(), run) == []


def test_the_order_of_questions_does_not_change_a_finding(tmp_path):
    steps = [Step.of(After), Step.of(Tally), Step.of(Keep)]
    digests = set()
    for number, order in enumerate(itertools.permutations(steps)):
        run = Run.create(tmp_path / str(number))
        Plan.of(order).run(Subject(Counting()), data(), run, execution=HOW)
        digests.add(tuple(sorted(run.manifest()["findings"].items())))
    assert len(digests) == 1


PROBE_FILE = '''
from weakspot import Estimate, Finding, Probe, Sum

class Edited(Probe):
    """Counts."""
    seen = Sum()
    def observe(self, seen):
        self.seen = self.seen + {each}
    def finish(self):
        return self.finding(summary={{"seen": Estimate(int(self.seen))}})
'''


def test_an_edited_probe_is_asked_again(tmp_path, monkeypatch):
    """What was found with other code is not what the code now finds."""
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for each in (1, 2):
        (tmp_path / "edited_probe.py").write_text(PROBE_FILE.format(each=each))
        sys.modules.pop("edited_probe", None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        module = importlib.import_module("edited_probe")
        plan = Plan.of([Step.of(module.Edited)])
        (finding,) = plan.run(Subject(Counting()), {"test": numbered(3)}, Run.create(tmp_path / "run"))
        found.append(finding.summary["seen"].value)
    sys.modules.pop("edited_probe")
    assert found == [1, 2]


def test_what_was_found_is_used_again_under_another_name(tmp_path):
    """Asked second instead of first, a step gets another name; its Finding is not computed again."""
    run, net = Run.create(tmp_path / "run"), Counting()
    data = {"test": numbered(3)}
    first, second = Step.of(Tally, weight=1.0), Step.of(Tally, weight=2.0)
    (old,) = Plan.of([first]).run(Subject(net), data, run)
    computed = len(net.batches)
    both = Plan.of([second, first]).run(Subject(net), data, run)
    assert old.summary == both[1].summary
    assert old.name != both[1].name
    assert net.batches[computed:] == [3, 3, 3]  # asked again what it answers, tried, and the new question


class Drifting(Counting):
    """Writes to a buffer whenever it runs; the buffer is put back when the model is."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(()))

    def forward(self, inputs):
        self.runs += 1
        return super().forward(inputs)


def test_a_model_that_writes_to_its_buffers_is_the_same_in_every_pass(tmp_path):
    run, net = Run.create(tmp_path / "run"), Drifting()
    data = {"train": numbered(4), "test": numbered(3)}
    plan = Plan.of([Step.of(TrainTally), Step.of(Tally)])
    assert len(plan.passes()) == 2
    found = plan.run(Subject(net), data, run)
    assert {finding.provenance["subject"] for finding in found} == {Subject(net).fingerprint()}
    computed = len(net.batches)
    plan.run(Subject(net), data, run)
    assert len(net.batches) == computed + 1  # asked again what it answers


def test_a_call_that_fails_at_once_leaves_a_run_as_it_was(tmp_path):
    run, whole = Run.create(tmp_path / "run"), {"test": limited(digits.test(), 20)}
    subject = Subject(digits.model(), classes=digits.CLASSES)
    Plan.of([Step.of(NeuronCoverage)]).run(subject, whole, run)
    before = run.manifest()
    noisy = Step.of(NeighbourAccuracy, variation=Brightness(0.1), looks=2)
    with pytest.raises(ConfigError, match="smallest and largest value"):
        Plan.of([noisy]).run(subject, {"test": limited(digits.test(), 10)}, run)
    assert run.manifest() == before
