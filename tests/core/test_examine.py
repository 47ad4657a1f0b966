"""The examination: every batch once per look, every probe what it asked for, nothing lost and nothing left behind."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import (
    SEEN,
    TRIED,
    Counting,
    Grab,
    Keep,
    Tally,
    everything,
    numbered,
    reading_threads,
    whole_numbers,
)
from tests.core.test_taps import value_times_gradient
from weakspot.core.digest import class_code
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, DataError, ProbeError, RunError, SubjectError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import released_rows
from weakspot.core.probe import Probe
from weakspot.core.subject import Subject
from weakspot.core.taps import Tap
from weakspot.data.sources import ArraySource
from weakspot.looks import Neighbour, Rotate, Shift


class Plus(Look):
    """Adds its number to the inputs."""

    def outputs(self, forward, inputs, ids, number):
        return forward(inputs + number)


class Minus(Look):
    """Subtracts its number from the inputs."""

    def outputs(self, forward, inputs, ids, number):
        return forward(inputs - number)


LOG: list[tuple[str, str, int, tuple[str, ...]]] = []


class Logged(Probe):
    """Notes what it is shown, and lets go of samples.

    label: who it is.
    looks: what it asks for.
    release: for each number of a look, the ids to let go.
    """

    label: str
    looks: tuple[tuple[Look, int], ...] = ((Original(), 1),)
    taps: tuple[Tap, ...] = ()
    release: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @property
    def needs(self):
        return Needs(dict(self.looks), self.taps)

    def observe(self, seen):
        LOG.append((self.label, type(seen.look).__name__, seen.number, seen.ids))
        return dict(self.release).get(seen.number)

    def close(self, ids):
        LOG.append((self.label, "close", -1, tuple(ids)))

    def finish(self):
        return self.finding()


@pytest.fixture(autouse=True)
def _fresh_log():
    LOG.clear()
    SEEN.clear()


def run(probes, samples=4, net=None, **execution):
    net = net or Counting()
    found = examine(Subject(net), numbered(samples), probes, execution=ExecutionOptions(**{"workers": 0, **execution}))
    return net.batches[TRIED:], found


def test_one_forward_pass_serves_all_probes():
    probes = [
        Logged(label="a"),
        Logged(label="b", taps=(Tap("layer"),)),
        Logged(label="c", taps=(Tap("layer", scaled=True), Tap("layer", "input", maps=True))),
        Grab(attribution=value_times_gradient(Tap("layer"))),
    ]
    batches, _ = run(probes, samples=7, batch_size=3)
    assert batches == [3, 3, 1]


def test_the_union_of_looks_is_done_once_each():
    plus, minus = Plus(), Minus()
    probes = [
        Logged(label="a", looks=((Original(), 1), (plus, 2))),
        Logged(label="b", looks=((plus, 3),)),
        Logged(label="c", looks=((minus, 1), (Original(), 1))),
    ]
    batches, _ = run(probes)
    assert len(batches) == 1 + 3 + 1
    shown = [(who, look, number) for who, look, number, _ in LOG if look != "close"]
    assert sorted(shown) == [
        *[("a", "Original", 0), ("a", "Plus", 1), ("a", "Plus", 2)],
        *[("b", "Plus", 1), ("b", "Plus", 2), ("b", "Plus", 3)],
        *[("c", "Minus", 1), ("c", "Original", 0)],
    ]
    assert [number for _, look, number, _ in LOG if look != "close"] == sorted(n for _, k, n, _ in LOG if k != "close")
    assert [entry[:2] for entry in LOG[-3:]] == [("a", "close"), ("b", "close"), ("c", "close")]


def test_equal_looks_are_shared_and_different_seeds_are_not():
    images = ArraySource(whole_numbers(4, 1, 5, 5))
    net = nn.Sequential(nn.Flatten(), Counting(25))
    same = [Logged(label=x, looks=((Neighbour(Rotate(9) & Shift(1)), 3),)) for x in "ab"]
    examine(Subject(net), images, same)
    assert len(net[1].batches) - TRIED == 3
    net[1].batches.clear()
    examine(Subject(net), images, [same[0], Logged(label="c", looks=((Neighbour(Rotate(9) & Shift(1), seed=1), 3),))])
    assert len(net[1].batches) - TRIED == 6


def test_released_samples_are_still_shown_to_others_and_the_batch_shrinks():
    plus = Plus()
    quick = Logged(label="quick", looks=((plus, 4),), release=((1, ("s0", "s2")), (2, ("s1", "s3"))))
    slow = Logged(label="slow", looks=((plus, 3),), release=((1, ("s0",)), (2, ("s3",))))
    batches, _ = run([quick, slow])
    shown = {(who, number): ids for who, look, number, ids in LOG if look == "Plus"}
    assert shown == {
        ("quick", 1): ("s0", "s1", "s2", "s3"),
        ("slow", 1): ("s0", "s1", "s2", "s3"),
        ("quick", 2): ("s1", "s3"),
        ("slow", 2): ("s1", "s2", "s3"),
        ("slow", 3): ("s1", "s2"),
    }
    assert batches == [4, 3, 2]
    assert all(ids == ("s0", "s1", "s2", "s3") for _, look, _, ids in LOG if look == "close")


def test_what_a_probe_sees_of_a_shrunken_batch_is_its_own_samples():
    plus = Plus()
    net = Counting()
    quick = Logged(label="quick", looks=((plus, 2),), release=((1, ("s0",)),))
    grab = Grab(looks=((plus, 2),), taps=(Tap("layer", maps=True),))
    keep = Keep(looks=((plus, 2),))
    (_, _, kept) = examine(Subject(net), numbered(3), [quick, grab, keep])
    inputs = numbered(3).read(np.arange(3)).inputs
    for seen in SEEN:
        with torch.no_grad():
            expected = net(inputs + seen.number)
        assert torch.equal(seen.outputs, expected)
        assert torch.equal(seen.maps(Tap("layer", maps=True))["layer"], expected)
        assert seen.targets.tolist() == [0, 1, 0]
    assert kept.arrays["look"].tolist() == [1, 2] * 3


def test_every_probe_gets_its_own_attribution_and_passes_are_few():
    first, second = value_times_gradient(Tap("layer")), value_times_gradient(Tap("layer", "input"))
    probes = [Grab(attribution=first), Logged(label="plain"), Grab(attribution=second), Grab(attribution=first)]
    batches, _ = run(probes)
    assert batches == [4, 4]
    assert len(SEEN) == 3
    for seen, attribution in zip(
        sorted(SEEN, key=lambda s: "input" in str(s.seen.relevance)), [first, first, second], strict=True
    ):
        (relevance,) = seen.relevance(attribution).values()
        inputs = numbered(4).read(np.arange(4)).inputs
        weight = Counting().layer.weight.detach()
        expected = inputs @ weight.T if attribution is first else inputs * weight.sum(0)
        assert torch.equal(relevance, expected)


def test_observations_are_detached_and_know_their_samples():
    (seen,) = (run([Grab()]), SEEN)[1]
    assert not seen.outputs.requires_grad
    assert seen.ids == ("s0", "s1", "s2", "s3")
    assert seen.metadata == {}
    assert seen.predicted.tolist() == seen.outputs.argmax(1).tolist()


@pytest.mark.parametrize(
    ("batch", "shard", "expected"), [(3, 7, [3, 3, 1, 3]), (64, 4, [4, 4, 2]), (1, 100, [1] * 10), (4, 4, [4, 4, 2])]
)
def test_batches_never_cross_shards(batch, shard, expected):
    batches, _ = run([Tally()], samples=10, batch_size=batch, shard_size=shard)
    assert batches == expected


def test_a_tally_by_hand():
    _, (found,) = run([Tally(weight=2.0)], samples=9, batch_size=2, shard_size=4)
    inputs = numbered(9).read(np.arange(9)).inputs
    weight = Counting().layer.weight.detach()
    assert found.summary["count"].value == 9
    assert found.arrays["total"].tolist() == (2 * (inputs @ weight.T)).sum(0).tolist()


def test_provenance_says_how_it_came_about():
    subject, source = Subject(Counting()), numbered(5)
    (found,) = examine(
        subject, source, [Tally(weight=2.0)], execution=ExecutionOptions(batch_size=2, shard_size=3, workers=1)
    )
    said = dict(found.provenance)
    versions = said.pop("versions")
    assert said == {
        "probe": "tests.core.helpers:Tally",
        "code": class_code(Tally),
        "parameters": {"weight": 2.0},
        "subject": subject.fingerprint(),
        "data": source.fingerprint(),
        "samples": 5,
        "execution": {"batch_size": 2, "shard_size": 3, "device": "cpu", "threads": 1},
    }
    assert set(versions) == {"weakspot", "python", "torch", "numpy"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0: expected 1 or more"),
        ({"shard_size": -1}, "shard_size is -1: expected 1 or more"),
        ({"workers": -1}, "workers is -1: expected 0 or more"),
    ],
)
def test_impossible_executions_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ExecutionOptions(**options)


class Regressors(Tally):
    """For regression only."""

    tasks = ("regression", "keypoints")


def test_a_probe_for_another_task_is_refused():
    with pytest.raises(ConfigError, match="regressors examines regression or keypoints, the subject's task is classif"):
        run([Regressors()])


@pytest.mark.parametrize(
    "subject",
    [Subject(lambda x: x, fingerprint="x"), Subject(nn.Linear(3, 2), forward=lambda model, x: model(x))],
    ids=["callable", "window"],
)
@pytest.mark.parametrize("probe", [Grab(taps=(Tap(),)), Grab(attribution=value_times_gradient(Tap()))])
def test_a_black_box_cannot_be_looked_into(subject, probe):
    with pytest.raises(SubjectError, match=r"grab looks inside the model.*give the nn.Module itself"):
        examine(subject, numbered(2), [probe])


@pytest.mark.parametrize(
    ("subject", "probes", "message"),
    [
        (Counting(), [Tally()], r"expected a Subject, got Counting: wrap the model, Subject\(model, task=…\)"),
        (Subject(Counting()), Tally(), r"expected a list of probes, got Tally: write \[probe\]"),
        (Subject(Counting()), [Tally], "got the class Tally itself"),
        (Subject(Counting()), ["tally"], "got str"),
    ],
)
def test_what_is_no_subject_or_no_probe_is_told(subject, probes, message):
    with pytest.raises(ConfigError, match=message):
        examine(subject, numbered(3), probes)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (("b", "c"), r"number the classes \['b', 'c'\], and the model has 3 scores per sample: name all classes"),
        (("b", "c", "a"), r"number the classes \['b', 'c', 'a'\], and the model has \['a', 'b', 'c'\]: name all"),
        (("x", "y", "z"), None),
        (None, None),
    ],
)
def test_data_that_number_other_classes_are_refused(own, message):
    source = ArraySource(np.zeros((2, 4), dtype=np.float32), classes=own)
    subject = Subject(nn.Linear(4, 3), classes=("a", "b", "c"))
    with nullcontext() if message is None else pytest.raises(DataError, match=message):
        examine(subject, source, [Tally()])


def test_a_black_box_can_be_asked_for_outputs():
    (found,) = examine(Subject(lambda x: 2 * x), numbered(4), [Tally()])
    assert found.arrays["total"].tolist() == (2 * numbered(4).read(np.arange(4)).inputs).sum(0).tolist()
    assert found.provenance["subject"] is None


def test_work_that_is_kept_needs_a_subject_that_is_known_again(tmp_path):
    """Two black boxes without a name would take each other's shards for their own."""
    for box in (lambda x: x, lambda x: 2 * x):
        with pytest.raises(ConfigError, match="fingerprint='name and version'"):
            examine(Subject(box), numbered(4), [Tally()], work=tmp_path)
    one, other = (
        examine(Subject(box, fingerprint=str(n)), numbered(4), [Tally()], work=tmp_path)[0]
        for n, box in enumerate((lambda x: x, lambda x: 2 * x))
    )
    assert (2 * one.arrays["total"]).tolist() == other.arrays["total"].tolist()


