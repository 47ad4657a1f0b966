"""Manifests: every kind of target, ids, metadata, and cells that cannot be right."""

import csv
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.files import EIGHT_BITS, plain
from weakspot.core.errors import BadSample, ConfigError, DataError, WeakspotError
from weakspot.data.sources import ImageManifest

PNG = EIGHT_BITS["a.png"]


def manifest(folder, header, *rows, name="list.csv", **options):
    with (folder / name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=options.get("delimiter", ",")).writerows([header, *rows])
    return ImageManifest(folder / name, **options)


@pytest.fixture
def images(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / "in" / name).write_bytes(PNG)
    return tmp_path


PATHS = [["in/a.png"], ["in/b.png"], ["in/c.png"]]


def rows(*cells):
    return [[*path, *(cell if isinstance(cell, list) else [cell])] for path, cell in zip(PATHS, cells, strict=True)]


def whole(source):
    return source.read(np.arange(len(source.ids)))


def test_images_and_their_ids(images):
    source = manifest(images, ["path", "target"], *rows("dog", "cat", "dog"))
    batch = whole(source)
    assert batch.ids == ("in/a.png", "in/b.png", "in/c.png")
    assert source.classes == ("cat", "dog")
    assert (batch.targets.tolist(), batch.targets.dtype, batch.metadata) == ([1, 0, 1], torch.int64, None)
    assert np.array_equal(batch.inputs[0].numpy(), plain(PNG, "RGB"))


@pytest.mark.parametrize(
    ("cells", "classes", "known", "numbers"),
    [
        (["2", "0", "2"], None, None, [2, 0, 2]),
        (["2.0", " 0 ", "+2"], None, None, [2, 0, 2]),
        (["2", "0", "1"], ["x", "y", "z"], ("x", "y", "z"), [2, 0, 1]),
        (["z", "x", "x"], ["x", "y", "z"], ("x", "y", "z"), [2, 0, 0]),
        (["9", "7", "8"], ["9", "8", "7"], ("9", "8", "7"), [0, 2, 1]),
        (["10", "2", "x"], ["10", "2", "x"], ("10", "2", "x"), [0, 1, 2]),
    ],
)
def test_classes_by_name_or_number(images, cells, classes, known, numbers):
    source = manifest(images, ["path", "target"], *rows(*cells), classes=classes)
    assert (source.classes, whole(source).targets.tolist()) == (known, numbers)


def test_labels_as_a_list_or_as_columns(images):
    listed = manifest(images, ["path", "target"], *rows("dog;cat", "", "dog ; eel"), task="multilabel")
    columns = ["path", "cat", "dog", "eel"]
    cells = rows(["1", "TRUE", "0"], ["0", "0", "false"], ["0", "1.0", "1"])
    spread = manifest(images, columns, *cells, task="multilabel", targets=["cat", "dog", "eel"])
    counted = manifest(images, ["path", "target_0", "target_1", "target_2"], *cells, task="multilabel")
    for source in (listed, spread, counted):
        assert whole(source).targets.tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert listed.classes == spread.classes == ("cat", "dog", "eel")
    other = manifest(images, ["path", "l"], *rows("b|a", "a", ""), task="multilabel", targets="l", separator="|")
    assert whole(other).targets.tolist() == [[1, 1], [1, 0], [0, 0]]


def test_numbers_and_points(images):
    angle = whole(manifest(images, ["path", "target"], *rows("1", "-2.5", "1e-3"), task="regression"))
    assert (angle.targets.dtype, angle.targets.shape) == (torch.float32, (3, 1))
    torch.testing.assert_close(angle.targets[:, 0], torch.tensor([1, -2.5, 1e-3]))
    header = ["path", "y_0", "x_1", "x_0", "y_1"]
    points = whole(manifest(images, header, *rows(*[["2", "3", "1", "4"]] * 3), task="keypoints"))
    assert points.targets.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 3


def test_a_list_without_targets(images):
    assert whole(manifest(images, ["path"], *PATHS)).targets is None


def test_other_columns_are_metadata_and_ids_may_be_given(images):
    cells = rows(["0", "x", "3", "007", "1.5"], ["1", "y", "4", "8", ""], ["0", "z", "5", "9", "2"])
    batch = whole(manifest(images, ["path", "target", "id", "age", "site", "dose"], *cells))
    assert batch.ids == ("x", "y", "z")
    assert batch.metadata["age"].tolist() == [3, 4, 5]
    assert batch.metadata["site"].tolist() == ["007", "8", "9"]
    np.testing.assert_array_equal(batch.metadata["dose"], [1.5, np.nan, 2])


