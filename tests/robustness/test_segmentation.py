"""Segmentations of varied inputs against a slow plain version, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.segmentation import agreement, iou, mean_iou
from weakspot import Subject, ask, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.data.sources import ArraySource
from weakspot.looks import Brightness, Neighbour, Noise, Rotate
from weakspot.robustness import NeighbourSegmentation

CLASSES, COUNT, LOOKS = 3, 12, 4


@pytest.fixture(scope="module")
def subject():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, CLASSES, 1))
    with torch.no_grad():  # so that the classes change from place to place
        net[0].weight *= 8
        net[0].bias -= 1
        net[2].bias.zero_()
    return Subject(net, task="segmentation", classes=["sky", "road", "car"], bounds=(0, 1))


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    return rng.random((COUNT, 1, 5, 7)).astype(np.float32), rng.integers(0, CLASSES, (COUNT, 5, 7))


def predictions(subject, inputs, variation):
    """The class at every position: of the originals, and of each neighbour made one by one."""
    look, ids = Neighbour(variation, 0, (0, 1)), ArraySource(inputs).ids
    with torch.no_grad():
        whole = torch.from_numpy(inputs)
        original = subject.forward(whole).argmax(1).tolist()
        varied = [
            [look.outputs(subject.forward, whole[row : row + 1], [ids[row]], number)[0].argmax(0).tolist()
             for number in range(1, LOOKS + 1)]
            for row in range(COUNT)
        ]  # fmt: skip
    return original, varied


def test_it_is_the_plain_version(subject, arrays):
    inputs, targets = arrays
    variation = Brightness(0.4) & Noise(0.4)
    original, varied = predictions(subject, inputs, variation)
    least = float(
        np.median([mean_iou(one[0], target.tolist(), CLASSES) for one, target in zip(varied, targets, strict=True)])
    )
    (found,) = examine(subject, arrays, [NeighbourSegmentation(variation=variation, looks=LOOKS, least_iou=least)])
    rows = {row["id"]: row for row in found.table.to_pylist()}
    for number, name in enumerate(ArraySource(inputs).ids):
        target, row = targets[number].tolist(), rows[name]
        overlaps = [mean_iou(one, target, CLASSES) for one in varied[number]]
        assert row["neighbour_iou"] == pytest.approx(sum(overlaps) / LOOKS)
        assert row["worst_iou"] == pytest.approx(min(overlaps))
        assert row["iou"] == pytest.approx(mean_iou(original[number], target, CLASSES))
        agreed = [agreement(one, original[number]) for one in varied[number]]
        assert row["agreement"] == pytest.approx(sum(agreed) / LOOKS)
        assert row["pixel_accuracy"] == pytest.approx(agreement(original[number], target))
        assert row["weak"] == (row["neighbour_iou"] < least)
    assert [row["neighbour_iou"] for row in rows.values()] == sorted(row["neighbour_iou"] for row in rows.values())
    assert 0 < found.summary["weak_share"].value < 1 and found.summary["agreement"].value < 1
    assert found.summary["iou"].value == pytest.approx(np.mean([row["iou"] for row in rows.values()]))
    repeated = [targets[row].tolist() for row in range(COUNT) for _ in range(LOOKS)]
    for kind in range(CLASSES):
        assert found.arrays["class_iou"][kind] == pytest.approx(iou(original, targets.tolist(), kind))
        pooled = iou([one for each in varied for one in each], repeated, kind)
        assert found.arrays["class_neighbour_iou"][kind] == pytest.approx(pooled)
    assert found.arrays["class_name"].tolist() == ["sky", "road", "car"]


def test_it_is_asked_for_by_its_option_and_reported(subject, arrays, tmp_path):
    asked = {"neighbours": {"brightness": 0.3}, "least_iou": 0.5, "looks": 3}
    run = ask(subject, test=arrays, robustness=asked, classes={"by": "pixels"}, run=tmp_path / "run")
    assert run.names() == [
        "robustness.neighbour_segmentation",
        "classes.pixel_confusion",
        "performance.performance",
    ]
    page = run.report().read_text()
    assert "their small variations are segmented with too little overlap" in page
    assert "The class with the least overlap is" in page and "cannot be drawn" not in page


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "give `least_iou`, such as 0.75"),
        ({"least_iou": 0.5, "neighbours": {"rotate": 10}}, "the variation moves the image, and the masks of the data"),
        ({"least_iou": 0.5, "analysis": True}, "analysis"),
        ({"least_iou": 0.0}, "0 < least_iou ≤ 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(subject, arrays, asked, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        ask(subject, test=arrays, robustness=asked, run=tmp_path / "run")


def test_moving_is_refused_in_python_too(subject, arrays):
    with pytest.raises(ConfigError, match="masks of the data stay where they are"):
        examine(subject, arrays, [NeighbourSegmentation(variation=Rotate(10))])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda targets: targets[:, :4], r"segments \(5, 7\) positions per sample, and the targets have \(4, 7\)"),
        (
            lambda targets: targets + 1,
            "the targets hold classes from 1 to 3, and the model gives 3: number them",
        ),
    ],
)
def test_targets_that_are_no_masks_are_refused(subject, arrays, change, message):
    inputs, targets = arrays
    with pytest.raises(DataError, match=message):
        examine(subject, (inputs, change(targets)), [NeighbourSegmentation(variation=Brightness(0.1), looks=1)])
