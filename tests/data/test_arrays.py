"""Arrays in files, and what is checked of arrays wherever they come from."""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.data.sources import ArraySource

INPUTS = np.random.default_rng(0).random((5, 3, 4, 4), dtype=np.float32)
TARGETS = np.array([0, 2, 1, 2, 0])


def test_npy_files_are_mapped_and_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", INPUTS)
    np.save(tmp_path / "y.npy", TARGETS)
    source = ArraySource.npy(tmp_path / "x.npy", tmp_path / "y.npy", channels="first", classes=3)
    assert isinstance(source._inputs.base, np.memmap) or isinstance(source._inputs, np.memmap)
    batch = source.read(np.array([4, 1]))
    assert np.array_equal(batch.inputs, INPUTS[[4, 1]])
    assert batch.targets.tolist() == [0, 2]
    assert source.fingerprint() == ArraySource(INPUTS, TARGETS).fingerprint()


def test_npz_files_by_the_names_of_their_arrays(tmp_path):
    names = np.array(["e", "d", "c", "b", "a"])
    np.savez_compressed(tmp_path / "d.npz", x=INPUTS, y=TARGETS, names=names, age=TARGETS * 10)
    source = ArraySource.npz(tmp_path / "d.npz", inputs="x", targets="y", ids="names", metadata=["age"])
    batch = source.read(np.array([1]))
    assert (batch.ids, batch.targets.tolist(), batch.metadata["age"].tolist()) == (("d",), [2], [20])
    with pytest.raises(DataError, match=r"d.npz has no array 'z': it has x, y, names, age"):
        ArraySource.npz(tmp_path / "d.npz", inputs="x", targets="z")


@pytest.mark.parametrize("cut", [0, 5, 60, 200, -1])
def test_damaged_files_are_refused(tmp_path, cut):
    np.save(tmp_path / "x.npy", INPUTS)
    np.savez(tmp_path / "x.npz", x=INPUTS)
    for name in ("x.npy", "x.npz"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:cut])
    with pytest.raises(DataError, match=r"cannot read .*x.npy"):
        ArraySource.npy(tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"cannot read .*x.npz"):
        ArraySource.npz(tmp_path / "x.npz", inputs="x")


def test_a_changed_byte_in_an_npz_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=INPUTS)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DataError, match="cannot read"):
        ArraySource.npz(tmp_path / "x.npz", inputs="x")


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"run": "code"}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=np.array([{"run": "code"}], dtype=object))
    for make in (ArraySource.npy, lambda path: ArraySource.npz(path.with_suffix(".npz"), inputs="x")):
        with pytest.raises(DataError, match="cannot read"):
            make(tmp_path / "x.npy")


def test_one_kind_of_file_for_the_other(tmp_path):
    np.save(tmp_path / "x.npy", INPUTS)
    np.savez(tmp_path / "x.npz", x=INPUTS)
    with pytest.raises(DataError, match=r"cannot read .*x.npz as an npy file"):
        ArraySource.npy(tmp_path / "x.npz")
    with pytest.raises(DataError, match="holds a single array: it is an npy file"):
        ArraySource.npz(tmp_path / "x.npy", inputs="x")


@pytest.mark.parametrize(
    ("targets", "classes", "message"),
    [
        ([0, 1, 3], 3, "sample '2': class number 3 is out of range: expected 0 to 2"),
        ([0, -1, 2], ["a", "b", "c"], "sample '1': class number -1 is out of range"),
        ([0, 1.5, 2], 3, "sample '1': 1.5 is not a class number"),
        ([0, np.nan, 2], 3, "sample '1': nan is not a class number"),
    ],
)
def test_class_numbers_are_checked_where_the_classes_are_known(targets, classes, message):
    with pytest.raises(DataError, match=message):
        ArraySource(np.zeros((3, 1)), targets, classes=classes)


@pytest.mark.parametrize("inputs", [3.0, [[1, 2], [3]], ["a", "b"], None])
def test_inputs_that_are_no_array(inputs):
    with pytest.raises(DataError):
        ArraySource(inputs)


def test_sixteen_bits_are_scaled():
    values = np.array([[0, 13107, 65535]], dtype=np.uint16)
    np.testing.assert_allclose(ArraySource(values).read(np.array([0])).inputs, [[0, 0.2, 1]], rtol=1e-6)


def test_ids_that_cannot_be_written_become_text():
    assert ArraySource(np.zeros((2, 1)), ids=["a\udcff", "\ud800"]).ids == ("a\\xff", "\\ud800")