class Wants(Tally):
    """Wants targets."""

    def observe(self, seen):
        _ = seen.targets


def test_missing_targets_are_explained():
    with pytest.raises(
        DataError, match=r"the data have no targets: add them \(sample 's0' has none\), or leave the question out"
    ):
        examine(Subject(Counting()), numbered(3, targets=False), [Wants()])


def test_probabilities_need_to_be_said():
    class Sure(Tally):
        """Wants probabilities."""

        def observe(self, seen):
            assert torch.allclose(seen.probabilities.sum(1), torch.ones(len(seen.ids)))

    examine(Subject(Counting(), scores="logits"), numbered(3), [Sure()])
    with pytest.raises(SubjectError, match=r"give the subject scores='logits' or scores='probabilities'"):
        examine(Subject(Counting()), numbered(3), [Sure()])


@pytest.mark.parametrize(
    ("ids", "message"),
    [([], "the data have no samples"), (["a", "b", "a"], "two samples have the id 'a': ids must be unique")],
)
def test_data_that_cannot_be_examined(ids, message):
    source = ArraySource(np.zeros((3, 3), dtype=np.float32))
    source.ids = ids
    with pytest.raises(DataError, match=message):
        examine(Subject(Counting()), source, [Tally()])


@pytest.mark.parametrize("given", [{"test": numbered(3)}, np.zeros((3, 3))])
def test_data_that_are_no_source(given):
    with pytest.raises(ConfigError, match=rf"the data are a {type(given).__name__}: expected one source.* ArraySource"):
        examine(Subject(Counting()), given, [Tally()])


