"""Where lesions lie, and of which class they are, by plain loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.lesions import toy
from weakspot import ExecutionOptions, Subject, examine
from weakspot.core.errors import DataError
from weakspot.data.metadata import WithMetadata
from weakspot.data.sources import ArraySource
from weakspot.lesions.lesion_model import Calibration, LesionModel
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.linear import Linear
from weakspot.lesions.location import LOCATION, location_columns
from weakspot.lesions.methods import known_methods, location_features
from weakspot.lesions.probes import Lesions
from weakspot.looks import Flips

STEPS = np.vstack([np.eye(3, dtype=int), -np.eye(3, dtype=int)])


def head():
    image = np.zeros((1, 12, 14, 16), np.float32)
    grid = np.stack(np.meshgrid(*map(np.arange, image.shape[1:]), indexing="ij"))
    inside = (((grid - np.array([5, 7, 8])[:, None, None, None]) / np.array([4, 5, 6])[:, None, None, None]) ** 2).sum(
        0
    ) <= 1
    image[0, inside] = np.random.default_rng(0).uniform(1, 2, inside.sum())
    return image, inside


def test_place_and_distance_agree_with_a_loop_over_all_voxels():
    image, inside = head()
    centres, spacing = np.array([[5.0, 7.0, 8.0], [2.5, 6.0, 10.0], [5.0, 3.0, 8.0]]), (3.0, 1.0, 0.5)
    found = location_columns(image, centres, spacing=spacing, axes="RAS")
    places = np.argwhere(inside)
    low, high = places.min(0), places.max(0)
    for number, centre in enumerate(centres):
        for axis, name in enumerate(("position_up", "position_front", "position_right")):
            assert found[name][number] == pytest.approx((centre[axis] - low[axis]) / (high[axis] - low[axis]))
        border = [
            place for place in places.tolist()
            if any(not inside[tuple(np.add(place, step))] for step in STEPS)
        ]  # fmt: skip
        nearest = min(np.linalg.norm((centre - place) * spacing) for place in border)
        assert found["border_distance"][number] == pytest.approx(nearest)


@pytest.mark.parametrize("axes", ["LPS", "ASR", "RIP"])
def test_the_place_does_not_depend_on_how_the_case_is_oriented(axes):
    image, _ = head()
    centre = np.array([[3.0, 6.0, 11.0]])
    expected = location_columns(image, centre, axes="RAS")
    order = [{"R": 2, "L": 2, "A": 1, "P": 1, "S": 0, "I": 0}[letter] for letter in axes[::-1]]
    turned, moved = image[0].transpose(order), centre[:, order]
    for axis, letter in enumerate(axes[::-1]):
        if letter in "LPI":
            turned, moved = np.flip(turned, axis), moved.copy()
            moved[:, axis] = turned.shape[axis] - 1 - moved[:, axis]
    found = location_columns(turned[None], moved, axes=axes)
    assert {name: values.tolist() for name, values in found.items()} == {
        name: pytest.approx(values.tolist()) for name, values in expected.items()
    }


def test_lesions_carry_their_place_and_a_method_reads_it():
    images, masks = toy.volumes(3)
    source = ArraySource(images, masks, ids=["a", "b", "c"])
    placed = WithMetadata(source, {"id": ["a", "b", "c"], **{f"spacing_{axis}": [2.0] * 3 for axis in "zyx"}})
    finding = examine(toy.subject(), placed, [Lesions(looks=2)], execution=ExecutionOptions(batch_size=2))[0]
    lesions = LesionSet.of(finding)
    row = finding.table.to_pylist()[-1]
    own = location_columns(images[2], np.array([[row[axis] for axis in "zyx"]]), spacing=(2, 2, 2))
    assert {name: row[name] for name in own} == {name: pytest.approx(values[0]) for name, values in own.items()}
    assert "location" in known_methods(lesions) and location_features(lesions).shape == (len(lesions), 6)


def test_lesions_of_an_earlier_version_are_refused_by_a_model_that_reads_their_place():
    finding = examine(toy.subject(), toy.source(3), [Lesions(looks=2)])[0]
    lesions = LesionSet.of(finding)
    columns = {name: values for name, values in lesions.columns.items() if name not in LOCATION}
    trained = {"location": Linear(np.zeros(6), np.ones(6), np.zeros(7))}
    model = LesionModel("location", trained, "max", Calibration(False, 1.0, 0.0, 3, 3), ("x",))
    assert "location" in model.scores(lesions)
    with pytest.raises(DataError, match="sample the cases again"):
        model.scores(replace(lesions, columns=columns))


def test_of_several_lesion_classes_the_likelier_one_is_told():
    class Two(torch.nn.Module):
        def forward(self, inputs):
            return torch.cat([1 - inputs.sum(1, keepdim=True), inputs], 1)

    inputs = np.zeros((1, 2, 8, 8, 8), np.float32)
    inputs[0, 0, 1:3, 1:3, 1:3], inputs[0, 1, 1:3, 1:3, 1:3] = 0.6, 0.3
    inputs[0, 0, 5:7, 5:7, 5:7], inputs[0, 1, 5:7, 5:7, 5:7] = 0.2, 0.7
    subject = Subject(Two(), task="segmentation", classes=3, scores="probabilities")

    look = Lesions(look=Flips((0,)), looks=1, foreground=(1, 2))
    table = examine(subject, ArraySource(inputs, ids=["a"]), [look])[0].table
    assert table["lesion_class"].to_pylist() == [1, 2]
    alone = Lesions(look=Flips((0,)), looks=1, foreground=2)
    assert "lesion_class" not in examine(subject, ArraySource(inputs, ids=["a"]), [alone])[0].table.column_names
