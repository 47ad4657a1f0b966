"""NIfTI data sets: what is read lies where the files say, and comes back exactly; damage is named by its case."""

import json
import struct
import tracemalloc

import nibabel
import numpy as np
import pytest
import torch
from scipy import ndimage

from tests.data.niftis import affine, data_set, save
from weakspot.core.driver import examine
from weakspot.core.errors import BadSample, ConfigError, DataError, RunError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.probe import Probe, Rows
from weakspot.core.subject import Subject
from weakspot.data.nifti import NiftiFolder, is_nifti_folder
from weakspot.data.nifti_files import write_nifti
from weakspot.data.nifti_grid import Grid

AXES = ["RAS", "LPS", "LAS", "ARS", "SPL", "IRA"]


def world(matrix, shape):
    """The coordinates of every voxel, (…, 3), by the definition of the affine."""
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return index @ matrix[:3, :3].T + matrix[:3, 3]


def test_sequences_masks_and_what_the_data_set_says(tmp_path):
    made = data_set(tmp_path)
    source = NiftiFolder(tmp_path)
    batch = source.read(np.array([1, 0]))
    assert source.ids == ("a", "b") and batch.ids == ("b", "a")
    assert batch.inputs.shape == (2, 2, 8, 7, 6) and batch.inputs.dtype == torch.float32
    assert np.array_equal(batch.inputs[0, 1], made["b_0001"].transpose(2, 1, 0))
    assert np.array_equal(batch.targets[1], made["a"].transpose(2, 1, 0))
    assert batch.metadata["mask_voxels"].tolist() == [made["b"].sum(), made["a"].sum()]
    assert source.classes == ("background", "lesion")
    assert is_nifti_folder(tmp_path) and is_nifti_folder(tmp_path / "imagesTr") and not is_nifti_folder(tmp_path / "no")


@pytest.mark.parametrize("axes", AXES)
def test_turned_to_one_orientation_and_exactly_back(axes):
    """Each working voxel has the value of the file's voxel at the same place in the world."""
    shape, matrix = (4, 5, 6), affine((1.0, 2.0, 3.0), axes, (-7.0, 5.0, 11.0))
    grid = Grid(shape, matrix, "RAS")
    values = np.random.default_rng(0).random(shape)
    turned = grid.to_working(values)
    assert np.array_equal(grid.to_file(turned), values)
    index = np.stack(np.meshgrid(*map(np.arange, turned.shape), indexing="ij"), -1).reshape(-1, 3)
    places = world(matrix, shape).reshape(-1, 3)
    there = {tuple(np.round(place, 6)): value for place, value in zip(places, values.ravel(), strict=True)}
    for place, value in zip(grid.millimetres(index), turned.ravel(), strict=True):
        assert there[tuple(np.round(place, 6))] == value
    steps = np.diff(grid.millimetres(np.array([[0, 0, 0], [0, 0, 1]])), axis=0)[0]
    assert steps[0] > 0 and steps[1:] == pytest.approx([0, 0])  # x is innermost and points to the right


@pytest.mark.parametrize("axes", AXES[:4])
@pytest.mark.parametrize("spacing", [(1.0, 1.0, 1.0), (2.0, 0.7, 0.8)])
def test_resampled_values_lie_where_they_belong_and_come_back(axes, spacing):
    """A linear function of the place stays one under linear interpolation, wherever the border is not near."""
    shape, matrix = (20, 24, 12), affine((0.9, 0.8, 2.5), axes, (3.0, -4.0, 5.0))
    grid = Grid(shape, matrix, "RAS", spacing)
    linear = world(matrix, shape) @ np.array([1.0, 0.5, -2.0])
    working = grid.to_working(linear)
    assert working.shape == grid.working_shape and grid.spacing == spacing
    index = np.stack(np.meshgrid(*map(np.arange, working.shape), indexing="ij"), -1)
    expected = (grid.millimetres(index.reshape(-1, 3)) @ np.array([1.0, 0.5, -2.0])).reshape(working.shape)
    inner = tuple(slice(int(4 / side), -int(4 / side)) for side in spacing)
    assert np.allclose(working[inner], expected[inner])
    back = grid.to_file(working)
    assert back.shape == shape
    assert np.allclose(back[6:-6, 6:-6, 3:-3], linear[6:-6, 6:-6, 3:-3])


