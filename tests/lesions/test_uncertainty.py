"""Lesions and their uncertainty against the voxel-by-voxel reference."""

import numpy as np
import pytest
import torch

from tests.references.lesions import components, lesion_rows
from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.source import Subset
from weakspot.data import phantom
from weakspot.lesions.uncertainty import LesionUncertainty, describe_lesions
from weakspot.looks import McDropout


@pytest.fixture(scope="module")
def subject():
    return Subject(phantom.model(), task="segmentation", classes=phantom.CLASSES, scores="logits")


def test_agrees_with_the_reference(subject):
    source = Subset(phantom.test(), range(6))
    finding = examine(subject, source, [LesionUncertainty(samples=5, seed=2)])[0]
    batch, look = source.read(np.arange(6)), McDropout(2)
    with torch.no_grad():
        draws = [look.outputs(subject.forward, batch.inputs, batch.ids, number) for number in range(1, 6)]
    samples = torch.stack([draw.softmax(1) for draw in draws]).double().numpy()
    expected = [(name, *row) for i, name in enumerate(batch.ids) for row in lesion_rows(samples[:, i], 0.5, 3)]
    got = [
        tuple(row[key] for key in ("id", "voxels", "entropy", "variance", "one_minus_pcs"))
        for row in finding.table.to_pylist()
    ]
    assert len(expected) > 5
    assert [row[:2] for row in got] == [row[:2] for row in expected]
    np.testing.assert_allclose([row[2:] for row in got], [row[2:] for row in expected], rtol=1e-6, atol=1e-9)


def test_several_lesions_per_volume_and_volumes_without_one(subject):
    finding = examine(subject, phantom.test(), [LesionUncertainty(samples=3)])[0]
    per_volume = np.unique(finding.table["id"].to_pylist(), return_counts=True)[1]
    assert per_volume.max() > 1
    assert finding.summary["without_lesion"].value == 24 - len(per_volume) > 0
    numbers = [row["lesion"] for row in finding.table.to_pylist() if row["id"] == finding.table["id"][0].as_py()]
    assert numbers == list(range(len(numbers)))


def test_no_lesion_anywhere_is_no_error(subject):
    finding = examine(subject, Subset(phantom.test(), range(2)), [LesionUncertainty(samples=2, threshold=1.0)])[0]
    assert finding.table.num_rows == 0 and finding.summary["lesions"].value == 0


def test_components_touch_at_corners():
    mask = np.zeros((4, 4, 4), dtype=bool)
    mask[0, 0, 0] = mask[1, 1, 1] = mask[3, 3, 3] = True
    rows = describe_lesions(mask, np.ones((1, 4, 4, 4)), least_voxels=1)
    assert rows[:, 0].tolist() == [2, 1] == [len(part) for part in components(mask)]
    assert rows[0, 2:].tolist() == [0.5, 0.5, 0.5]


def test_needs_probabilities_said_and_dropout():
    unsaid = Subject(phantom.model(), task="segmentation")
    with pytest.raises(SubjectError, match="scores='logits' or"):
        examine(unsaid, Subset(phantom.test(), [0]), [LesionUncertainty(samples=2)])
    dry = torch.nn.Conv3d(1, 2, 1)
    with pytest.raises(SubjectError, match="met no dropout"):
        examine(Subject(dry, task="segmentation", scores="logits"), Subset(phantom.test(), [0]), [LesionUncertainty()])


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="samples ≥ 2"):
        LesionUncertainty(samples=1)
