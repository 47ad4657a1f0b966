"""What is handed on of a case: tables, maps and pictures that lie where the image lies."""

import csv
import io
import json

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.data.niftis import affine, save
from weakspot.core.driver import examine
from weakspot.core.errors import DataError, RunError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.subject import Subject
from weakspot.data.nifti import NiftiFolder
from weakspot.data.nifti_grid import Grid
from weakspot.lesions.export import ExportedCase, chosen_rows, export_case, export_cases
from weakspot.lesions.probes import Lesions
from weakspot.lesions.slices import (
    PLANES,
    SKY,
    UNKNOWN,
    VERMILION,
    Scene,
    ShownLesion,
    outlines,
    plane,
    ramp,
    slice_sheet,
)
from weakspot.looks import Flips

SHAPE, MATRIX = (20, 24, 10), affine((1.0, 1.0, 3.0), "LPS", (10.0, 12.0, -5.0))


def made_case(orientation="RAS", spacing=(1.5, 1.5, 1.5)):
    """Two boxes of different size on the working grid."""
    grid = Grid(SHAPE, MATRIX, orientation, spacing)
    labels = np.zeros(grid.working_shape, dtype=np.int32)
    labels[4:8, 3:7, 2:6], labels[12:14, 10:12, 8:12] = 1, 2
    places = [np.argwhere(labels == number).mean(0) for number in (1, 2)]
    columns = {axis: np.array([place[i] for place in places]) for i, axis in enumerate("zyx")}
    columns |= {
        "lesion": np.array([1, 2]),
        "voxels": np.array([64, 16]),
        "volume_mm3": np.array([64, 16]) * 1.5**3,
        "false_positive_probability": np.array([0.1, 0.9]),
        "entropy": np.array([0.2, np.nan]),
        "true_positive": np.array([True, False]),
    }
    image = np.random.default_rng(0).normal(size=labels.shape)
    return ExportedCase(
        "k7", columns, labels, {"entropy": np.linspace(0, 1, labels.size).reshape(labels.shape)}, image, grid
    )


@pytest.mark.parametrize("orientation", ["file", "RAS"])
def test_maps_and_table_lead_to_the_same_places(tmp_path, orientation):
    case = made_case(orientation)
    folder = export_case(case, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "entropy.nii.gz", "lesions.csv", "lesions.json", "lesions.nii.gz", "slices.png",
    ]  # fmt: skip
    labels = nibabel.load(folder / "lesions.nii.gz")
    assert labels.shape == SHAPE and np.allclose(labels.affine, MATRIX)
    values = np.asarray(labels.dataobj)
    rows = list(csv.DictReader(io.StringIO((folder / "lesions.csv").read_text())))
    told = json.loads((folder / "lesions.json").read_text())
    assert [row["lesion"] for row in rows] == ["1", "2"] and told["case"] == "k7"
    for row, entry in zip(rows, told["lesions"], strict=True):
        number = int(row["lesion"])
        index = np.argwhere(values == number).mean(0)
        world = MATRIX @ [*index, 1]
        assert [float(row[name]) for name in ("x_mm", "y_mm", "z_mm")] == pytest.approx(world[:3], abs=1.2)
        assert [float(row[name]) for name in "ijk"] == pytest.approx(index, abs=1.2)
        assert int(row["map_voxels"]) == (values == number).sum() > 0
        assert entry["false_positive_probability"] == float(row["false_positive_probability"])
    assert told["lesions"][1]["entropy"] is None and told["file"]["orientation"] == "LPS"
    entropy = nibabel.load(folder / "entropy.nii.gz")
    assert np.allclose(np.asarray(entropy.dataobj), case.grid.to_file(case.maps["entropy"]), atol=6e-5)