def test_paths_start_at_the_file_or_where_it_is_said(images):
    absolute = [[str(images / path), "0"] for (path,) in PATHS]
    inside = manifest(images, ["path", "target"], *absolute)
    assert inside.ids == ("in/a.png", "in/b.png", "in/c.png")
    (images / "lists").mkdir()
    with pytest.raises(DataError, match=r"line 2: .* does not lie below .*give root, the folder that ids start from"):
        manifest(images, ["path", "target"], *absolute, name="lists/l.csv")
    elsewhere = manifest(images, ["path", "target"], *absolute, name="lists/l.csv", root=images)
    assert elsewhere.ids == inside.ids
    assert elsewhere.fingerprint() == inside.fingerprint()
    assert len(whole(manifest(images, ["path"], ["a.png"], name="lists/m.csv", root=images / "in"))) == 1


def test_another_delimiter_and_a_byte_order_mark(images):
    (images / "l.csv").write_text("\ufeffpath;target\r\nin/a.png;cat\r\n\r\nin/b.png;dog\r\n", encoding="utf-8")
    assert ImageManifest(images / "l.csv", delimiter=";").classes == ("cat", "dog")
    with pytest.raises(ConfigError, match=r"no column 'path'.*look separated by ';': give that as delimiter"):
        ImageManifest(images / "l.csv")


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        (
            ["1", "x", "2"],
            {},
            r"line 2: target '1' is a number, line 3: target 'x' is a name; write all as names or all as numbers",
        ),
        (["1", "-1", "2"], {}, "line 3: class number -1 is out of range: expected 0 or more"),
        (["1", "3", "2"], {"classes": [*"xyz"]}, "line 3: class number 3 is out of range: expected 0 to 2"),
        (["1", "0.5", "2"], {"classes": [*"xyz"]}, "line 3: class '0.5' is not known: expected one of x, y, z"),
        (["x", "w", "y"], {"classes": [*"xyz"]}, "line 3: class 'w' is not known: expected one of x, y, z"),
        (["x", "1", "y"], {"classes": [*"xyz"]}, "line 3: this target is a number, others are names"),
        (["x", "", "y"], {}, "line 3: the target is missing: expected a class; fill it in, or remove the row"),
        (["1", "nan", "2"], {"task": "regression"}, "line 3: target is 'nan': expected a finite number"),
        (["1", "1e60", "2"], {"task": "regression"}, "line 3: target is '1e60': expected a finite number"),
        (["1", "x", "2"], {"task": "regression"}, "line 3: target is 'x': expected a finite number"),
        (["x", "w", "y"], {"task": "multilabel", "classes": [*"xyz"]}, "line 3: label 'w' is not known"),
        (["", "", ""], {"task": "multilabel"}, "no sample has any label"),
        (
            ["1", "2", "1"],
            {"task": "multilabel", "targets": ["target"]},
            "line 3: label 'target' is '2': expected 0 or",
        ),
    ],
)
def test_cells_that_cannot_be_right_are_named(images, cells, options, message):
    with pytest.raises(DataError, match=message):
        manifest(images, ["path", "target"], *rows(*cells), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": "targt"}, "has no column 'targt' .for targets.: it has path, target; did you mean 'target'?"),
        ({"path_column": "file"}, "has no column 'file' .for path_column."),
        ({"id_column": "name"}, "has no column 'name' .for id_column."),
        ({"targets": ["target", "path"]}, "classification needs 1 target columns, got 2"),
        ({"task": "keypoints"}, "keypoints needs 2 target columns, got 1"),
        ({"task": "multilabel", "targets": ["target"], "classes": ["x", "y"]}, "multilabel needs 2 target columns"),
        ({"task": "segmentation"}, "a manifest has no targets for segmentation"),
    ],
)
def test_options_that_do_not_fit(images, options, message):
    with pytest.raises(ConfigError, match=message):
        manifest(images, ["path", "target"], *rows("0", "1", "0"), **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: expected a first line that names the columns"),
        (b"path,target\n", "lists no images"),
        (b"path,path\na,b\n", "has two columns named 'path'"),
        (b"path,target\nin/a.png\n", "line 2: 1 cells, the first line names 2 columns"),
        (b"path,target\nin/a.png,x,y\n", "line 2: 3 cells"),
        (b'path,target\n"in/a.png,x\n', "line 3: unexpected end of data; check the quotes|line 2: unexpected end"),
        (b"path,target\nin/\xff.png,x\n", "is not UTF-8 text .byte 15.: save it as CSV in UTF-8"),
        (b"path,target\nin/a.png,x\nin/a.png,y\n", "two samples have the id 'in/a.png' .*add a column `id`"),
        (
            b"path,target,id\nin/a.png,x,1\nin/b.png,y,1\n",
            "two samples have the id '1' .*name each once in column 'id'",
        ),
        (b"path,target\n,x\n", "line 2: the path is missing"),
        (b"path,target_0,target_2\nin/a.png,1,2\n", "but not target_1: count from 0"),
    ],
)
def test_files_that_cannot_be_right(images, content, message):
    (images / "l.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        ImageManifest(images / "l.csv")


@pytest.mark.parametrize("name", ["in/none.png", "in", "in/a.png/x", "in/\0.png", "x" * 5000])
def test_an_image_that_is_not_there_is_named_when_it_is_read(images, name):
    source = manifest(images, ["path", "target", "id"], ["in/a.png", "0", "fine"], [name, "0", "lost"])
    assert source.read(np.array([0])).ids == ("fine",)
    with pytest.raises(BadSample, match=r"lost cannot be read: .*; restore or remove it") as told:
        source.read(np.array([0, 1]))
    assert told.value.sample == "lost"
    source.fingerprint()


def test_fingerprints_know_targets_metadata_and_content(images):
    def made(*cells, header=("path", "target", "m")):
        return manifest(images, header, *rows(*cells)).fingerprint()

    before = made(["0", "x"], ["1", "y"], ["0", "z"])
    assert made(["0", "x"], ["1", "y"], ["0", "z"]) == before
    assert made(["0", "x"], ["0", "y"], ["0", "z"]) != before
    assert made(["0", "x"], ["1", "y"], ["0", "w"]) != before
    (images / "in" / "a.png").write_bytes(EIGHT_BITS["grey.png"])
    assert made(["0", "x"], ["1", "y"], ["0", "z"]) != before


CELL = st.one_of(
    st.sampled_from(["", "0", "1", "2", "-1", "1.5", "nan", "inf", "1e999", "cat", "dog;cat", ";", "00", "\0", "a\nb"]),
    st.text(max_size=6),
)


@settings(max_examples=250, deadline=None)
@given(
    cells=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=4),
    task=st.sampled_from(["classification", "multilabel", "regression", "keypoints"]),
    columns=st.sampled_from([["target", "m"], ["target_0", "target_1"], ["x_0", "y_0"], ["id", "target"]]),
    classes=st.sampled_from([None, ["cat", "dog"], ["0", "1", "2"]]),
)
def test_any_cells_are_refused_or_read_right(cells, task, columns, classes):
    with tempfile.TemporaryDirectory() as folder:
        refused_or_right(Path(folder), cells, task, columns, classes)