class Breaks(Tally):
    """Fails at a sample.

    at: its id.
    where: in which method.
    """

    at: str = "s5"
    where: str = "observe"

    def observe(self, seen):
        super().observe(seen)
        if self.where == "observe" and self.at in seen.ids:
            raise ZeroDivisionError("in the middle")

    def close(self, ids):
        if self.where == "close" and self.at in ids:
            raise ZeroDivisionError("in the middle")

    def finish(self):
        if self.where == "finish":
            raise ZeroDivisionError("in the middle")
        return super().finish()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("where", ["observe", "close", "finish"])
def test_an_exception_in_a_probe_leaves_the_model_and_the_threads_as_they_were(where, workers):
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(), Counting()).train()
    before = {key: value for key, value in everything(net).items() if key != "module 2"}
    with pytest.raises(ZeroDivisionError, match="in the middle") as error:
        examine(
            Subject(net),
            numbered(8),
            [Grab(taps=(Tap("*"), Tap("*", "activated"))), Breaks(where=where)],
            execution=ExecutionOptions(batch_size=2, workers=workers),
        )
    assert {key: value for key, value in everything(net).items() if key != "module 2"} == before
    assert not torch.overrides._get_current_function_mode_stack()
    assert torch.is_grad_enabled()
    assert error.tb, "while somebody looks at the error"
    assert not reading_threads()


