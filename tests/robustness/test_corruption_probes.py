"""Common corruptions of a model: against a plain loop over images, a hand-computed case, and what is refused."""

import numpy as np
import pytest
import torch

from weakspot import examine
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.looks import Corruption, Neighbour
from weakspot.looks.corruption_severities import KINDS
from weakspot.report.drawings import figures
from weakspot.robustness import CommonCorruptions, baseline_errors, mean_corruption_error
from weakspot.robustness.corruption_metrics import class_errors, error_rise, relative_error, share_interval
from weakspot.robustness.room import steps
from weakspot.statistics import wilson_interval

ASKED = {"kinds": ("fog", "pixelate", "defocus_blur"), "severities": (1, 5), "sizes": "large", "seed": 3}


@pytest.fixture(scope="module")
def source():
    return limited(digits.test(), 60)


@pytest.fixture(scope="module")
def finding(subject, source):
    return examine(subject, source, [CommonCorruptions(**ASKED)], execution=ExecutionOptions(batch_size=17))[0]


@pytest.fixture(scope="module")
def wrong(subject, source):
    """Whether each image is predicted incorrectly under each kind and severity; image by image."""
    batch = source.read(np.arange(60))
    made = np.zeros((60, 3, 2), bool)
    for row, name in enumerate(batch.ids):
        for i, kind in enumerate(ASKED["kinds"]):
            for j, severity in enumerate(ASKED["severities"]):
                look = Neighbour(Corruption(severity, kind, "large"), seed=3, bounds=subject.bounds)
                with torch.no_grad():
                    outputs = subject.forward(look.images(batch.inputs[row : row + 1], [name], 1))
                made[row, i, j] = int(outputs.argmax()) != int(batch.targets[row])
    return made


def test_errors_are_those_of_a_plain_loop(finding, wrong):
    np.testing.assert_allclose(finding.arrays["error"], wrong.mean(0))
    low, high = wilson_interval(wrong.sum(0), 60)
    np.testing.assert_allclose(finding.arrays["error_low"], low)
    np.testing.assert_allclose(finding.arrays["error_high"], high)
    summary = finding.summary
    assert summary["corruption_error"].value == pytest.approx(wrong.mean())
    assert [summary[f"error_{kind}"].value for kind in ASKED["kinds"]] == pytest.approx(wrong.mean((0, 2)).tolist())
    worst = ASKED["kinds"][int(wrong.mean((0, 2)).argmax())]
    assert summary["worst_corruption"].value == worst.replace("_", " ")
    assert summary["worst_corruption_error"].low < summary[f"error_{worst}"].low  # it was chosen
    assert 0.05 < wrong.mean() < 0.95 and "mean_corruption_error" not in summary


def test_the_table_has_every_input_the_most_often_broken_first(finding, source, wrong):
    table = finding.table.to_pydict()
    of = dict(zip(source.ids, wrong, strict=True))
    assert sorted(table["id"]) == sorted(source.ids)
    assert table["corruption_error"] == pytest.approx([of[name].mean() for name in table["id"]])
    assert table["error_fog"] == pytest.approx([of[name][0].mean() for name in table["id"]])
    assert table["corruption_error"] == sorted(table["corruption_error"], reverse=True)


def test_which_corruption_breaks_which_class(finding, source, wrong):
    batch = source.read(np.arange(60))
    plain = 1 - np.array([dict(zip(*(finding.table[c].to_pylist() for c in ("id", "correct")), strict=True))[name]
                          for name in source.ids])  # fmt: skip
    labels = batch.targets.numpy()
    rises = {
        (label, i): wrong[labels == label, i].mean() - plain[labels == label].mean()
        for label in np.unique(labels) for i in range(3)
    }  # fmt: skip
    label, kind = max(rises, key=rises.get)
    assert finding.summary["broken_class"].value == digits.CLASSES[label]
    assert finding.summary["broken_by"].value == ASKED["kinds"][kind].replace("_", " ")
    expected = wrong[labels == label, kind].mean()
    estimate = finding.summary["broken_class_error"]
    assert estimate.value == pytest.approx(expected)
    mean, low, high = share_interval(wrong[labels == label, kind].mean(1))
    assert estimate.low < low <= mean <= high  # the pair was chosen among 30
    assert finding.arrays["class_error"].shape == (10, 3)