def test_the_working_grid_keeps_extent_and_centre():
    grid = Grid((100, 50, 10), affine((0.5, 1.0, 5.0)), "file", (1.0, 1.0, 1.0))
    assert grid.working_shape == (50, 50, 50)
    centre = grid.millimetres((np.array([grid.working_shape]) - 1) / 2)
    assert centre[0] == pytest.approx((np.array([100, 50, 10]) - 1) / 2 * [0.5, 1.0, 5.0])


def test_masks_are_resampled_where_half_of_a_voxel_is_covered(tmp_path):
    data_set(tmp_path, cases=("a",), shape=(8, 8, 4), matrix=affine((1, 1, 3)))
    batch = NiftiFolder(tmp_path, spacing=[1, 1, 1]).read(np.array([0]))
    assert batch.targets.shape == (1, 12, 8, 8) == batch.inputs[:, 0].shape
    assert set(batch.targets.unique().tolist()) == {0, 1}
    assert [float(batch.metadata[f"spacing_{axis}"][0]) for axis in "zyx"] == [1, 1, 1]
    twice = Grid((4, 6, 8), affine(), "file", (2.0, 1.0, 1.0))
    labels = np.zeros((4, 6, 8), dtype=np.int32)
    labels[1:3, 1:3, 2:4], labels[1:3, 4:6, 5:7] = 3, 7  # one fills a coarse voxel, one half of two
    coarse = twice.to_working(labels, labels=True)
    assert coarse.shape == (4, 6, 4) and coarse.dtype == np.int32
    assert [np.argwhere(coarse == number).min(0).tolist() for number in (3, 7)] == [[1, 1, 1], [2, 4, 1]]
    assert [int((coarse == number).sum()) for number in (3, 7)] == [4, 8]


def test_cases_of_different_orientation(tmp_path):
    made = data_set(tmp_path, cases=("a",), sequences=1)
    save(tmp_path / "imagesTr" / "b_0000.nii.gz", made["a_0000"][::-1], affine(axes="LAS", origin=(5, 0, 0)))
    save(tmp_path / "labelsTr" / "b.nii.gz", made["a"][::-1], affine(axes="LAS", origin=(5, 0, 0)))
    with pytest.raises(BadSample, match=r"case b is oriented LAS, the first case a RAS.*orientation 'RAS'"):
        NiftiFolder(tmp_path).read(np.array([1]))
    batch = NiftiFolder(tmp_path, orientation="RAS").read(np.array([0, 1]))
    assert torch.equal(batch.inputs[0], batch.inputs[1]) and torch.equal(batch.targets[0], batch.targets[1])


def test_a_damaged_first_case_does_not_spoil_the_others(tmp_path):
    data_set(tmp_path)
    (tmp_path / "imagesTr" / "a_0000.nii.gz").write_bytes(b"")
    source = NiftiFolder(tmp_path)
    assert source.read(np.array([1])).ids == ("b",)
    with pytest.raises(BadSample, match="case a: a_0000"):
        source.read(np.array([0]))
    (tmp_path / "imagesTr" / "b_0000.nii.gz").write_bytes(b"")
    with pytest.raises(BadSample, match="case b: b_0000"):
        NiftiFolder(tmp_path).read(np.array([1]))


@pytest.mark.parametrize(("how", "inside"), [("volume", lambda v: v == v), ("nonzero", lambda v: v != 0)])
def test_normalised(tmp_path, how, inside):
    made = data_set(tmp_path, cases=("a",), sequences=1)
    made["a_0000"][:2] = 0
    save(tmp_path / "imagesTr" / "a_0000.nii.gz", made["a_0000"], affine())
    values = NiftiFolder(tmp_path, normalise=how).read(np.array([0])).inputs[0, 0].numpy().transpose(2, 1, 0)
    chosen = values[inside(made["a_0000"])]
    assert chosen.mean() == pytest.approx(0, abs=1e-5) and chosen.std() == pytest.approx(1, abs=1e-5)
    assert how == "volume" or (values[:2] == 0).all()


