"""IDX files: all types, gzipped or not, and whatever can be wrong with them."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.core.errors import DataError, WeakspotError
from weakspot.data.idx import read_idx
from weakspot.data.sources import ArraySource, IdxSource

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 5), dtype=np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9], dtype=np.uint8)


def idx(array):
    code = CODES[array.dtype.newbyteorder("=").str[1:]]
    header = struct.pack(">HBB", 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.fixture(params=["plain", "gz"])
def files(request, tmp_path):
    packed = gzip.compress if request.param == "gz" else bytes
    paths = tmp_path / "images", tmp_path / "labels"
    for path, array in zip(paths, (IMAGES, LABELS), strict=True):
        path.write_bytes(packed(idx(array)))
    return paths


def test_images_and_labels(files):
    source, arrays = IdxSource(*files, classes=10), ArraySource(IMAGES, LABELS, channels="none")
    mine, theirs = source.read(np.array([5, 0])), arrays.read(np.array([5, 0]))
    assert (mine.ids, mine.targets.tolist()) == (("5", "0"), [9, 3])
    assert np.array_equal(mine.inputs, theirs.inputs)
    assert mine.inputs.shape == (2, 1, 4, 5)
    assert source.fingerprint() == arrays.fingerprint()
    assert IdxSource(files[0]).read(np.array([0])).targets is None


@pytest.mark.parametrize("dtype", CODES)
def test_every_type_of_number(tmp_path, dtype):
    array = (np.random.default_rng(0).random((3, 2)) * 100).astype(dtype)
    (tmp_path / "x").write_bytes(idx(array))
    found = read_idx(tmp_path / "x")
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (
            idx(IMAGES)[:-1],
            idx(LABELS),
            "images is cut short or damaged: its header says 6×4×5 values and so 136 bytes",
        ),
        (idx(IMAGES) + b"\0", idx(LABELS), "and so 136 bytes, it has more; get it again"),
        (idx(IMAGES)[:9], idx(LABELS), "is cut short or damaged"),
        (b"", idx(LABELS), "is not an IDX file: it begins with nothing"),
        (b"\x89PNG....", idx(LABELS), "is not an IDX file: it begins with 89 50 4e 47"),
        (b"\0\0\x0a\1\0\0\0\0", idx(LABELS), "is not an IDX file"),
        (gzip.compress(idx(IMAGES))[:-9], idx(LABELS), "cannot read .*images"),
        (b"\x1f\x8bxxxxxxxxxxxx", idx(LABELS), "cannot read .*images"),
        (idx(LABELS), idx(LABELS), "holds single numbers, not images: is it the file of the labels?"),
        (idx(IMAGES), idx(LABELS[:5]), "there are 6 inputs but 5 targets"),
        (idx(IMAGES), idx(LABELS + 1), "sample '5': class number 10 is out of range: expected 0 to 9"),
    ],
)
def test_files_that_cannot_be_right(tmp_path, images, labels, message):
    (tmp_path / "images").write_bytes(images)
    (tmp_path / "labels").write_bytes(labels)
    with pytest.raises(DataError, match=message):
        IdxSource(tmp_path / "images", tmp_path / "labels", classes=10)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*nothing"):
        IdxSource(tmp_path / "nothing")


@settings(max_examples=150, deadline=None)
@given(
    packed=st.booleans(),
    keep=st.one_of(st.just(1.0), st.floats(0, 1)),
    changes=st.lists(st.tuples(st.integers(0, 23), st.integers(0, 255)), max_size=3),
)
def test_damaged_headers_are_refused_or_mean_what_they_say(tmp_path_factory, packed, keep, changes):
    content = bytearray(gzip.compress(idx(IMAGES)) if packed else idx(IMAGES))
    for place, value in changes:
        content[place] = value
    path = tmp_path_factory.getbasetemp() / "damaged.idx"
    path.write_bytes(bytes(content[: round(keep * len(content))]))
    try:
        array = read_idx(path)
    except WeakspotError:
        return
    if packed or not changes:
        assert np.array_equal(array, IMAGES)
    else:
        assert idx(array) == bytes(content)