def test_finished_shards_survive_an_exception_in_a_later_one(tmp_path):
    net, how = Counting(), ExecutionOptions(batch_size=2, shard_size=2, workers=0)
    with pytest.raises(ZeroDivisionError):
        examine(Subject(net), numbered(8), [Breaks(), Tally()], execution=how, work=tmp_path)
    assert sum(net.batches[TRIED:]) == 6
    assert len(list(tmp_path.glob("*/shard-*"))) == 2 * 2
    assert not list(tmp_path.rglob("*.partial"))
    net.batches.clear()
    (found,) = examine(Subject(net), numbered(8), [Tally()], execution=how, work=tmp_path)
    assert sum(net.batches[TRIED:]) == 4
    (alone,) = examine(Subject(net), numbered(8), [Tally()], execution=how)
    assert found.digest == alone.digest


def test_work_is_not_taken_for_other_work(tmp_path):
    """Another model, other data, options, batches or shards: all begin again."""
    how = ExecutionOptions(batch_size=2, shard_size=4, workers=0)
    examine(Subject(Counting()), numbered(8), [Tally()], execution=how, work=tmp_path)
    other = Counting()
    with torch.no_grad():
        other.layer.bias.add_(1)
    for net, data, probe, cut in (
        (other, numbered(8), Tally(), how),
        (Counting(), numbered(8, prefix="t"), Tally(), how),
        (Counting(), numbered(8), Tally(weight=3.0), how),
        (Counting(), numbered(8), Tally(), ExecutionOptions(batch_size=4, shard_size=4, workers=0)),
        (Counting(), numbered(8), Tally(), ExecutionOptions(batch_size=2, shard_size=8, workers=0)),
    ):
        net.batches.clear()
        (found,) = examine(Subject(net), data, [probe], execution=cut, work=tmp_path)
        assert sum(net.batches[TRIED:]) == 8
        assert found.digest == examine(Subject(net), data, [probe], execution=cut)[0].digest
    same = Counting()
    examine(Subject(same), numbered(8), [Tally()], execution=how, work=tmp_path)
    assert sum(same.batches[TRIED:]) == 0