def _cut(folder):
    path = folder / "imagesTr" / "b_0001.nii.gz"
    path.write_bytes(path.read_bytes()[:-200])


def _flipped_bit(folder):
    path = folder / "labelsTr" / "b.nii.gz"
    content = bytearray(path.read_bytes())
    content[-6] ^= 1  # in the checksum, which says that something else was written
    path.write_bytes(bytes(content))


def _resaved(name, change, matrix=None):
    def damage(folder):
        path = folder / name
        save(path, change(np.asarray(nibabel.load(path).dataobj)), affine() if matrix is None else matrix)

    return damage


def _nan(array):
    array = array.copy()
    array[0, 0, :3] = np.nan
    return array


DAMAGE = [
    (_cut, r"case b: b_0001.nii.gz cannot be read as NIfTI: the archive is cut off or damaged"),
    (_flipped_bit, r"case b: b.nii.gz cannot be read as NIfTI: the archive is cut off or damaged"),
    (lambda f: (f / "imagesTr/b_0000.nii.gz").write_bytes(b"x" * 99), r"case b: b_0000.nii.gz .*a NIfTI header"),
    (lambda f: (f / "imagesTr/b_0000.nii.gz").write_bytes(b""), r"case b: b_0000.nii.gz cannot be read"),
    (lambda f: (f / "imagesTr/b_0001.nii.gz").unlink(), r"case b has no sequence 0001 .*add b_0001.nii.gz"),
    (lambda f: (f / "labelsTr/b.nii.gz").unlink(), r"case b has no mask .*labelsTr/b.nii.gz: add it"),
    (_resaved("imagesTr/b_0001.nii.gz", _nan), r"case b: 3 voxels of b_0001.nii.gz are NaN or infinite"),
    (_resaved("imagesTr/b_0001.nii.gz", lambda a: a[1:]), r"b_0001.nii.gz has shape \(5, 7, 8\), b_0000"),
    (_resaved("labelsTr/b.nii.gz", lambda a: a[:, 1:]), r"case b: b.nii.gz has shape \(6, 6, 8\)"),
    (_resaved("imagesTr/b_0000.nii.gz", lambda a: np.stack([a, a], -1)), r"b_0000.nii.gz has shape .*a volume"),
    (_resaved("imagesTr/b_0001.nii.gz", lambda a: a, affine(origin=(1, 0, 0))), r"b_0001.nii.gz lies 1 voxels from"),
    (_resaved("labelsTr/b.nii.gz", lambda a: a, affine(axes="LAS")), r"b.nii.gz lies 10 voxels .*LAS and RAS"),
    (_resaved("labelsTr/b.nii.gz", lambda a: a * np.float32(0.5)), r"mask b.nii.gz holds other values than 0, 1, 2"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_damage_is_named_by_its_case(tmp_path, damage, message):
    data_set(tmp_path)
    damage(tmp_path)
    source = NiftiFolder(tmp_path)
    source.fingerprint()
    assert len(source.read(np.array([0]))) == 1
    with pytest.raises(BadSample, match=message) as caught:
        source.read(np.array([0, 1]))
    assert caught.value.sample == "b"


class Met(Probe):
    """Which cases were met."""

    met = Rows()

    def observe(self, seen):
        self.met.append(seen.ids, there=np.ones(len(seen.ids)))

    def finish(self):
        return self.finding(table={"id": self.met.read().ids})


def test_damaged_cases_can_be_left_out_of_an_examination(tmp_path):
    data_set(tmp_path, sequences=1)
    _resaved("imagesTr/b_0000.nii.gz", _nan)(tmp_path)
    net = torch.nn.Conv3d(1, 2, 1)
    subject = Subject(net, task="segmentation", scores="logits")
    execution = ExecutionOptions(batch_size=1, on_bad_sample="skip")
    finding = examine(subject, NiftiFolder(tmp_path), [Met()], execution=execution)[0]
    assert finding.table["id"].to_pylist() == ["a"]


@pytest.mark.parametrize("orientation", ["file", "RAS"])
def test_a_file_without_orientation_is_refused(tmp_path, orientation):
    made = data_set(tmp_path, cases=("a",), sequences=1)
    image = nibabel.Nifti1Image(made["a_0000"], None)
    image.header.set_sform(None, 0)
    image.header.set_qform(None, 0)
    nibabel.save(image, tmp_path / "imagesTr" / "a_0000.nii.gz")
    with pytest.raises(BadSample, match=r"case a: a_0000\.nii\.gz does not say where its axes point to"):
        NiftiFolder(tmp_path, orientation=orientation).read(np.array([0]))


def test_shapes_that_cannot_share_a_batch(tmp_path):
    data_set(tmp_path, cases=("a",))
    data_set(tmp_path, cases=("b",), shape=(5, 5, 5))
    source = NiftiFolder(tmp_path)
    assert source.read(np.array([1])).inputs.shape == (1, 2, 5, 5, 5)
    with pytest.raises(DataError, match=r"case b has shape \(5, 5, 5\), case a \(8, 7, 6\).*batches of 1"):
        source.read(np.array([0, 1]))


def test_empty_masks_are_allowed_and_told(tmp_path):
    made = data_set(tmp_path, cases=("a", "b", "c"))
    save(tmp_path / "labelsTr" / "b.nii.gz", np.zeros_like(made["b"]), affine())
    last = np.zeros_like(made["c"])
    last[-1, -1, -1] = 1
    save(tmp_path / "labelsTr" / "c.nii.gz", last, affine())
    source = NiftiFolder(tmp_path)
    assert source.remarks == ("1 cases have an empty mask: b",)
    assert source.read(np.arange(3)).metadata["mask_voxels"].tolist() == [made["a"].sum(), 0, 1]
    (tmp_path / "labelsTr" / "b.nii.gz").write_bytes(b"broken")
    assert NiftiFolder(tmp_path).remarks == ()


def test_choices_and_what_is_refused(tmp_path):
    data_set(tmp_path)
    source = NiftiFolder(tmp_path / "imagesTr", cases=["b"], sequences=[1])
    assert source.ids == ("b",) and source.read(np.array([0])).inputs.shape[1] == 1
    (tmp_path / "labelsTr" / "z.nii.gz").write_bytes(b"")
    assert "1 masks belong to no case: z" in NiftiFolder(tmp_path).remarks[0]
    for options, message in [
        ({"cases": ["c"]}, "no case c"),
        ({"cases": []}, "cases is empty"),
        ({"sequences": [0, 0]}, "different numbers"),
        ({"spacing": [1, 1]}, "along z, y and x"),
        ({"spacing": 0}, "along z, y and x"),
        ({"orientation": "LPS"}, "file, RAS"),
        ({"normalise": "z"}, "none, volume, nonzero"),
    ]:
        with pytest.raises((ConfigError, DataError), match=message):
            NiftiFolder(tmp_path, **options)
    with pytest.raises(DataError, match="holds no volumes"):
        NiftiFolder(tmp_path / "labelsTr")
    (tmp_path / "dataset.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        NiftiFolder(tmp_path)


def test_nnunet_1_says_modality_and_numbers_first(tmp_path):
    data_set(tmp_path)
    said = {"modality": {"0": "FLAIR"}, "labels": {"0": "background", "1": "ms"}}
    (tmp_path / "dataset.json").write_text(json.dumps(said))
    source = NiftiFolder(tmp_path)
    assert source.sequences == (0,) and source.classes == ("background", "ms")


def test_images_without_masks(tmp_path):
    data_set(tmp_path)
    (tmp_path / "imagesTr").rename(tmp_path / "imagesTs")
    source = NiftiFolder(tmp_path / "imagesTs")
    assert source.read(np.array([0])).targets is None
    with pytest.raises(DataError, match="has no masks beside it: expected a folder labelsTs"):
        source.mask("a")


def test_the_fingerprint_follows_contents_and_options(tmp_path):
    data_set(tmp_path)
    prints = {
        NiftiFolder(tmp_path, **options).fingerprint()
        for options in ({}, {"spacing": 2}, {"orientation": "RAS"}, {"normalise": "volume"}, {"sequences": [1]})
    }
    _resaved("labelsTr/a.nii.gz", lambda a: 1 - a)(tmp_path)
    assert len(prints | {NiftiFolder(tmp_path).fingerprint()}) == 6


def test_written_files_are_whole_equal_and_not_replaced(tmp_path):
    volume, matrix = np.arange(24, dtype=np.int16).reshape(2, 3, 4), affine((1, 2, 3), "LPS", (4, 5, 6))
    for name in ("a.nii.gz", "b.nii.gz", "c.nii"):
        write_nifti(tmp_path / name, volume, matrix)
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()
    read = nibabel.load(tmp_path / "a.nii.gz")
    assert np.array_equal(read.dataobj, volume) and np.allclose(read.affine, matrix)
    with pytest.raises(RunError, match="exists already"):
        write_nifti(tmp_path / "c.nii", volume, matrix)
    assert len(list(tmp_path.iterdir())) == 3


def test_memory_does_not_grow_with_the_cases(tmp_path):
    names = [f"c{number}" for number in range(8)]
    data_set(tmp_path, cases=names, shape=(40, 40, 40), matrix=affine((1, 1, 2)))
    source = NiftiFolder(tmp_path, spacing=1, normalise="volume")

    def peak(places):
        tracemalloc.start()
        for place in places:
            source.read(np.array([place]))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak([0])
    assert peak(range(8)) < 1.2 * peak([0])


def _big_endian(array, matrix):
    return nibabel.Nifti1Image(array.astype(">f4"), matrix, nibabel.Nifti1Header(endianness=">"))


@pytest.mark.parametrize("made", [nibabel.Nifti2Image, _big_endian], ids=["nifti 2", "big-endian"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_kinds_of_files(tmp_path, made, suffix):
    array = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    (tmp_path / "imagesTs").mkdir()
    nibabel.save(made(array, affine((1, 2, 3))), tmp_path / "imagesTs" / f"a_0000{suffix}")
    source = NiftiFolder(tmp_path / "imagesTs")
    assert np.array_equal(source.read(np.array([0])).inputs[0, 0], array.transpose(2, 1, 0))
    assert source.grid("a").spacing == pytest.approx((3, 2, 1))


def test_stored_numbers_are_scaled_as_the_header_says(tmp_path):
    stored = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    content = bytearray(nibabel.Nifti1Image(stored, affine()).to_bytes())
    content[112:120] = struct.pack("<ff", 0.25, -1)  # slope and intercept, by the format's definition
    (tmp_path / "imagesTs").mkdir()
    (tmp_path / "imagesTs" / "a_0000.nii").write_bytes(content)
    values = NiftiFolder(tmp_path / "imagesTs").read(np.array([0])).inputs[0, 0]
    assert np.array_equal(values, stored.transpose(2, 1, 0) * np.float32(0.25) - 1)


@pytest.mark.parametrize(("patient", "lesions"), [("07", 37), ("19", 98), ("26", 19)])
def test_real_masks_turned_resampled_and_back(shared, tmp_path, patient, lesions):
    """Multiple-sclerosis patients of Lesjak et al. 2018 with the number of lesions that is known of each."""
    for name, target in (("flair", f"imagesTr/{patient}_0000"), ("lesions", f"labelsTr/{patient}")):
        (tmp_path / target).parent.mkdir(exist_ok=True)
        (tmp_path / f"{target}.nii.gz").symlink_to(shared / "data" / "mslub" / f"patient{patient}-{name}.nii.gz")
    with pytest.raises(DataError, match="is a link that leads out of the data"):
        NiftiFolder(tmp_path, orientation="RAS")
    source = NiftiFolder(tmp_path, orientation="RAS", follow_links=True)
    mask, grid = source.mask(patient), source.grid(patient)
    assert ndimage.label(mask, np.ones((3, 3, 3)))[1] == lesions and grid.axes == "LAS"
    original = np.asarray(nibabel.load(tmp_path / "labelsTr" / f"{patient}.nii.gz").dataobj)
    assert np.array_equal(grid.to_file(mask, labels=True), original)
    assert np.array_equal(mask, original[::-1].transpose(2, 1, 0))
