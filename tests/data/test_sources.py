"""Arrays and image folders: layouts, scaling, ids, fingerprints, and what is said of data that do not work."""

import threading
import time

import numpy as np
import pytest
import torch
from PIL import Image

from tests.core.helpers import reading_threads
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, check_ids, limited, read_ahead
from weakspot.data.sources import ArraySource, ImageFolder

ALL = np.arange(3)


def whole(source):
    return source.read(np.arange(len(source.ids)))


@pytest.mark.parametrize(
    ("channels", "shape", "expected"),
    [
        ("first", (3, 2, 4, 5), (3, 2, 4, 5)),
        ("last", (3, 4, 5, 2), (3, 2, 4, 5)),
        ("none", (3, 4, 5), (3, 1, 4, 5)),
        ("last", (3, 4, 5, 6, 2), (3, 2, 4, 5, 6)),
        ("first", (3, 7), (3, 7)),
    ],
)
def test_layouts(channels, shape, expected):
    array = np.random.default_rng(0).random(shape, dtype=np.float32)
    inputs = ArraySource(array, channels=channels).read(ALL).inputs
    assert inputs.shape == expected
    assert inputs.is_contiguous()
    moved = {"first": array, "last": np.moveaxis(array, -1, 1), "none": array[:, None]}[channels]
    assert np.array_equal(inputs.numpy(), moved)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0], [51], [255]], dtype=np.uint8), [[0.0], [0.2], [1.0]]),
        (np.array([[0], [51], [255]], dtype=np.int64), [[0.0], [51.0], [255.0]]),
        (np.array([[0.0], [0.5], [255.0]]), [[0.0], [0.5], [255.0]]),
        (np.array([[True], [False], [True]]), [[1.0], [0.0], [1.0]]),
        (torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64, requires_grad=True), [[1.0], [2.0], [3.0]]),
        ([[1], [2], [3]], [[1.0], [2.0], [3.0]]),
    ],
)
def test_bytes_are_scaled_and_nothing_else_is(values, expected):
    inputs = ArraySource(values).read(ALL).inputs
    assert inputs.dtype == torch.float32
    torch.testing.assert_close(inputs, torch.tensor(expected))


def test_a_batch_is_a_copy_with_everything_in_step():
    array = np.arange(10.0, dtype=np.float32)[:, None]
    source = ArraySource(array, np.arange(10) % 3, metadata={"site": np.array([*"abcdefghij"])})
    batch = source.read(np.array([7, 2, 2]))
    assert batch.ids == ("7", "2", "2")
    assert batch.inputs[:, 0].tolist() == [7, 2, 2]
    assert batch.targets.tolist() == [1, 2, 2]
    assert batch.metadata["site"].tolist() == ["h", "c", "c"]
    assert batch.positions.tolist() == [7, 2, 2]
    batch.inputs.zero_()
    assert array[7, 0] == 7


def test_selecting_and_moving_keeps_everything_in_step():
    batch = whole(ArraySource(np.arange(4.0)[:, None], [0, 1, 0, 1], metadata={"m": [5, 6, 7, 8]}))
    some = batch.select(np.array([True, False, False, True])).to(torch.device("cpu"))
    assert (some.ids, some.positions.tolist(), some.inputs[:, 0].tolist()) == (("0", "3"), [0, 3], [0.0, 3.0])
    assert (some.targets.tolist(), some.metadata["m"].tolist(), len(some)) == ([0, 1], [5, 8], 2)
    assert batch.select(np.ones(4, dtype=bool)) is batch


@pytest.mark.parametrize(
    ("targets", "dtype"),
    [([1, 2, 0], torch.int64), ([0.5, 1, 2], torch.float32), ([True, False, True], torch.int64)],
)
def test_targets_are_wide(targets, dtype):
    assert ArraySource(np.zeros((3, 1)), targets).read(ALL).targets.dtype == dtype


def test_ids_are_numbers_of_one_width_unless_given():
    assert ArraySource(np.zeros((11, 1))).ids[:3] == ("00", "01", "02")
    assert ArraySource(np.zeros((1, 1))).ids == ("0",)
    assert ArraySource(np.zeros((3, 1)), ids=np.array(["x", "y", "z"])).ids == ("x", "y", "z")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"targets": [1, 2]}, DataError, "there are 3 inputs but 2 targets: expected one per input"),
        ({"ids": ["a"]}, DataError, "there are 3 inputs but 1 ids"),
        ({"metadata": {"age": [1, 2, 3, 4]}}, DataError, "there are 3 inputs but 4 age"),
        ({"channels": "middle"}, ConfigError, "channels 'middle' is not known: choose 'first', 'last' or 'none'"),
        ({"targets": ["cat", "dog", "eel"]}, DataError, "expected an array of numbers, got type <U3"),
        ({"ids": [1, 2, 3]}, DataError, r"ids must be text, got 1: use str\(\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ArraySource(np.zeros((3, 1)), **options)


BASE = {
    "inputs": np.arange(6.0).reshape(3, 2),
    "targets": [0, 1, 2],
    "ids": ["a", "b", "c"],
    "metadata": {"m": [1, 2, 3]},
}


def test_equal_sources_have_equal_fingerprints():
    copied = {**BASE, "inputs": np.asfortranarray(BASE["inputs"].copy())}
    assert ArraySource(**BASE).fingerprint() == ArraySource(**copied).fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": np.arange(6.0).reshape(3, 2) + 1e-12},
        {"inputs": np.arange(6.0, dtype=np.float32).reshape(3, 2)},
        {"inputs": np.arange(6.0).reshape(3, 2, 1)},
        {"targets": [0, 1, 1]},
        {"targets": None},
        {"ids": ["a", "b", "d"]},
        {"ids": ["a", "c", "b"]},
        {"metadata": {"m": [1, 2, 4]}},
        {"metadata": {"n": [1, 2, 3]}},
        {"metadata": {"m": np.array(["x", None, "z"], dtype=object)}},
        {"channels": "none"},
    ],
)
def test_any_change_is_another_fingerprint(change):
    assert ArraySource(**{**BASE, **change}).fingerprint() != ArraySource(**BASE).fingerprint()


