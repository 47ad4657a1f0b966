"""A few bytes that ask for gigabytes, and files that nobody writes to: refused before anything is unpacked."""

import gzip
import os
import struct
import sys
import zipfile
import zlib

import nibabel
import numpy as np
import pytest
from PIL import Image, ImageFile

from tests.data.files import COLOUR, HEIGHT, WIDTH, saved, turned
from tests.data.niftis import affine, data_set
from weakspot.core import guarded_open
from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.data import images, nifti_files
from weakspot.data.idx import read_idx
from weakspot.data.nifti_files import is_empty, read_header, read_voxels
from weakspot.data.sources import ArraySource, ImageFolder, ImageManifest, ImageZip, NiftiFolder, WithMetadata
from weakspot.data.tables import csv_table, read_csv

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def small_machine(monkeypatch):
    """One with a megabyte of memory."""
    monkeypatch.setattr(guarded_open, "memory_bytes", lambda: 1_000_000)


def zeros_png(width, height):
    """A black picture; a thousandth of its pixels on disk."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer, row = zlib.compressobj(9), bytes(1 + 3 * width)
    rows = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def black():
    """Of as many pixels as Pillow allows: 240 MB unpacked."""
    content = zeros_png(9000, 9000)
    assert len(content) < 250_000
    return content


def test_images_of_another_size_are_not_decoded(tmp_path, black, monkeypatch):
    """Decoded, these sixteen would take four gigabytes before it is noticed that the first is another one."""
    (tmp_path / "00.png").write_bytes(saved(COLOUR, "PNG"))
    for number in range(1, 17):
        (tmp_path / f"{number:02d}.png").write_bytes(black)
    real, decoded = ImageFile.ImageFile.load, set()

    def load(image):
        decoded.add(image.size)
        return real(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    with pytest.raises(BadSample, match=f"01.png is 9000×9000, 00.png is {HEIGHT}×{WIDTH}: give size="):
        ImageFolder(tmp_path).read(np.arange(17))
    assert decoded == {(WIDTH, HEIGHT)}


def test_images_that_only_lie_on_their_side_fit(tmp_path):
    (tmp_path / "a.jpg").write_bytes(saved(COLOUR, "JPEG"))
    (tmp_path / "b.jpg").write_bytes(saved(COLOUR.transpose(Image.Transpose.ROTATE_90), "JPEG", exif=turned(6)))
    (tmp_path / "c.jpg").write_bytes(saved(COLOUR, "JPEG", exif=turned(6)))
    source = ImageFolder(tmp_path)
    assert source.read(np.array([0, 1])).inputs.shape == (2, 3, HEIGHT, WIDTH)
    with pytest.raises(BadSample, match=f"c.jpg is {WIDTH}×{HEIGHT}, a.jpg is {HEIGHT}×{WIDTH}"):
        source.read(np.array([2]))


def test_images_are_decoded_one_after_another(tmp_path, monkeypatch):
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(saved(COLOUR, "PNG"))
    source, alive = ImageFolder(tmp_path), []
    real = images._pixels

    def noted(*arguments):
        assert not alive or sys.getrefcount(alive.pop()) <= 3, "the one before is still held"
        alive.append(real(*arguments))
        return alive[-1]

    monkeypatch.setattr(images, "_pixels", noted)
    assert len(source.read(np.arange(4)).inputs) == 4


def test_a_batch_that_the_memory_cannot_hold_is_refused(tmp_path, small_machine):
    for number in range(800):
        (tmp_path / f"{number:03d}.png").write_bytes(saved(COLOUR, "PNG"))
    source = ImageFolder(tmp_path)
    assert len(source.read(np.arange(100)).inputs) == 100
    with pytest.raises(DataError, match=r"a batch of 800 images of 9×13 would take 0\.0 GB at once.*smaller batches"):
        source.read(np.arange(800))


def test_only_kinds_that_pillow_reads_itself_are_opened(tmp_path):
    """For PostScript it starts a program."""
    (tmp_path / "a.png").write_bytes(saved(COLOUR, "EPS"))
    with pytest.raises(BadSample, match="it is of no kind that Pillow knows"):
        ImageFolder(tmp_path).read(np.array([0]))


def test_the_fingerprint_of_an_archive_unpacks_no_more_than_a_block(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(20_000_000))
    source = ImageZip(path)
    monkeypatch.setattr(ImageZip, "content", lambda *_: pytest.fail("all of it is held at once"))
    assert len(source.fingerprint()) == 64


def nifti(path, array, more=b"", **fields):
    image = nibabel.Nifti1Image(array, affine())
    content = bytearray(image.to_bytes())
    for name, value in fields.items():
        place, form = {"dim": (40, "<8h"), "bitpix": (72, "<h"), "vox_offset": (108, "<f")}[name]
        struct.pack_into(form, content, place, *np.atleast_1d(value))
    path.write_bytes(
        gzip.compress(bytes(content) + more, mtime=0) if path.name.endswith(".gz") else bytes(content) + more
    )
    return path


def test_a_volume_is_read_no_further_than_its_header_says(tmp_path):
    path = nifti(tmp_path / "a.nii.gz", np.zeros((4, 4, 4), np.int16), more=bytes(20_000_000))
    assert path.stat().st_size < 250_000
    with pytest.raises(BadSample, match=r"a.nii.gz cannot be read as NIfTI: it is longer than the 480 bytes"):
        read_voxels(path, "a")


def test_a_little_after_the_end_of_a_volume_does_no_harm(tmp_path):
    array = np.arange(64, dtype=np.int16).reshape(4, 4, 4)
    path = nifti(tmp_path / "a.nii.gz", array, more=bytes(512))
    assert np.array_equal(read_voxels(path, "a")[0], array)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_a_volume_that_claims_to_be_huge_is_refused(tmp_path, name):
    path = nifti(tmp_path / name, np.zeros((4, 4, 4), np.int16), dim=[3, 32767, 32767, 32767, 1, 1, 1, 1])
    with pytest.raises(BadSample, match=r"a volume of 70,[0-9,]+ bytes by its header would take .* GB at once"):
        read_voxels(path, "a")


def test_whether_a_mask_is_empty_is_not_looked_for_beyond_its_end(tmp_path, monkeypatch):
    path = nifti(tmp_path / "a.nii.gz", np.zeros((4, 4, 4), np.int16), more=bytes(5_000_000) + b"\1")
    assert is_empty(path)
    monkeypatch.setattr(nifti_files, "_CHUNK", 7)
    assert not is_empty(nifti(tmp_path / "b.nii.gz", np.ones((20, 20, 20), np.int16)))
    last = np.zeros((20, 20, 20), np.int16)
    last[-1, -1, -1] = 1
    assert not is_empty(nifti(tmp_path / "c.nii.gz", last))


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", size) for size in shape) + values


def test_an_idx_file_is_read_no_further_than_its_header_says(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(idx((2, 3, 3), bytes(30_000_000))))
    with pytest.raises(DataError, match="its header says 2×3×3 values and so 34 bytes, it has more"):
        read_idx(path)
    path.write_bytes(gzip.compress(idx((4_000_000_000, 1000, 1000), b"")))
    with pytest.raises(DataError, match=r"of 4000000000×1000×1000 values by its header, would take .* GB at once"):
        read_idx(path)


def test_arrays_that_the_memory_cannot_hold_are_not_unpacked(tmp_path, small_machine):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((1000, 1000)), small=np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"cannot read .*a.npz as an npz file: unpacking it would take"):
        ArraySource.npz(tmp_path / "a.npz", inputs="x")
    assert len(ArraySource.npz(tmp_path / "a.npz", inputs="small").ids) == 3


def test_a_table_that_the_memory_cannot_hold_is_refused(tmp_path, small_machine):
    (tmp_path / "a.csv").write_text("id\n" + "x\n" * 100_000)
    with pytest.raises(DataError, match=r"cannot read .*a.csv: its cells would take .* GB at once"):
        read_csv(tmp_path / "a.csv")


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"', "\r"])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ConfigError, match=r"delimiter is .*: expected one character"):
        csv_table(b"a,b\n1,2\n", "a.csv", delimiter=delimiter)


def test_a_separator_of_labels_is_something(tmp_path):
    (tmp_path / "a.csv").write_text("path,target\nx.png,cat\n")
    with pytest.raises(ConfigError, match="separator is ''"):
        ImageManifest(tmp_path / "a.csv", task="multilabel", separator="")


def test_many_columns_and_classes_take_no_time(tmp_path):
    """Each was looked for among all others: ten thousand million steps."""
    names = [f"c{number}" for number in range(100_000)]
    table = csv_table((",".join(names) + "\n" + ",".join(names)).encode(), "wide.csv")
    assert len(table.columns) == 100_000
    (tmp_path / "c0").mkdir()
    (tmp_path / "c0" / "a.png").write_bytes(saved(COLOUR, "PNG"))
    assert len(ImageFolder(tmp_path, classes=names).classes) == 100_000


@pytest.mark.parametrize("damage", ["fifo", "folder", "lost link"])
def test_what_is_no_file_is_told_and_not_waited_for(tmp_path, damage):
    def put(name):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        {"fifo": os.mkfifo, "folder": os.mkdir, "lost link": lambda to: to.symlink_to("nowhere")}[damage](path)
        return path

    fine = ArraySource(np.zeros((2, 3)))
    tried = {
        "x.npy": ArraySource.npy,
        "x.npz": lambda path: ArraySource.npz(path, inputs="x"),
        "x.zip": ImageZip,
        "x.csv": ImageManifest,
        "x.idx": read_idx,
        "m.csv": lambda path: WithMetadata(fine, path),
        "m.parquet": lambda path: WithMetadata(fine, path),
    }
    reason = {"fifo": "it is a FIFO", "folder": "it is a folder", "lost link": "No such file"}[damage]
    for name, source in tried.items():
        with pytest.raises(DataError, match=reason):
            source(put(name))
    data_set(tmp_path / "set", cases=("a", "b"), sequences=1)
    with pytest.raises(BadSample, match=reason):
        read_header(put("set/imagesTr/a_0000.nii.gz"), "a")
    if damage != "lost link":  # it leads out of the data
        source = NiftiFolder(tmp_path / "set")
        assert source.remarks is not None
        assert len(source.fingerprint()) == 64
        with pytest.raises(BadSample, match=f"case a: a_0000.nii.gz cannot be read as NIfTI: {reason}"):
            source.read(np.array([0]))
