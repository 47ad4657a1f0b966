"""Cases that are kept to be looked at: as they were, turned as radiologists look at them, and read without torch."""

import subprocess
import sys
from dataclasses import replace

import nibabel
import numpy as np
import pytest
import torch

from tests.lesions import toy
from tests.references import lesions as reference
from weakspot import ExecutionOptions, Subject, examine
from weakspot.core.errors import BadSample, ConfigError, RunError
from weakspot.core.source import Subset
from weakspot.data.brain import write_data_set
from weakspot.data.nifti import NiftiFolder
from weakspot.data.sources import ArraySource
from weakspot.lesions.export import sampled_maps
from weakspot.lesions.probes import Lesions
from weakspot.lesions.slices import LETTERS, OVERLAY, TRUTH, overlaid, ramp
from weakspot.lesions.slices import outline_layer as layer_of
from weakspot.lesions.volume_probes import CaseVolumes
from weakspot.lesions.volumes import open_volume, sixteen_bits, turns
from weakspot.registry import steps_of

SAMPLING = {"looks": 3, "smallest": 2}


@pytest.fixture(scope="module")
def found():
    """Lesions and volumes of three cases, examined in another order than that of their ids."""
    source = toy.source(3)
    back = Subset(source, [2, 0, 1])
    execution = ExecutionOptions(batch_size=2, workers=0, shard_size=2)
    return source, *examine(
        toy.subject(), back, [Lesions(**SAMPLING), CaseVolumes(sampling=SAMPLING)], execution=execution
    )


def dense(volume):
    """Labels and truth as whole arrays."""
    labels, truth = np.zeros(volume.shape, dtype=int), np.zeros(volume.shape, dtype=bool)
    labels[tuple(volume.voxels.T)] = volume.numbers
    if volume.truth is not None:
        truth[tuple(volume.truth.T)] = True
    return labels, truth


def test_every_case_as_it_was(found):
    source, lesions, volumes = found
    batch, rows = source.read(np.arange(3)), lesions.table.to_pylist()
    for number, case in enumerate(batch.ids):
        volume = open_volume(volumes, number)
        assert volume.case == case
        image = batch.inputs[number, 0].numpy()
        shown = np.stack([volume.intensities(0, "axial", z)[::-1, ::-1] for z in range(volume.shape[0])])
        np.testing.assert_allclose(shown, image, atol=1e-4 * np.ptp(image))
        labels, truth = dense(volume)
        assert (truth == (batch.targets[number].numpy() > 0)).all()
        parts = {tuple(np.mean(part, axis=0).round(6)): len(part) for part in reference.components(labels > 0)}
        own = [row for row in rows if row["case"] == case]
        assert parts == {tuple(np.round([row["z"], row["y"], row["x"]], 6)): row["voxels"] for row in own}
        for row in own:
            places = np.argwhere(labels == row["lesion"])
            assert places.mean(0) == pytest.approx([row["z"], row["y"], row["x"]])


def test_slices_of_the_sparse_labels_are_those_of_the_whole(found):
    volume = open_volume(found[2], 1)
    labels, truth = dense(volume)
    for axis, plane in enumerate(("axial", "coronal", "sagittal")):
        for index in range(volume.shape[axis]):
            assert (volume.labels(plane, index) == np.take(labels, index, axis)[::-1, ::-1]).all()
            assert (volume.true_lesions(plane, index) == np.take(truth, index, axis)[::-1, ::-1]).all()


def test_maps_are_those_that_are_exported_in_8_bits(found):
    source, _, volumes = found
    for number in range(3):
        volume = open_volume(volumes, number)
        maps = sampled_maps(toy.subject(), source.read(np.array([number])), Lesions(**SAMPLING).case_sampling)
        for name, wanted, most in (("probability", maps["lesion"], 1), ("entropy", maps["entropy"], np.log(2))):
            assert wanted.max() > 0.1
            for plane, axis in (("axial", 0), ("sagittal", 2)):
                expected = np.take(wanted, 5, axis)[::-1, ::-1]
                np.testing.assert_allclose(volume.map(name, plane, 5), expected, rtol=0, atol=most / 255 / 2 * 1.01)


def test_maps_are_turned_with_the_image(found):
    finding = found[2]
    image = finding.arrays["image_0000"].astype(np.float64)
    stored = np.rint(255 * (image - image.min()) / np.ptp(image)).astype(np.uint8)
    table = finding.table.set_column(finding.table.column_names.index("axes"), "axes", [["PSR"] * 3])
    arrays = {**finding.arrays, "maps_0000": np.concatenate([stored, 255 - stored])}
    volume = open_volume(replace(finding, table=table, arrays=arrays), 0)
    assert volume.axes == "PSR"
    for plane in LETTERS:
        grey = np.asarray(volume.intensities(0, plane, 4))
        assert np.corrcoef(grey.ravel(), volume.map("probability", plane, 4).ravel())[0, 1] > 0.999
        assert np.corrcoef(grey.ravel(), volume.map("entropy", plane, 4).ravel())[0, 1] < -0.999