def test_words_of_any_kind_are_fingerprinted_by_what_they_say():
    def words(*values):
        column = np.array([*values], dtype=object)
        return ArraySource(np.zeros((3, 1)), metadata={"m": column}).fingerprint()

    assert words("one", "two", None) == words("on" + "e", "".join(["t", "wo"]), None)
    assert words("one", "two", None) != words("one", "two", "x")


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("dog/2.png", "cat/b.png", "cat/a.png", "cat/deep/c.png", "eel/x.PNG"):
        save(tmp_path / name, rng.integers(0, 256, (4, 6, 3), dtype=np.uint8))
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    return tmp_path


def test_a_folder_per_class(folder):
    source = ImageFolder(folder)
    assert source.ids == ("cat/a.png", "cat/b.png", "cat/deep/c.png", "dog/2.png", "eel/x.PNG")
    assert source.classes == ("cat", "dog", "eel")
    batch = source.read(np.array([4, 0]))
    assert batch.targets.tolist() == [2, 0]
    assert batch.inputs.shape == (2, 3, 4, 6)
    expected = np.asarray(Image.open(folder / "eel/x.PNG")).transpose(2, 0, 1).astype(np.float32) / 255
    assert np.array_equal(batch.inputs[0].numpy(), expected)


def test_the_order_of_classes_may_be_given(folder):
    source = ImageFolder(folder, classes=["eel", "unused", "dog", "cat"])
    assert whole(source).targets.tolist() == [3, 3, 3, 2, 0]


def test_a_class_that_is_not_known_is_named(folder):
    with pytest.raises(
        DataError, match=r"eel/x.PNG is in no folder of a known class: expected one of cat, dog; move it"
    ):
        ImageFolder(folder, classes=["cat", "dog"])


def test_a_stray_image_beside_the_class_folders_is_named(folder):
    save(folder / "stray.png", np.zeros((4, 6), dtype=np.uint8))
    with pytest.raises(DataError, match=r"stray.png is in no folder of a known class"):
        ImageFolder(folder)


def test_a_flat_folder_has_no_targets(tmp_path):
    save(tmp_path / "b.png", np.full((2, 2), 51, dtype=np.uint8))
    save(tmp_path / "a.png", np.zeros((2, 2), dtype=np.uint8))
    batch = whole(ImageFolder(tmp_path, classes=["cat"]))
    assert (batch.ids, batch.targets) == (("a.png", "b.png"), None)
    torch.testing.assert_close(batch.inputs[1], torch.full((3, 2, 2), 0.2))


def test_grey_and_colour(tmp_path):
    save(tmp_path / "a.png", np.full((2, 3), 102, dtype=np.uint8))
    save(tmp_path / "b.png", np.full((2, 3, 3), 102, dtype=np.uint8))
    for mode, channels in (("L", 1), ("RGB", 3)):
        inputs = whole(ImageFolder(tmp_path, mode=mode)).inputs
        assert inputs.shape == (2, channels, 2, 3)
        torch.testing.assert_close(inputs, torch.full_like(inputs, 0.4))


@pytest.mark.parametrize("positions", [[0, 1], [1], [1, 1]])
def test_sizes_that_differ_are_named_whatever_the_batch(tmp_path, positions):
    save(tmp_path / "a.png", np.zeros((4, 6), dtype=np.uint8))
    save(tmp_path / "b.png", np.zeros((5, 6), dtype=np.uint8))
    with pytest.raises(DataError, match=r"b.png is 5×6, a.png is 4×6: give size=\(height, width\) to resize them all"):
        ImageFolder(tmp_path).read(np.array(positions))
    assert whole(ImageFolder(tmp_path, size=(3, 2))).inputs.shape == (2, 3, 3, 2)


