"""A fit says how far it is, and `plan` says how long it takes without doing it."""

import numpy as np
import pytest

from tests.lesions import toy
from weakspot import ExecutionOptions
from weakspot.core.costs import costs
from weakspot.core.errors import DataError
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent, showing
from weakspot.lesions import fit_forecast, lesion_model, probes
from weakspot.lesions.gcn import Learning
from weakspot.lesions.graphs import LesionNodes
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.methods import METHODS, NETWORKS, TRAINED
from weakspot.registry import steps_of


def lesions_of(count, *, both=True):
    rng = np.random.default_rng(0)
    wrong = rng.random(count) < (0.5 if both else -1)
    names = ("entropy", "variance", "pcs", "mutual_information", "entropy_logsum", "variance_logsum", "pcs_logsum")
    columns = {name: rng.random(count) for name in names} | {
        "voxels": rng.integers(3, 9, count), "true_positive": ~wrong, "adjusted_iou": rng.random(count)
    }  # fmt: skip
    places = np.tile([[0, 0, 0], [0, 0, 1]], (count, 1)).astype(np.int32)
    features = rng.random((2 * count, 5), np.float32)
    cases = np.array([f"p{n % 6}" for n in range(count)])
    return LesionSet(cases, columns, LesionNodes(places, np.arange(count + 1) * 2), features)


class Counting(Silent):
    def __init__(self):
        self.total, self.done, self.ended = 0, 0, False

    def begin(self, what, *, total, done=0):
        assert what == "training methods"
        self.total = total

    def advance(self, samples):
        self.done += samples

    def end(self):
        self.ended = True


def test_a_fit_says_how_far_it_is():
    lesions, progress = lesions_of(30), Counting()
    with showing(progress):
        lesion_model.fit_lesion_model(lesions, lesions.case, learning=Learning(epochs=1), folds=2)
    known = len(METHODS) - 2  # these lesions have no structural uncertainty and no place
    assert progress.done == progress.total == known + len(TRAINED) - 1 and progress.ended


def test_a_forecast_trains_each_method_once_and_scales_the_time(monkeypatch):
    trained, clock = [], iter(range(1000))
    monkeypatch.setattr(fit_forecast, "train", lambda name, lesions, rows, how: trained.append((name, how.epochs)))
    monkeypatch.setattr(fit_forecast.time, "perf_counter", lambda: float(next(clock)))
    for both in (True, False):
        trained.clear()
        _, seconds = fit_forecast.tried_fit(
            lesions_of(9, both=both), Learning(epochs=60), method="best", folds=5, share=10
        )
        assert trained == [(name, 1) for name in TRAINED if name != "location"]
        plain = len(TRAINED) - len(NETWORKS) - 1
        assert seconds == 10 * 5 * (plain + 60 * len(NETWORKS))
    with pytest.raises(DataError, match="1 lesions are in the cases tried"):
        fit_forecast.tried_fit(lesions_of(1), Learning(), method="best", folds=5, share=10)


def test_a_plan_counts_the_fit_and_does_not_do_it(monkeypatch):
    def stated(lesions, learning, **how):
        fitted, _ = fit_forecast.tried_fit(lesions, learning, **how)
        assert how["share"] == 40 / 4
        return fitted, 12345.0

    monkeypatch.setattr(lesion_model, "held_out_scores", lambda *_, **__: pytest.fail("the forecast did the fit"))
    monkeypatch.setattr(probes, "tried_fit", stated)
    data = {"validation": toy.source(40, split="v", seed=1), "test": toy.source(6, split="t", seed=2)}
    plan = Plan.of(steps_of("lesions", {"looks": 2, "fit": "validation"}))
    told = list(costs(plan, toy.subject(), data, None, execution=ExecutionOptions(batch_size=4)))
    assert 12345 <= sum(cost.seconds for cost in told) < 13000


def test_of_whole_volumes_one_is_tried():
    source = toy.source(9)
    source.batch_limit = 1
    read = []
    original = source.read
    source.read = lambda positions: read.append(len(positions)) or original(positions)
    plan = Plan.of(steps_of("lesions", {"looks": 2}))
    list(costs(plan, toy.subject(), {"test": source}, None))
    assert sum(read) <= 4  # of 9: the first to warm up and to see what it is, and one to measure
