"""How good a segmentation is, against a slow plain version, and whether the intervals of classes cover."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.segmentation import agreement, iou, mean_iou
from weakspot import Subject, ask
from weakspot.core.errors import DataError
from weakspot.core.plan import Plan
from weakspot.performance.metrics import class_overlaps
from weakspot.performance.room import with_performance
from weakspot.registry import steps_for
from weakspot.statistics import bootstrap_interval

CLASSES, COUNT = ("sky", "road", "car"), 40


class Painted(nn.Module):
    """Predicts at each position the class that the input names."""

    def forward(self, images):
        return torch.nn.functional.one_hot(images[:, 0].long(), 3).movedim(-1, 1).float()


def painted():
    return Subject(Painted(), task="segmentation", classes=CLASSES)


@pytest.fixture(scope="module")
def masks():
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 2, (COUNT, 4, 5))
    targets[:12, 0, 0] = 2  # of cars too few for an interval
    predicted = np.where(rng.random(targets.shape) < 0.3, rng.integers(0, 2, targets.shape), targets)
    return predicted, targets


def run_of(predicted, targets, folder, **ask_for):
    asked = ask_for or {"performance": {}}
    return ask(painted(), test=(predicted[:, None].astype(np.float32), targets), run=folder, **asked)


def test_it_is_the_plain_version(masks, tmp_path):
    predicted, targets = masks
    run = run_of(predicted, targets, tmp_path / "run")
    found = run["performance.performance"]
    pairs = list(zip(predicted.tolist(), targets.tolist(), strict=True))
    rows = found.table.to_pylist()
    assert [row["iou"] for row in rows] == pytest.approx([mean_iou(*pair, 3) for pair in pairs])
    assert [row["pixel_accuracy"] for row in rows] == pytest.approx([agreement(*pair) for pair in pairs])
    assert found.summary["iou"].value == pytest.approx(np.mean([mean_iou(*pair, 3) for pair in pairs]))
    assert found.summary["iou"].low < found.summary["iou"].value < found.summary["iou"].high
    whole = {name: iou(predicted.tolist(), targets.tolist(), kind) for kind, name in enumerate(CLASSES)}
    told = dict(zip(found.arrays["class_name"].tolist(), found.arrays["class_iou"].tolist(), strict=True))
    assert told == pytest.approx(whole)
    assert found.arrays["class_name"][-1] == "car" and np.isnan(found.arrays["class_high"][-1])
    worst = min(("sky", "road"), key=whole.get)
    assert found.summary["worst_class"].value == worst == found.arrays["class_name"][0]
    alone = found.arrays["class_low"][0], found.arrays["class_high"][0]
    of_worst = found.summary["worst_class_iou"]
    assert of_worst.low < alone[0] < of_worst.value < alone[1] < of_worst.high
    page = run.report().read_text()
    assert "The mean IoU is" in page and "The class segmented worst is" in page and "cannot be drawn" not in page


def test_intervals_of_classes_are_near_those_of_the_bootstrap_and_go_by_group():
    rng = np.random.default_rng(0)
    either = rng.integers(5, 40, (300, 1))
    both = rng.binomial(either, rng.beta(4, 2, (300, 1)))
    found = class_overlaps(both, either)
    ends = bootstrap_interval(lambda rows: both[rows].sum() / either[rows].sum(), 300, seed=0)
    assert [found.low[0], found.high[0]] == pytest.approx([float(end) for end in ends], abs=0.006)
    often = [np.repeat(counts, 4, 0) for counts in (both, either)]
    grouped = class_overlaps(*often, np.repeat(np.arange(300), 4))
    assert grouped.high - grouped.low == pytest.approx(found.high - found.low, rel=0.05)
    assert (class_overlaps(*often).high - class_overlaps(*often).low < 0.6 * (found.high - found.low)).all()


def test_intervals_of_classes_cover():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        either = rng.integers(1, 60, (60, 1))
        found = class_overlaps(rng.binomial(either, rng.beta(8, 2, (60, 1))), either)
        covered += found.low[0] <= 0.8 <= found.high[0]
    assert covered / 400 > 0.92


def test_a_class_segmented_perfectly_is_not_certain():
    sure = class_overlaps(np.full((30, 1), 7), np.full((30, 1), 7))
    assert sure.high[0] == 1 and 0.85 < sure.low[0] < 0.95
    of_films = class_overlaps(np.full((30, 1), 7), np.full((30, 1), 7), np.repeat(np.arange(5), 6))
    assert of_films.low[0] < 0.6


def test_without_labels_inputs_are_counted(masks, tmp_path):
    predicted = masks[0][:, None].astype(np.float32)
    run = ask(painted(), test=predicted, performance={}, run=tmp_path / "run")
    assert list(run["performance.performance"].summary) == ["inputs"]
    assert "Without labels nobody can say" in run.report().read_text()


def test_masks_of_another_size_are_refused(masks, tmp_path):
    with pytest.raises(DataError, match=r"segments \(4, 5\) positions per sample, and the targets have \(4, 4\)"):
        run_of(masks[0], masks[1][:, :, :4], tmp_path / "run")


@pytest.mark.parametrize(
    ("asked", "added"),
    [({"lesions": {}}, False), ({"classes": {"by": "pixels"}}, True), ({"lesions": {}, "causes": {}}, True)],
)
def test_it_is_told_besides_where_the_inputs_are_predicted_as_they_are(asked, added):
    planned = Plan.of(steps_for(asked))
    assert (len(with_performance(planned, painted()).steps) > len(planned.steps)) == added
