"""Causes of a segmentation's errors: against a slow plain version, and a planted cause is found."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.segmentation import mean_iou
from weakspot import Subject, ask, examine
from weakspot.causes import Errors
from weakspot.causes.heat_maps import WrongPositions
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.data.sources import ArraySource
from weakspot.relevance.starts import Winners

CLASSES, COUNT, SIDE = ("ground", "thing"), 240, 8


class ByBrightness(nn.Module):
    """Calls bright positions a thing, which fails in the dark."""

    def __init__(self):
        super().__init__()
        self.mixed = nn.Conv2d(1, 4, 1)
        self.answer = nn.Conv2d(4, 2, 1)
        with torch.no_grad():
            self.mixed.weight.copy_(torch.tensor([1.0, 2.0, -1.0, -2.0]).view(4, 1, 1, 1))
            self.mixed.bias.copy_(torch.tensor([-0.5, -1.0, 0.5, 1.0]))
            self.answer.weight.copy_(torch.tensor([[-1.0, -1, 1, 1], [1, 1, -1, -1]]).view(2, 4, 1, 1))
            self.answer.bias.zero_()

    def forward(self, images):
        return self.answer(torch.relu(self.mixed(images)))


@pytest.fixture(scope="module")
def data():
    """Things brighter than the ground; by night, at each fourth image, all is darker, so that things are missed.

    Some masks by day are turned over, so that the light alone does not say which images are in error.
    """
    rng = np.random.default_rng(0)
    masks = (rng.random((COUNT, SIDE, SIDE)) < 0.4).astype(np.int64)
    night = np.arange(COUNT) % 4 == 0
    images = np.where(masks, 0.8, 0.2) + rng.normal(0, 0.1, masks.shape)
    images = np.where(night[:, None, None], images * 0.5, images).clip(0, 1)[:, None].astype(np.float32)
    masks[1::40] = 1 - masks[1::40]
    return images, masks, night


def subject():
    return Subject(ByBrightness(), task="segmentation", classes=CLASSES, bounds=(0, 1))


def test_errors_are_the_plain_version(data):
    images, masks, _ = data
    with torch.no_grad():
        predicted = ByBrightness()(torch.from_numpy(images)).argmax(1).tolist()
    (found,) = examine(subject(), (images, masks), [Errors(threshold=0.2)])
    for row, said, true in zip(found.table.to_pylist(), predicted, masks.tolist(), strict=True):
        assert row["error"] == pytest.approx(1 - mean_iou(said, true, 2))
        assert row["correct"] == (row["error"] <= 0.2)
        pairs = [(a, b) for ones, others in zip(true, said, strict=True) for a, b in zip(ones, others, strict=True)]
        wrong = Counter(pair for pair in pairs if pair[0] != pair[1])
        if not row["correct"]:
            ((target, said_so), _), *_ = wrong.most_common()
            assert row["kind"] == f"{CLASSES[target]} → {CLASSES[said_so]}"
    assert found.summary["threshold"].value == 0.2 and found.summary["errors"].value > 30


def test_the_planted_cause_comes_first_and_the_clusters_are_of_errors(data, tmp_path):
    images, masks, night = data
    source = ArraySource(images, masks, metadata={"light": np.where(night, "night", "day")})
    run = ask(subject(), test=source, causes={"threshold": 0.2, "clusters": 2}, run=tmp_path / "run")
    first = run["causes.error_slices"].table.to_pylist()[0]
    assert first["confirmed"] and first["rule"].startswith("light")
    assert first["error_rate"] == 1 and first["elsewhere"] < 0.1
    found = run["causes.root_causes"]
    wrong = {row["id"] for row in run["causes.errors"].table.to_pylist() if not row["correct"]}
    assert set(found.arrays["image_id"].tolist()) == wrong and found.summary["clusters"].value == 2
    page = run.report().read_text()
    assert "cannot be drawn" not in page and "ground" in page


def test_relevance_starts_where_the_prediction_is_wrong():
    outputs = torch.tensor([[[[2.0, 0.0]], [[1.0, 3.0]]]])  # predicted: 0, 1
    weights = WrongPositions(torch.tensor([[[1, 1]]])).weights(outputs)
    assert weights.tolist() == [[[[1.0, 0.0]], [[0.0, 0.0]]]]


def test_a_prediction_is_explained_by_the_winning_class_at_every_position():
    outputs = torch.tensor([[[[2.0, 0.0]], [[1.0, 3.0]]]])
    assert Winners().weights(outputs).tolist() == [[[[1.0, 0.0]], [[0.0, 1.0]]]]
    with pytest.raises(SubjectError, match="use Winner for a classifier"):
        Winners().weights(torch.zeros(2, 3))


def test_choosing_images_to_label_is_refused(data, tmp_path):
    with pytest.raises(ConfigError, match=r"causes\.select is for classification"):
        ask(
            subject(),
            test=data[:2],
            pool=data[0],
            causes={"select": {"from": "pool"}},
            run=tmp_path / "run",
        )