def test_nothing_is_replaced_and_nothing_is_left_half(tmp_path, monkeypatch):
    export_case(made_case(), tmp_path)
    before = (tmp_path / "k7" / "lesions.csv").read_bytes()
    with pytest.raises(RunError, match="k7 already exists"):
        export_case(made_case(), tmp_path)
    assert (tmp_path / "k7" / "lesions.csv").read_bytes() == before
    monkeypatch.setattr("weakspot.lesions.export.png", lambda pixels: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_case(made_case(), tmp_path / "b")
    assert not any((tmp_path / "b").iterdir())


def test_a_table_of_other_lesions_is_refused():
    case = made_case()
    with pytest.raises(DataError, match="lists 2 lesions of 80 voxels, the label map holds 1 of 80"):
        ExportedCase("k7", case.lesions, np.minimum(case.labels, 1), case.maps, case.image, case.grid)
    other = np.where(case.labels > 0, 3 - case.labels, 0)
    with pytest.raises(DataError, match="lists 2 lesions of 80 voxels, the label map holds 2 of 80"):
        ExportedCase("k7", case.lesions, other, case.maps, case.image, case.grid)


def test_a_case_without_lesions(tmp_path):
    case = made_case()
    none = {name: values[:0] for name, values in case.lesions.items()}
    folder = export_case(ExportedCase("k8", none, np.zeros_like(case.labels), {}, case.image, case.grid), tmp_path)
    assert (folder / "lesions.csv").read_text() == "case,lesion\n"
    assert json.loads((folder / "lesions.json").read_text())["lesions"] == []
    assert np.asarray(Image.open(folder / "slices.png")).shape[2] == 3


class Threshold(nn.Module):
    """Logits that follow the intensity."""

    def forward(self, inputs):
        return torch.cat([-inputs, inputs], 1) * 4


def test_cases_of_a_finding_are_sampled_again_and_written(tmp_path):
    rng = np.random.default_rng(0)
    for case in "ab":
        volume = rng.normal(-1, 0.2, SHAPE).astype(np.float32)
        volume[3:6, 4:8, 2:5] = 1.5
        volume[12:15, 14:17, 5:7] = 0.6
        save(tmp_path / "set" / "imagesTr" / f"{case}_0000.nii.gz", volume, MATRIX)
    source = NiftiFolder(tmp_path / "set", orientation="RAS")
    subject = Subject(Threshold(), task="segmentation", scores="logits")
    probe = Lesions(look=Flips(), looks=4)
    finding = examine(subject, source, [probe], execution=ExecutionOptions(batch_size=1))[0]
    written = export_cases(finding, subject, source, tmp_path / "out", sampling=probe.case_sampling)
    assert [path.name for path in written] == ["a", "b"]
    maps = {path.name for path in written[0].iterdir()}
    assert {"lesion_probability.nii.gz", "entropy.nii.gz", "variance.nii.gz", "mutual_information.nii.gz"} <= maps
    labels = np.asarray(nibabel.load(written[0] / "lesions.nii.gz").dataobj)
    assert {int(labels[4, 5, 3]), int(labels[13, 15, 5])} == {1, 2}
    rows = list(csv.DictReader(io.StringIO((written[0] / "lesions.csv").read_text())))
    box = next(row for row in rows if int(row["lesion"]) == labels[4, 5, 3])
    assert [float(box[name]) for name in "ijk"] == pytest.approx([4, 5.5, 3])
    assert float(box["volume_mm3"]) == pytest.approx(3 * 4 * 3 * 3)
    with pytest.raises(RunError, match="already exists"):
        export_cases(finding, subject, source, tmp_path / "out", sampling=probe.case_sampling)
    with pytest.raises(DataError, match="no case 'z'"):
        export_cases(finding, subject, source, tmp_path / "more", sampling=probe.case_sampling, cases=["z"])


def test_planes_as_radiologists_see_them():
    """A spot at the patient's right, front and top is left and up in every plane that shows it."""
    volume = np.zeros((5, 6, 7))
    volume[4, 5, 6] = 1
    for name in PLANES:
        assert np.argwhere(plane(volume, name, (4, 5, 6))).tolist() == [[0, 0]]
    assert plane(volume, "coronal", (0, 99, 0)).shape == (5, 7)


def test_outlines_are_the_rim_of_each_label():
    labels = np.zeros((7, 9), dtype=int)
    labels[1:5, 1:5], labels[1:5, 5:8] = 1, 2
    rim = outlines(labels)
    assert not rim[2:4, 2:4].any() and not rim[2:4, 6].any() and rim.sum() == 12 + 10


def test_colours_on_the_sheet():
    """The rim of each lesion has its colour, the inside the image's."""
    labels = np.zeros((8, 8, 8), dtype=np.int32)
    labels[2:6, 2:6, 1:4], labels[2:6, 2:6, 5:8] = 1, 2
    image = np.random.default_rng(0).normal(size=labels.shape)
    scene = Scene(image, labels, np.array([0.0, 1.0]), (1.0, 1.0, 1.0), oriented=False)
    sheet = slice_sheet(scene, [ShownLesion(1, (4, 4, 2), "lesion 1")], height=160)
    axial = sheet[20 : 20 + 160, 6 : 6 + 160]
    found = {tuple(colour) for colour in np.unique(axial.reshape(-1, 3), axis=0).tolist()}
    assert {SKY, VERMILION} <= found
    columns = np.argwhere((axial == SKY).all(-1))[:, 1]
    assert columns.min() >= 75  # low x is the patient's left, shown on the right
    assert ramp(np.array(np.nan)).tolist() == list(UNKNOWN)


def test_the_even_background_is_cut_off():
    image = np.zeros((20, 20, 20))
    image[5:15, 5:15, 5:15] = np.random.default_rng(0).normal(size=(10, 10, 10))
    labels = np.zeros(image.shape, dtype=int)
    labels[6:9, 6:9, 6:9] = 1
    scene, own = (Scene(image, labels, np.zeros(1), (1.0, 1.0, 1.0)), ShownLesion(1, (7, 7, 7), "x"))
    inner = Scene(image[5:15, 5:15, 5:15], labels[5:15, 5:15, 5:15], np.zeros(1), (1.0, 1.0, 1.0))
    assert np.array_equal(slice_sheet(scene, [own]), slice_sheet(inner, [ShownLesion(1, (2, 2, 2), "x")]))


def test_sheets_keep_millimetres():
    scene = Scene(np.zeros((4, 10, 20)), np.zeros((4, 10, 20), dtype=int), np.zeros(0), (5.0, 2.0, 1.0))
    sheet = slice_sheet(scene, [ShownLesion(1, (0, 0, 0), "")], height=100)
    assert sheet.shape[1] == 3 * 100 + 4 * 6  # all three extents are 20 mm
    for wrong in [{"labels": np.zeros((3, 3, 3), dtype=int)}, {"labels": np.ones((4, 10, 20), dtype=int)}]:
        with pytest.raises(DataError, match=r"alike|no probability"):
            Scene(**{**vars(scene), **wrong})


def test_which_lesions_are_shown():
    rows = [
        {"lesion": n, "voxels": n, "false_positive_probability": p} for n, p in enumerate([0.2, 0.9, 0.5, 0.1, np.nan])
    ]
    assert [row["lesion"] for row in chosen_rows(rows, 3)] == [1, 2, 4]
    assert [row["lesion"] for row in chosen_rows(rows[:3], 6)] == [1, 2, 0]
    unknown = [{"lesion": n, "voxels": n} for n in range(4)]
    assert [row["lesion"] for row in chosen_rows(unknown, 2)] == [3, 2]