def test_mean_corruption_errors_by_hand():
    """Two inputs, two kinds, two severities."""
    wrong = np.array([[[True, True], [False, True]], [[False, True], [False, False]]])
    plain = np.array([True, False])
    baseline = {"clean": 0.2, "fog": 0.5, "snow": 0.25}
    error = mean_corruption_error(wrong, ["fog", "snow"], baseline)
    assert error.value == pytest.approx((0.75 / 0.5 + 0.25 / 0.25) / 2)
    rise = relative_error(wrong, plain, ["fog", "snow"], baseline)
    assert rise.value == pytest.approx(((0.75 - 0.5) / 0.3 + (0.25 - 0.5) / 0.05) / 2)
    assert error_rise(wrong, plain).value == pytest.approx(0.5 - 0.5)
    classes, inputs, errors = class_errors(wrong, np.array([4, 4]))
    assert classes.tolist() == [4] and inputs.tolist() == [2] and errors.tolist() == [[0.75, 0.25]]


def test_the_net_itself_as_baseline_has_a_mean_corruption_error_of_one(subject, source, finding):
    probe = CommonCorruptions(**ASKED, baseline=baseline_errors(finding))
    against = examine(subject, source, [probe])[0]
    assert against.summary["mean_corruption_error"].value == pytest.approx(1)
    assert against.summary["relative_mean_corruption_error"].value == pytest.approx(1)
    estimate = against.summary["mean_corruption_error"]
    assert estimate.low < 1 < estimate.high and not against.outputs.problems(against)


def test_the_interval_of_the_mean_covers(finding):
    """Of 400 draws of 80 inputs from a population, about 95 % of the intervals hold its mean."""
    rng = np.random.default_rng(0)
    weakness = rng.beta(0.5, 1, 20_000)
    wrong = rng.random((20_000, 3, 2)) < weakness[:, None, None]
    held = 0
    for _ in range(400):
        _, low, high = share_interval(wrong[rng.integers(0, 20_000, 80)].mean((1, 2)))
        held += low <= wrong.mean() <= high
    assert held >= 0.93 * 400


def test_its_figures_are_drawn(finding):
    drawn = figures(finding, list(digits.CLASSES))
    assert len(drawn) == 3 and not any(figure.problem for figure in drawn)
    assert not finding.outputs.problems(finding)


def test_the_room_asks_for_it_on_request():
    asked = steps({"looks": 3, "corruptions": {"kinds": ["fog"], "severities": [2]}})
    assert [step.probe.__name__ for step in asked] == ["NeighbourAccuracy", "CommonCorruptions"]
    assert asked[1].options["kinds"] == ("fog",) and asked[1].options["severities"] == (2,)
    assert [step.probe.__name__ for step in steps({"corruptions": True})][1] == "CommonCorruptions"
    assert len(CommonCorruptions().needs.looks) == 76


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ("fogg",)}, "'fogg' is no common corruption: did you mean 'fog'"),
        ({"kinds": ()}, r"kinds is \[\]: expected one or more, each once"),
        ({"kinds": ("fog", "fog")}, "expected one or more, each once"),
        ({"severities": (0,)}, "severity 0 is not known: expected whole numbers from 1"),
        ({"baseline": {"clean": 0.1}}, "the baseline has no error for gaussian_noise, shot_noise"),
        ({"kinds": ("fog",), "baseline": {"clean": 8, "fog": 9}}, "clean is 8: expected a share from 0 to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        CommonCorruptions(**options)


def test_a_baseline_to_divide_by_must_be_above_zero():
    wrong, plain = np.zeros((2, 1, 1), bool), np.zeros(2, bool)
    with pytest.raises(ConfigError, match="fog less clean is 0: nothing can be divided by it"):
        relative_error(wrong, plain, ["fog"], {"clean": 0.1, "fog": 0.1})


def test_another_finding_is_no_baseline(finding):
    from dataclasses import replace

    with pytest.raises(ConfigError, match="is no Finding of CommonCorruptions"):
        baseline_errors(replace(finding, summary={}))


def test_the_room_refuses_what_is_neither_true_nor_options():
    with pytest.raises(ConfigError, match=r"corruptions is 'all': expected true, or options such as \{kinds"):
        steps({"corruptions": "all"})
    assert KINDS[0] == "gaussian_noise"
