"""Neighbour accuracy against its plain reference and against stored predictions."""

import importlib.util
import itertools
import operator

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.robustness import neighbour_accuracy
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.looks import Blur, Fog, Rain, Rotate, Shift
from weakspot.robustness.analysis import accuracy_bounds
from weakspot.robustness.probes import NeighbourAccuracy, NeighbourTolerance
from weakspot.robustness.room import steps

VARIATION = Rotate(20) & Shift(1)


@pytest.fixture(scope="module")
def subject():
    return Subject(digits.model(), classes=digits.CLASSES)


@pytest.fixture(scope="module")
def source():
    return limited(digits.test(), 40)


@pytest.fixture(scope="module")
def expected(subject, source):
    batch = source.read(np.arange(40))
    return neighbour_accuracy(
        subject.model, batch.inputs, batch.targets, batch.ids, variation=VARIATION, looks=12, seed=3
    )


def by_id(finding):
    """The columns in the order of the data, whose ids are in alphabetical order."""
    return finding.table.sort_by("id").to_pydict()


def test_the_weakest_come_first(subject, source):
    table = examine(subject, source, [NeighbourAccuracy(variation=VARIATION, looks=12)])[0].table.to_pydict()
    assert table["at_most"] == sorted(table["at_most"])
    assert set(table["target"]) <= set(digits.CLASSES)


def test_without_early_stopping_it_is_the_definition(subject, source, expected):
    probe = NeighbourAccuracy(variation=VARIATION, looks=12, seed=3, early_stopping="never")
    table = by_id(examine(subject, source, [probe])[0])
    assert table["at_least"] == table["at_most"] == expected
    assert table["looks_used"] == [13] * 40
    assert table["weak"] == [share < 0.75 for share in expected]
    assert table["correct"] == [a == b for a, b in zip(table["target"], table["prediction"], strict=True)]
    assert table["correct_looks"] == [round(13 * share) for share in expected]


def test_numbers_of_the_summary_are_means_of_their_columns(subject, source):
    probe = NeighbourAccuracy(variation=VARIATION, looks=12, seed=3, early_stopping="never")
    finding = examine(subject, source, [probe])[0]
    table, means = finding.table.to_pydict(), {name: spec.mean_of for name, spec in finding.outputs.summary.items()}
    assert {name: column for name, column in means.items() if column} == {
        "weak_share": "weak", "neighbour_accuracy": "neighbour_accuracy", "accuracy": "correct",
        "worst_case_accuracy": "correct_in_all",
    }  # fmt: skip
    for name, column in means.items():
        assert not column or finding.summary[name].value == pytest.approx(np.mean(table[column]))
    fragile = [weak and correct for weak, correct in zip(table["weak"], table["correct"], strict=True)]
    assert finding.summary["fragile"].value == sum(fragile) > 0


IS_WEAK = {"below": operator.lt, "at_or_below": operator.le}


@pytest.mark.parametrize(
    ("threshold", "weak_if"),
    [(1.0, "below"), (0.0, "at_or_below"), *itertools.product((0.25, 0.5, 0.75, 12 / 13), IS_WEAK)],
)
def test_early_stopping_changes_no_verdict_and_saves_looks(subject, source, expected, threshold, weak_if):
    probe = NeighbourAccuracy(variation=VARIATION, looks=12, seed=3, threshold=threshold, weak_if=weak_if)
    finding = examine(subject, source, [probe])[0]
    table, weak = by_id(finding), [IS_WEAK[weak_if](share, threshold) for share in expected]
    assert table["weak"] == weak
    assert all(
        low <= share <= high for low, share, high in zip(table["at_least"], expected, table["at_most"], strict=True)
    )
    assert finding.summary["looks_per_input"].value < 13
    assert finding.summary["weak_share"].value == np.mean(weak)
    assert finding.provenance["parameters"]["weak_if"] == weak_if


def test_bounds_of_the_accuracy_over_all_looks():
    right, used = np.array([2, 0]), np.array([2, 2])
    at_least, at_most = accuracy_bounds(right, used, 3)
    assert at_least.tolist() == [2 / 3, 0] and at_most.tolist() == [1.0, 1 / 3]


