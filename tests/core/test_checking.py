"""Bad samples are named, never become a number, and can be left out."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import Tally
from weakspot import ExecutionOptions, Plan, Run, Step, Subject, examine
from weakspot.core.errors import BadSample, DataError
from weakspot.core.observation import Batch
from weakspot.core.progress import Silent
from weakspot.core.sample_check import CheckedSource, ValidSubset, usable
from weakspot.core.source import check_ids
from weakspot.data.sources import ArraySource

SKIP = ExecutionOptions(batch_size=4, shard_size=8, workers=0, on_bad_sample="skip")


def inputs(count: int = 20) -> np.ndarray:
    return np.arange(count * 12, dtype=np.float32).reshape(count, 3, 2, 2) / 100


class Plain:
    """A source as a user would write one: it checks nothing."""

    def __init__(self, values, targets=None, ids=None):
        self.values, self.targets = values, targets
        self.ids = tuple(ids or (f"s{place:02d}" for place in range(len(values))))
        self.reads = 0

    def read(self, positions):
        self.reads += len(positions)
        targets = None if self.targets is None else torch.as_tensor(self.targets[positions])
        return Batch(
            tuple(self.ids[p] for p in positions), positions, torch.from_numpy(self.values[positions]), targets
        )

    def fingerprint(self):
        return "plain"


@pytest.fixture
def subject():
    torch.manual_seed(0)
    return Subject(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), scores="logits")


def spoilt(*places: int, value: float = np.nan) -> Plain:
    values = inputs()
    values[list(places), 1, 1, 0] = value
    return Plain(values, np.zeros(20, dtype=np.int64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_pixel_that_is_no_number_stops_the_run_with_the_samples_name(subject, value):
    with pytest.raises(BadSample, match=r"sample 's07' holds NaN or infinity: correct it, or leave .* 'skip'") as error:
        examine(subject, spoilt(7, 9, value=value), [Tally()])
    assert error.value.sample == "s07"


def test_large_finite_pixels_are_no_mistake(subject):
    values = np.full((4, 3, 2, 2), 3e38, dtype=np.float32)
    assert len(CheckedSource(Plain(values), "classification", 3).read(np.arange(4))) == 4


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (3, r"sample 's04' needs a class number from 0 to 2 as target, got 3"),
        (-1, r"sample 's04' needs a class number from 0 to 2 as target, got -1"),
        (0.5, r"sample 's04' has a target that is not a class number, got 0.5"),
        (np.nan, r"sample 's04' has a target that is NaN or infinite"),
    ],
)
def test_a_label_that_is_no_class_is_named(subject, target, message):
    targets = np.zeros(20, dtype=np.int64 if isinstance(target, int) else np.float64)
    targets[4] = target
    with pytest.raises(BadSample, match=message):
        examine(subject, Plain(inputs(), targets), [Tally()])


def test_class_numbers_may_come_as_floats(subject):
    numbers = np.arange(20) % 3
    read = CheckedSource(Plain(inputs(), numbers.astype(np.float32)), "classification", 3).read(np.arange(20))
    assert read.targets.dtype == torch.int64
    assert read.targets.tolist() == numbers.tolist()


def test_values_beyond_the_bounds_are_named():
    values = inputs()  # up to 2.39; sample 15 is the first beyond 1.9
    checked = CheckedSource(Plain(values), "classification", 3, bounds=(0.0, 1.9))
    assert len(checked.read(np.arange(15))) == 15
    with pytest.raises(
        BadSample, match=r"'s15' has values from 1\.8 to 1\.91, outside the subject's bounds \(0\.0, 1\.9\)"
    ):
        checked.read(np.arange(20))


def test_rounding_is_not_beyond_the_bounds():
    values = np.full((2, 3, 2, 2), 1 + 1e-6, dtype=np.float32)
    assert len(CheckedSource(Plain(values), "classification", 3, bounds=(0.0, 1.0)).read(np.arange(2))) == 2


def test_one_hot_targets_are_explained(subject):
    with pytest.raises(DataError, match=r"shape \(20, 3\), expected one class number .* for one-hot"):
        examine(subject, Plain(inputs(), np.eye(3)[np.zeros(20, dtype=int)]), [Tally()])


def test_labels_other_than_zero_and_one_are_named():
    labels = np.zeros((20, 3), dtype=np.int64)
    labels[11, 2] = 2
    with pytest.raises(BadSample, match="sample 's11' has labels other than 0 and 1"):
        CheckedSource(Plain(inputs(), labels), "multilabel", 3).read(np.arange(20))


def test_targets_that_are_numbers_must_be_finite():
    angles = np.linspace(0, 1, 20)
    angles[5] = np.inf
    with pytest.raises(BadSample, match="sample 's05' has a target that is NaN or infinite"):
        CheckedSource(Plain(inputs(), angles), "regression", None).read(np.arange(20))


@pytest.mark.parametrize("short", ["ids", "targets"])
def test_a_source_that_miscounts_is_told(subject, short):
    class Miscounting(Plain):
        def read(self, positions):
            batch = super().read(positions)
            ids = batch.ids[:-1] if short == "ids" else batch.ids
            targets = batch.targets[:-1] if short == "targets" else batch.targets
            return Batch(ids, positions, batch.inputs, targets)

    with pytest.raises(DataError, match="the source gave"):
        examine(subject, Miscounting(inputs(), np.zeros(20)), [Tally()])


@pytest.mark.parametrize("odd", ["\udcff.png", 7])
def test_an_id_that_cannot_be_written_is_refused(odd):
    with pytest.raises(DataError, match="is not text that can be written to a file"):
        check_ids(Plain(inputs(2), ids=["fine", odd]))


def test_skipping_gives_what_the_good_samples_alone_give(subject):
    good = [place for place in range(20) if place not in (0, 7, 8, 19)]
    alone = Plain(inputs()[good], np.zeros(16, dtype=np.int64), [f"s{place:02d}" for place in good])
    kept = examine(subject, spoilt(0, 7, 8, 19), [Tally()], execution=SKIP)[0]
    only = examine(subject, alone, [Tally()], execution=SKIP)[0]
    assert kept.summary == only.summary
    assert (kept.arrays["total"] == only.arrays["total"]).all()
    assert list(kept.provenance["skipped"]) == ["s00", "s07", "s08", "s19"]
    assert "holds NaN" in kept.provenance["skipped"]["s08"]


def test_wrong_labels_are_skipped_even_where_the_first_sample_cannot_be_read(subject):
    source = spoilt(0)
    source.targets[5] = 3
    found = usable(subject, source, batch_size=8, workers=2, progress=Silent())
    assert list(found.skipped) == ["s00", "s05"]
    assert len(found.ids) == 18


def test_nothing_left_is_an_error(subject):
    with pytest.raises(DataError, match="none of the 20 samples can be used; the first: sample 's00' holds NaN"):
        usable(subject, spoilt(*range(20)), batch_size=8, workers=0, progress=Silent())


def test_a_run_that_goes_on_does_not_look_for_bad_samples_again(subject, tmp_path):
    run, source = Run.create(tmp_path / "run"), spoilt(3)
    plan = Plan.of([Step.of(Tally)])
    first = plan.run(subject, {"test": source}, run, execution=SKIP)
    reads = source.reads
    again = plan.run(subject, {"test": source}, run, execution=SKIP)
    assert source.reads == reads + 4  # to ask the model again what it answers
    assert again[0].digest == first[0].digest
    assert list(run.manifest()["data"]["test"]["skipped"]) == ["s03"]


def test_what_was_skipped_is_not_taken_for_the_whole(subject, tmp_path):
    run, source = Run.create(tmp_path / "run"), spoilt(3)
    Plan.of([Step.of(Tally)]).run(subject, {"test": source}, run, execution=SKIP)
    with pytest.raises(BadSample, match="'s03'"):
        Plan.of([Step.of(Tally)]).run(subject, {"test": source}, run)


def test_reasons_survive_any_name(subject, tmp_path):
    odd = '<b>"\n../\u202e'
    source = spoilt(1)
    source.ids = (source.ids[0], odd, *source.ids[2:])
    run = Run.create(tmp_path / "run")
    finding = Plan.of([Step.of(Tally)]).run(subject, {"test": source}, run, execution=SKIP)[0]
    assert list(finding.provenance["skipped"]) == [odd]
    assert odd in json.loads((run.folder / "run.json").read_text())["data"]["test"]["skipped"]


def test_usable_of_nothing_bad_is_the_whole():
    source = ArraySource(inputs())
    assert ValidSubset(source, {}).ids == tuple(source.ids)