def refused_or_right(folder, cells, task, columns, classes):
    paths = [f"{number}.png" for number in range(len(cells))]
    for path in paths:
        (folder / path).write_bytes(PNG)
    table = [[path, *pair] for path, pair in zip(paths, cells, strict=True)]
    try:
        with (folder / "l.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["path", *columns], *table])
    except (UnicodeEncodeError, csv.Error):
        return  # no such file can be written
    try:
        batch = whole(ImageManifest(folder / "l.csv", task=task, classes=classes))
    except WeakspotError:
        return
    if batch.targets is None:
        return
    for target, pair in zip(batch.targets.tolist(), cells, strict=True):
        own = [cell.strip() for cell, name in zip(pair, columns, strict=True) if name not in ("id", "m")]
        if task == "classification":
            names = classes or sorted({cell.strip() for row in cells for cell in row[columns.index("target") :][:1]})
            named = own[0] in names and (classes is not None or not _whole(own[0]))
            assert target == (names.index(own[0]) if named else float(own[0]))
        elif task in ("regression", "keypoints"):
            assert np.allclose(target, [float(cell) for cell in own], rtol=1e-6)
        else:
            assert set(np.ravel(target).tolist()) <= {0, 1}


def _whole(text):
    try:
        return float(text) == int(float(text))
    except (ValueError, OverflowError):
        return False