def test_maps_can_be_left_out(found):
    source, _, whole = found
    kept = examine(toy.subject(), source, [CaseVolumes(sampling=SAMPLING, maps=False)])[0]
    assert not [name for name in kept.arrays if name.startswith(("maps", "most"))]
    assert open_volume(kept, 0).map("entropy", "axial", 3) is None
    voxels = sum(whole.arrays[f"image_{number:04d}"].size for number in range(3))
    assert whole.summary["bytes"].value - kept.summary["bytes"].value == 2 * voxels + 3 * 8


def test_a_map_lies_below_the_outlines():
    labels = np.zeros((4, 4), dtype=int)
    labels[1, 1] = 1
    shares = np.array([[0.0, 0.5, 1.0, 1.0]] * 4)
    layer = overlaid(layer_of(labels, None, np.array([0.2]), 2.0, (8, 4)), shares)
    assert layer[0, [0, 2, 4]].tolist() == [[*OVERLAY, 0], [*OVERLAY, 89], [*OVERLAY, 178]]
    assert layer[1, 2].tolist() == [*ramp(np.array([0.2]))[0].tolist(), 255]


def test_without_truth_and_metadata(found):
    images = toy.volumes(1)[0]
    volumes = examine(toy.subject(), ArraySource(images, ids=["a"]), [CaseVolumes(sampling=SAMPLING)])[0]
    volume = open_volume(volumes, 0)
    assert volume.true_lesions("axial", 0) is None
    assert (volume.spacing, volume.oriented) == ((1.0, 1.0, 1.0), False)


def test_a_slice_is_a_volume_of_one():
    images, masks = toy.volumes(2)
    flat = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.Dropout2d(0.2), torch.nn.Conv2d(2, 2, 1))
    with torch.no_grad():
        for parameter in flat.parameters():
            parameter.fill_(0.5)
    source = ArraySource(images[:, :, 5], masks[:, 5], ids=["b", "a"])
    subject = Subject(flat, task="segmentation", classes=2, scores="logits")
    volume = open_volume(examine(subject, source, [CaseVolumes(sampling={"threshold": 0.0})])[0], 1)
    assert volume.case == "b"
    assert volume.shape == (1, 14, 14)
    np.testing.assert_allclose(volume.intensities(0, "axial", 0)[::-1, ::-1], images[0, 0, 5], atol=1e-3)
    assert (volume.labels("axial", 0) == 1).all()


@pytest.mark.parametrize("axes", ["RAS", "LPS", "PSR", "IRP"])
def test_any_orientation_is_shown_as_nibabel_would_turn_it(tmp_path, axes):
    write_data_set(tmp_path / "set", ["case-0"], shape=(16, 20, 18))
    wanted = {}
    for path in (tmp_path / "set").rglob("*.nii.gz"):
        image = nibabel.load(path)
        turned = image.as_reoriented(
            nibabel.orientations.ornt_transform(
                nibabel.io_orientation(image.affine), nibabel.orientations.axcodes2ornt(axes)
            )
        )
        wanted[path.name] = np.asarray(image.dataobj).transpose(2, 1, 0)
        nibabel.save(nibabel.Nifti1Image(np.ascontiguousarray(turned.dataobj), turned.affine), path)
    source = NiftiFolder(tmp_path / "set")
    net = torch.nn.Sequential(torch.nn.Dropout3d(0.1), torch.nn.Conv3d(2, 2, 1))
    with torch.no_grad():  # what is bright in the first sequence is a lesion
        net[1].weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]])[..., None, None, None])
        net[1].bias.copy_(torch.tensor([0.8 * wanted["case-0_0000.nii.gz"].max(), 0.0]))
    subject = Subject(net, task="segmentation", classes=2, scores="logits")
    finding, lesions = examine(subject, source, [CaseVolumes(sampling={"looks": 1}), Lesions(looks=1)])
    assert finding.table["axes"].to_pylist() == [axes]
    volume = open_volume(finding, 0)
    for sequence in range(2):
        image = wanted[f"case-0_{sequence:04d}.nii.gz"]
        for axis, plane in enumerate(LETTERS):
            middle = image.shape[axis] // 2
            expected = np.take(image, middle, axis)[::-1, ::-1]
            np.testing.assert_allclose(volume.intensities(sequence, plane, middle), expected, atol=1e-4 * np.ptp(image))
    labels, truth = dense(volume)
    assert (truth == (wanted["case-0.nii.gz"] > 0)).all()
    image = nibabel.load(tmp_path / "set" / "imagesTr" / "case-0_0000.nii.gz")
    assert volume.spacing == pytest.approx(nibabel.as_closest_canonical(image).header.get_zooms()[::-1])
    assert lesions.table.num_rows > 1
    centres = np.column_stack([lesions.table[axis].to_numpy() for axis in "zyx"])
    for number, place in enumerate(volume.placed(centres), 1):
        assert place == pytest.approx(np.argwhere(labels == number).mean(0))


