"""COCO: crops of boxes in, columns of a Run out, into the same file."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from weakspot import Plan, Run, Subject
from weakspot.core.errors import DataError
from weakspot.integrations import CocoCrops, write_coco
from weakspot.registry import steps_for


class Mean(torch.nn.Module):
    """Says "light" of what is bright."""

    def forward(self, crops):
        bright = crops.mean((1, 2, 3)) - 0.5
        return torch.stack([-bright, bright], 1)


@pytest.fixture
def coco(tmp_path):
    """Three images of 20 × 30 with a dark and a light half, a box in each half, a crowd and an empty box."""
    annotations = []
    for number in range(3):
        pixels = np.full((20, 30, 3), 30, dtype=np.uint8)
        pixels[:, 15:] = 220
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        for side, category in ((0, 5), (15, 9)):
            box = [side + 1.0, 2.0, 12.5, 10.0]
            annotations.append({"id": 100 + len(annotations), "image_id": number, "category_id": category, "bbox": box})
    annotations.append({"id": 200, "image_id": 0, "category_id": 5, "bbox": [0, 0, 5, 5], "iscrowd": 1})
    annotations.append({"id": 201, "image_id": 0, "category_id": 5, "bbox": [0, 0, 0, 5]})
    stored = {
        "info": {"year": 2024},
        "images": [{"id": number, "file_name": f"{number}.png"} for number in range(3)],
        "categories": [{"id": 9, "name": "light"}, {"id": 5, "name": "dark"}],
        "annotations": annotations,
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(stored))
    return path


def test_boxes_are_samples_and_belong_to_their_image(coco):
    crops = CocoCrops(coco, coco.parent, size=(8, 8))
    assert crops.ids == ("100", "101", "102", "103", "104", "105") and crops.classes == ("dark", "light")
    assert crops.groups.names.tolist() == ["0", "0", "1", "1", "2", "2"]
    assert crops.remarks == ("2 annotations that are crowds or have no area are left out",)
    batch = crops.read(np.arange(6))
    assert batch.inputs.shape == (6, 3, 8, 8) and batch.targets.tolist() == [0, 1] * 3
    assert batch.inputs.mean((1, 2, 3)).round(decimals=3).tolist() == pytest.approx([30 / 255, 220 / 255] * 3, abs=1e-3)


def test_what_a_run_knows_comes_back_into_the_file(coco, tmp_path):
    crops = CocoCrops(coco, coco.parent, size=(8, 8))
    run = Run.create(tmp_path / "run")
    subject = Subject(Mean(), classes=["dark", "light"], scores="logits", bounds=(0, 1))
    Plan.of(steps_for({"robustness": {"looks": 3}})).run(subject, {"test": crops}, run)
    before = json.loads(coco.read_text())
    after = json.loads(write_coco(run, coco, tmp_path / "out.json").read_text())
    assert {key: value for key, value in after.items() if key != "annotations"} == {
        key: value for key, value in before.items() if key != "annotations"
    }
    known = [one.pop("weakspot", None) for one in after["annotations"]]
    assert after["annotations"] == before["annotations"]
    assert known[6:] == [None, None]
    assert [one["robustness.neighbour_accuracy.correct"] for one in known[:6]] == [True] * 6
    assert known[3]["robustness.neighbour_accuracy.prediction"] == "light"
    assert run["robustness.neighbour_accuracy"].summary["sample_groups"].value == 3
    again = CocoCrops(tmp_path / "out.json", coco.parent, size=(8, 8))
    assert again.ids == crops.ids


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda stored: stored.pop("annotations"), "has no list 'annotations'"),
        (lambda stored: stored["annotations"][0].pop("bbox"), "annotation 100 has no bbox"),
        (lambda stored: stored["annotations"][0].update(category_id=7), "annotation 100 names an image or category"),
        (lambda stored: stored["images"][0].update(file_name="../x.png"), "lies outside the folder"),
    ],
)
def test_what_is_no_coco_file_is_refused(coco, change, said):
    stored = json.loads(coco.read_text())
    change(stored)
    coco.write_text(json.dumps(stored))
    with pytest.raises(DataError, match=said):
        CocoCrops(coco, coco.parent, size=(8, 8))