@pytest.mark.parametrize("damage", ["cut short", "no image", "empty"])
def test_a_broken_file_is_named(folder, damage):
    path = folder / "dog" / "2.png"
    content = path.read_bytes()
    path.write_bytes({"cut short": content[: len(content) // 2], "no image": b"text", "empty": b""}[damage])
    with pytest.raises(DataError, match=r"dog/2.png cannot be read as an image: .*; repair or remove it"):
        whole(ImageFolder(folder))


def test_folders_that_hold_nothing(tmp_path):
    with pytest.raises(DataError, match="is not a folder: give the folder that holds the images"):
        ImageFolder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"holds no images \(.bmp, .gif"):
        ImageFolder(tmp_path)


def test_image_fingerprints_know_content_names_and_options(folder, tmp_path_factory):
    before = ImageFolder(folder).fingerprint()
    assert ImageFolder(folder).fingerprint() == before
    assert ImageFolder(folder, mode="L").fingerprint() != before
    assert ImageFolder(folder, size=(2, 2)).fingerprint() != before
    assert ImageFolder(folder, classes=["dog", "cat", "eel"]).fingerprint() != before
    moved = tmp_path_factory.mktemp("moved") / "other"
    folder.rename(moved)
    assert ImageFolder(moved).fingerprint() == before
    (moved / "cat/a.png").rename(moved / "cat/aa.png")
    renamed = ImageFolder(moved).fingerprint()
    save(moved / "cat/aa.png", np.zeros((4, 6, 3), dtype=np.uint8))
    assert len({before, renamed, ImageFolder(moved).fingerprint()}) == 3


def test_a_subset_reads_the_right_samples():
    source = ArraySource(np.arange(10.0)[:, None], np.arange(10))
    subset = Subset(source, [8, 3, 5])
    assert subset.ids == ("8", "3", "5")
    batch = subset.read(np.array([2, 0]))
    assert (batch.ids, batch.positions.tolist(), batch.targets.tolist()) == (("5", "8"), [2, 0], [5, 8])
    assert subset.fingerprint() != Subset(source, [8, 5, 3]).fingerprint() != source.fingerprint()


def test_a_limit_is_a_fixed_random_choice_in_order():
    source = ArraySource(np.zeros((100, 1)))
    few = limited(source, 10)
    assert len(few.ids) == 10
    assert list(few.ids) == sorted(few.ids)
    assert few.ids == limited(source, 10).ids
    assert few.ids != limited(source, 10, seed=1).ids
    assert few.ids != source.ids[:10]
    assert limited(source, 100) is limited(source, None) is source


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_that_leaves_nothing_is_refused(limit):
    with pytest.raises(DataError, match=f"a limit of {limit} leaves no sample: give 1 or more"):
        limited(ArraySource(np.zeros((5, 1))), limit)


def test_ids_are_checked():
    check_ids(ArraySource(np.zeros((2, 1))))
    with pytest.raises(DataError, match="two samples have the id 'b'"):
        check_ids(ArraySource(np.zeros((4, 1)), ids=[*"abcb"]))


class Slow(ArraySource):
    """Takes the longer, the earlier the samples; notes who reads."""

    threads: set

    def read(self, positions):
        time.sleep(0.002 * (20 - positions[0]))
        self.threads.add(threading.current_thread().name)
        if positions[0] == self.fails:
            raise DataError(f"sample {positions[0]} is broken")
        return super().read(positions)


@pytest.fixture
def slow():
    made = Slow(np.arange(20.0)[:, None])
    made.threads, made.fails = set(), None
    return made


PIECES = [np.arange(i, i + 4) for i in range(0, 20, 4)]


@pytest.mark.parametrize("workers", [0, 1, 3, 10])
def test_batches_come_in_order_however_many_read(slow, workers):
    found = [int(i) for batch in read_ahead(slow.read, PIECES, workers) for i in batch.ids]
    assert found == list(range(20))
    assert all(name.startswith("weakspot-read") == (workers > 0) for name in slow.threads)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_while_reading_comes_at_its_place(slow, workers):
    slow.fails, seen = 8, []
    with pytest.raises(DataError, match="sample 8 is broken"):
        for batch in read_ahead(slow.read, PIECES, workers):
            seen.append(batch.ids[0])
    assert seen == ["00", "04"]


def test_readers_stop_when_nobody_wants_more(slow):
    batches = read_ahead(slow.read, PIECES, 2)
    next(batches)
    assert reading_threads()
    batches.close()
    assert not reading_threads()


def test_no_more_is_read_ahead_than_there_are_readers(slow):
    batches = read_ahead(slow.read, PIECES, 1)
    first = next(batches)
    assert first.ids[0] == "00"
    batches.close()
    assert len(list(read_ahead(slow.read, [], 2))) == 0


def test_a_subset_by_ids():
    source = ArraySource(np.arange(4.0)[:, None], ids=list("abcd"))
    chosen = Subset.named(source, ["d", "b"])
    assert chosen.ids == ("b", "d")
    assert chosen.read(np.arange(2)).inputs.flatten().tolist() == [1.0, 3.0]
    with pytest.raises(DataError, match=r"no sample 'x' \(1 of 2 ids are not there\)"):
        Subset.named(source, ["a", "x"])