def test_needs_targets(subject):
    with pytest.raises(DataError, match="no targets: add them"):
        examine(subject, ArraySource(np.zeros((3, 1, 8, 8), dtype=np.float32)), [NeighbourAccuracy(looks=2)])


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="looks ≥ 1"):
        NeighbourAccuracy(looks=0)
    with pytest.raises(ConfigError, match="not made by 'spin': There are rotate, shift"):
        steps({"neighbours": {"spin": 3}})


class Brightest(nn.Module):
    """Where the brightest pixel is, x and y: right wherever the image is moved to."""

    def forward(self, images):
        place = images.flatten(1).argmax(1)
        return torch.stack([place % 8, place // 8], 1).float()


@pytest.fixture(scope="module")
def points():
    """One bright pixel in each image; the keypoint is where it is."""
    images, places = np.zeros((12, 1, 8, 8), np.float32), np.random.default_rng(0).integers(2, 6, (12, 2))
    images[np.arange(12), 0, places[:, 1], places[:, 0]] = 1
    subject = Subject(Brightest(), task="keypoints", bounds=(0, 1))
    return subject, ArraySource(images, places.astype(np.float32) + 0.1)


@pytest.mark.parametrize("variation", [Rotate(5), Blur() & Shift(1), Rain() | (Fog() & Rotate(5))])
def test_images_are_not_moved_under_their_keypoints(points, variation, tmp_path):
    """Before any pass: the training data are not looked at."""
    subject, source = points
    run = Run.create(tmp_path / "run")
    with pytest.raises(
        ConfigError, match=r"move nothing \(blur, brightness, contrast, noise, jpeg, rain, fog, corruption\)"
    ):
        plan = Plan.of([Step.of(NeighbourTolerance, variation=variation, looks=3)])
        plan.run(subject, {"train": source, "test": source}, run)
    assert not run.names()


def test_keypoints_are_asked_with_what_moves_nothing(points, tmp_path):
    subject, source = points
    for number, asked in enumerate([{"neighbours": {"brightness": 0.2}}, {}]):
        run = Run.create(tmp_path / f"run{number}")
        plan = Plan.of(steps({"tolerance": 3, "looks": 3, **asked}))
        plan.run(subject, {"train": source, "test": source}, run)
        assert run["robustness.neighbour_tolerance"].summary["weak_share"].value == 0


def test_numbers_need_a_tolerance(points, tmp_path):
    subject, source = points
    with pytest.raises(ConfigError, match="the subject's task is keypoints: give `tolerance`, such as 3"):
        Plan.of(steps({"looks": 3})).run(subject, {"test": source}, Run.create(tmp_path / "run"))
    with pytest.raises(ConfigError, match="in Python use NeighbourTolerance"):
        examine(subject, source, [NeighbourAccuracy(looks=3)])


def test_real_net_agrees_with_stored_predictions(svhn_net, svhn, shared):
    """The stored classes of 50 neighbours were made on another machine from known parameters."""
    spec = importlib.util.spec_from_file_location("neighbours", shared / "models/neighbours/neighbours.py")
    stored = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stored)
    images, _ = svhn
    inputs = torch.from_numpy(images[:60].astype(np.float32) / 255).permute(0, 3, 1, 2).contiguous()
    parameters = torch.from_numpy(stored.neighbour_parameters(5000, 50, 20242)[:60])
    predicted = np.load(shared / "models/neighbours/ResN-svhn-predicted.npz")["test"][:60]
    variation, agree = Rotate(30) & Shift(3), []
    with torch.no_grad():
        agree.append(svhn_net(inputs).argmax(1).numpy() == predicted[:, 0])
        for number in range(8):
            made = variation.apply(inputs, parameters[:, number])
            agree.append(svhn_net(made).argmax(1).numpy() == predicted[:, number + 1])
    assert np.mean(agree) >= 0.98


def test_real_net_weak_share_is_near_the_stored_one(svhn_net, svhn, shared):
    images, labels = svhn
    source = ArraySource(images[:120], labels[:120], channels="last")
    share = examine(Subject(svhn_net), source, [NeighbourAccuracy(looks=50)])[0].summary["weak_share"]
    stored = np.load(shared / "models/neighbours/ResN-svhn-predicted.npz")["test"][:120]
    expected = ((stored == labels[:120, None]).mean(1) <= 0.75).mean()
    assert share.low <= expected <= share.high