class Told:
    """Notes what it is told."""

    def __init__(self):
        self.notes = []

    def begin(self, what, *, total, done=0):
        self.notes.append(("begin", what, total, done))

    def advance(self, samples):
        self.notes.append(("advance", samples))

    def end(self):
        self.notes.append(("end",))


def test_progress_is_told_of_every_batch(tmp_path):
    how = ExecutionOptions(batch_size=2, shard_size=4, workers=0)
    told = Told()
    with pytest.raises(ZeroDivisionError):
        examine(Subject(Counting()), numbered(9), [Breaks(at="s8")], execution=how, work=tmp_path, progress=told)
    assert told.notes == [("begin", "1 questions", 9, 0), *[("advance", 2)] * 4, ("end",)]
    told = Told()
    examine(Subject(Counting()), numbered(9), [Breaks(at="none")], execution=how, work=tmp_path, progress=told)
    assert told.notes == [("begin", "1 questions", 9, 0), *[("advance", 2)] * 4, ("advance", 1), ("end",)]


def test_progress_of_a_run_that_goes_on_counts_what_is_done(tmp_path):
    how = ExecutionOptions(batch_size=2, shard_size=4, workers=0)
    examine(Subject(Counting()), numbered(9), [Tally()], execution=how, work=tmp_path)
    told = Told()
    examine(Subject(Counting()), numbered(9), [Tally()], execution=how, work=tmp_path, progress=told)
    assert told.notes == [("begin", "1 questions", 9, 9), ("end",)]


def test_temporary_work_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run([Keep(), Tally()], samples=5)
    with pytest.raises(ZeroDivisionError):
        run([Keep(), Breaks(at="s1")], samples=5)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_with_the_place_and_leaves_no_half_shard(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(RunError, match=r"cannot write .*: No space left on device; check free space and permissions"):
        examine(Subject(Counting()), numbered(4), [Tally(), Keep()], work=tmp_path)
    assert not list(tmp_path.rglob("*shard*"))


def test_released_rows():
    assert released_rows(("a", "b", "c"), ["c", "a"]).tolist() == [True, False, True]
    assert released_rows(("a",), []).tolist() == [False]
    assert released_rows(("a", "b"), (name for name in "b")).tolist() == [False, True]


@pytest.mark.parametrize("released", ["a", ["a", "stranger"]])
def test_releasing_what_was_not_shown_is_an_error_of_the_probe(released):
    with pytest.raises(ProbeError, match="observe may return ids of the batch it was shown"):
        released_rows(("a", "b"), released)


class Some(Grab):
    """Wants some samples alone."""

    ids: tuple[str, ...] = ()

    def wants(self, ids):
        return [name for name in ids if name in self.ids]


class Reads:
    """A source that notes what is read of it."""

    def __init__(self, source):
        self._source, self.ids, self.read_ids = source, source.ids, []

    def read(self, positions):
        batch = self._source.read(positions)
        self.read_ids.append(batch.ids)
        return batch

    def fingerprint(self):
        return self._source.fingerprint()


def test_samples_that_no_probe_wants_are_not_even_read_and_batches_are_full():
    source, told = Reads(numbered(10)), Told()
    how = ExecutionOptions(batch_size=2, shard_size=8, workers=0)
    SEEN.clear()
    examine(Subject(Counting()), source, [Some(ids=("s1", "s4", "s7", "s9"))], execution=how, progress=told)
    assert source.read_ids[-3:] == [("s1", "s4"), ("s7",), ("s9",)]
    assert [seen.ids for seen in SEEN] == source.read_ids[-3:]
    assert sum(count for kind, *rest in told.notes if kind == "advance" for count in rest) == 10


def test_relevance_of_a_few_samples_is_a_sweep_of_its_own_over_full_batches():
    few = Some(ids=("s1", "s4", "s7", "s9"), attribution=value_times_gradient(Tap("layer")))
    batches, _ = run([Logged(label="a"), few], samples=10, batch_size=4)
    assert batches == [4, 4, 2, 4]
    many = Some(ids=tuple(f"s{number}" for number in range(6)), attribution=value_times_gradient(Tap("layer")))
    batches, _ = run([Logged(label="a"), many], samples=10, batch_size=4)
    assert batches == [4, 4, 2], "of most samples it joins the others' passes"