def test_only_the_named_sequences(tmp_path):
    images = np.concatenate([toy.volumes(1)[0], toy.volumes(1, seed=1)[0]], axis=1)
    net = torch.nn.Sequential(torch.nn.Dropout3d(0.1), torch.nn.Conv3d(2, 2, 1))
    subject = Subject(net, task="segmentation", classes=2, scores="logits")
    source = ArraySource(images, ids=["a"])
    kept = open_volume(examine(subject, source, [CaseVolumes(sequences=(1,))])[0], 0)
    assert len(kept.image) == 1
    np.testing.assert_allclose(kept.intensities(0, "axial", 3)[::-1, ::-1], images[0, 1, 3], atol=1e-3)
    with pytest.raises(BadSample, match=r"case a: sequences is \[2\], and the input has those from 0 to 1"):
        examine(subject, source, [CaseVolumes(sequences=(2,))])


@pytest.mark.parametrize(
    "image",
    [np.array([-1000.0, 3000.0]), np.array([0.0, 1e6, 70000.5]), np.array([7.5, 7.5]), np.array([-1e-5, 2e-5])],
)
def test_sixteen_bits_come_back_within_half_a_step(image):
    stored, scale, offset = sixteen_bits(image)
    assert stored.dtype == np.int16
    np.testing.assert_allclose(
        stored * scale + offset, image, rtol=0, atol=max(np.ptp(image) / 65534 / 2 * 1.001, 1e-9)
    )


def test_axes_that_say_nothing_leave_everything_as_it_is():
    assert turns("") == turns("XYZ") == ([0, 1, 2], [False] * 3)


def test_outlines_by_hand():
    labels = np.zeros((5, 7), dtype=int)
    labels[1:4, 1:4], labels[2, 5] = 1, 2
    layer = layer_of(labels, None, np.array([0.2, 0.9]), 0.5, (7, 5))
    assert layer[2, 2].tolist() == [0, 0, 0, 0]  # inside the first lesion
    edge = layer[1, 1:4]
    assert (edge == [*ramp(np.array([0.2]))[0], 255]).all()
    assert layer[2, 5].tolist() == [0, 0, 0, 255]  # dropped; of its dashes this is a black one: (2 + 5) // 4 is odd
    kept = layer_of(labels, None, np.array([0.2, 0.9]), 0.95, (7, 5))
    assert kept[2, 5].tolist() == [*ramp(np.array([0.9]))[0], 255]
    unknown = layer_of(labels, labels == 2, np.array([np.nan, np.nan]), 0.0, (14, 10))
    assert unknown[2, 2].tolist() == [220, 220, 220, 255]
    assert not (unknown[..., :3] == TRUTH).all(-1).any()  # the truth lies below the lesions
    thick = layer_of(labels, None, np.array([0.2, 0.9]), 2.0, (7, 5), width=2)
    assert (thick[1:4, 1:4, 3] == 255).all()  # of three voxels each way nothing is left inside


def test_the_room_asks_for_them():
    steps = steps_of("lesions", {"volumes": {"sequences": [0]}, "splits": ["validation", "test"], "looks": 4})
    asked = [(step.probe.__name__, step.split) for step in steps]
    assert asked == [(name, split) for name in ("Lesions", "CaseVolumes") for split in ("validation", "test")]
    assert steps[2].options["sampling"] == {"looks": 4}
    with pytest.raises(ConfigError, match="volumes is 3: expected true, or options such as"):
        steps_of("lesions", {"volumes": 3})


def test_damage_is_told(found):
    finding = found[2]
    broken = type(finding)(
        name=finding.name,
        table=finding.table,
        arrays={**finding.arrays, "image_0000": np.zeros((2, 2), dtype=np.int16)},
    )
    with pytest.raises(RunError, match="is damaged: case 0: its image is int16"):
        open_volume(broken, 0)
    with pytest.raises(RunError, match="is damaged: it has no table of cases"):
        open_volume(type(finding)(name=finding.name), 0)


def test_pictures_and_volumes_are_read_without_torch():
    code = "import sys, weakspot.lesions.slices, weakspot.lesions.volumes; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
