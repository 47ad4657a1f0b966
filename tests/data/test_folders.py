"""Image folders and zip archives: classes, odd names, what is left out, damage, and many threads."""

import os
import tempfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.data.files import COLOUR, EIGHT_BITS, plain, saved
from weakspot.core.errors import BadSample, ConfigError, DataError, WeakspotError
from weakspot.core.source import check_ids
from weakspot.data import folders
from weakspot.data.sources import ImageFolder, ImageZip

PNG = EIGHT_BITS["a.png"]
PICTURES = {
    name: saved(Image.fromarray(np.full((4, 6, 3), value, dtype=np.uint8)), "PNG")
    for value, name in enumerate(["cat/a.png", "cat/deep/b.png", "dog/c.png", "eel/d.PNG"], start=10)
}


def filled(folder, contents):
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def zipped(path, contents, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def whole(source):
    return source.read(np.arange(len(source.ids)))


@pytest.fixture(params=["folder", "zip"])
def held(request, tmp_path):
    """The same files in a folder or in an archive."""

    def make(contents, **options):
        if request.param == "folder":
            return ImageFolder(filled(tmp_path / "in", contents), **options)
        return ImageZip(zipped(tmp_path / "in.zip", contents), **options)

    return make


def test_folder_and_archive_are_alike(tmp_path):
    one, other = ImageFolder(filled(tmp_path / "f", PICTURES)), ImageZip(zipped(tmp_path / "z.zip", PICTURES))
    assert one.ids == other.ids == ("cat/a.png", "cat/deep/b.png", "dog/c.png", "eel/d.PNG")
    assert one.classes == other.classes == ("cat", "dog", "eel")
    assert torch.equal(whole(one).inputs, whole(other).inputs)
    assert whole(one).targets.tolist() == whole(other).targets.tolist() == [0, 0, 1, 2]
    assert one.fingerprint() == other.fingerprint()
    np.testing.assert_allclose(whole(other).inputs[:, 0, 0, 0] * 255, [10, 11, 12, 13], rtol=1e-6)


def test_hidden_files_are_skipped_and_others_told_of(held):
    extra = {".git/x.png": b"", "cat/.x.png": b"", "cat/notes.txt": b"", "readme.md": b""}
    source = held({**PICTURES, **extra})
    assert len(source.ids) == 4
    assert source.remarks == ("2 files that are no images are left out: cat/notes.txt, readme.md",)


def test_classes_without_images_are_told_of(held):
    source = held(PICTURES, classes=["eel", "owl", "cat", "dog", "ape"])
    assert whole(source).targets.tolist() == [2, 2, 3, 0]
    assert source.remarks == ("2 of 5 classes have no image: owl, ape",)


def test_a_class_named_twice_is_refused(held):
    with pytest.raises(ConfigError, match="the class 'cat' is named twice"):
        held(PICTURES, classes=["cat", "dog", "cat", "eel"])


def test_an_empty_class_folder_is_refused_unless_the_order_is_known(tmp_path):
    folder = filled(tmp_path, PICTURES)
    (folder / "ape").mkdir()
    with pytest.raises(DataError, match="no images are in ape: is it a class"):
        ImageFolder(folder)
    assert whole(ImageFolder(folder, classes=["ape", "cat", "dog", "eel"])).targets.tolist() == [1, 1, 2, 3]


def test_one_folder_too_high_is_noticed(held):
    inside = {f"test/{name}": content for name, content in PICTURES.items()}
    with pytest.raises(DataError, match="all images lie in test, in further folders: give that folder"):
        held(inside)
    assert held(inside, classes=["test"]).classes == ("test",)


def test_a_folder_within_an_archive(tmp_path):
    both = {f"{split}/{name}": content for split in ("train", "test") for name, content in PICTURES.items()}
    path = zipped(tmp_path / "x.zip", both)
    assert ImageZip(path, folder="test").ids == ImageZip(path, folder="train/").ids == tuple(PICTURES)
    with pytest.raises(DataError, match=r"x.zip/valid/ holds no images"):
        ImageZip(path, folder="valid")


def test_names_that_lead_out_of_an_archive_do_nothing(tmp_path):
    bad = ["../evil.png", "/etc/evil.png", "cat/../../evil.png", "cat//evil.png", "__MACOSX/cat/a.png"]
    source = ImageZip(zipped(tmp_path / "x.zip", {**PICTURES, **dict.fromkeys(bad, PNG)}))
    assert source.ids == tuple(PICTURES)
    whole(source)
    assert [path.name for path in tmp_path.rglob("*")] == ["x.zip"]


ODD = [
    "<b>&\"'.png",
    "two\nlines.png",
    "back\\slash.png",
    "ümläut.png",
    "a;b,c.png",
    " .png",
    "%s{0}.png",
    "$(x)`y`.png",
]


def test_odd_names_are_ids_like_any_other(held):
    source = held({f"cat/{name}": PNG for name in ODD})
    assert set(source.ids) == {f"cat/{name}" for name in ODD}
    check_ids(source)
    assert len(whole(source).ids) == len(ODD)


def test_names_that_are_no_text_become_text(tmp_path):
    name = os.fsdecode(b"caf\xe9/\xff\n.png")
    filled(tmp_path, {name: PNG})
    source = ImageFolder(tmp_path)
    assert (source.ids, source.classes) == (("caf\\xe9/\\xff\n.png",), ("caf\\xe9",))
    check_ids(source)
    assert np.array_equal(whole(source).inputs[0].numpy(), plain(PNG, "RGB"))


def test_links_are_followed_and_circles_are_not(tmp_path):
    elsewhere = filled(tmp_path / "elsewhere", {"a.png": PNG})
    folder = filled(tmp_path / "data", {"cat/x.png": PNG})
    (folder / "dog").symlink_to(elsewhere)
    (folder / "cat" / "loop").symlink_to(folder)
    with pytest.raises(DataError, match=r"data/dog is a link that leads out of the data, to .*elsewhere: copy"):
        ImageFolder(folder)
    assert ImageFolder(folder, follow_links=True).ids == ("cat/x.png", "dog/a.png")


def test_links_within_the_folder_are_followed(tmp_path):
    folder = filled(tmp_path / "data", {"cat/x.png": PNG})
    (folder / "dog").symlink_to(folder / "cat")
    (folder / "cat" / "y.png").symlink_to("x.png")
    (tmp_path / "link").symlink_to(folder)
    assert ImageFolder(tmp_path / "link").ids == ("cat/x.png", "cat/y.png", "dog/x.png", "dog/y.png")
    (folder / "cat" / "z.png").symlink_to(filled(tmp_path / "elsewhere", {"a.png": PNG}) / "a.png")
    with pytest.raises(DataError, match=r"/z.png is a link that leads out"):
        ImageFolder(tmp_path / "link")


@pytest.mark.timeout(60)
def test_what_is_no_plain_file_is_named_and_not_waited_for(tmp_path):
    folder = filled(tmp_path, PICTURES)
    os.mkfifo(folder / "cat" / "fifo.png")
    (folder / "cat" / "lost.png").symlink_to("nowhere.png")
    source = ImageFolder(folder)
    assert {"cat/fifo.png", "cat/lost.png"} <= set(source.ids)
    assert len(source.fingerprint()) == 64
    for name, reason in (("cat/fifo.png", "it is a FIFO, expected a plain file"), ("cat/lost.png", "No such file")):
        with pytest.raises(BadSample, match=f"{name} cannot be read: {reason}"):
            source.read(np.array([source.ids.index(name)]))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(tmp_path):
    folder = filled(tmp_path, PICTURES)
    (folder / "cat").chmod(0)
    with pytest.raises(DataError, match=r"cannot read the folder .*cat"):
        ImageFolder(folder)


def test_a_file_that_vanishes_is_named_and_does_not_stop_the_fingerprint(tmp_path):
    folder = filled(tmp_path, PICTURES)
    source = ImageFolder(folder)
    (folder / "dog/c.png").unlink()
    with pytest.raises(BadSample, match=r"dog/c.png cannot be read: No such file or directory; restore or remove it"):
        whole(source)
    assert source.fingerprint() != ImageFolder(filled(tmp_path, PICTURES)).fingerprint()


def test_bad_samples_carry_their_id_and_do_not_spoil_the_others(held):
    source = held({**PICTURES, "cat/A.png": b"broken"})
    assert source.ids[0] == "cat/A.png"
    with pytest.raises(BadSample) as told:
        source.read(np.array([1, 0, 2]))
    assert told.value.sample == "cat/A.png"
    assert source.read(np.array([1, 2, 3, 4])).targets.tolist() == [0, 0, 1, 2]


def test_where_nothing_can_be_read_each_is_named(held):
    source = held(dict.fromkeys(PICTURES, b"broken"))
    for place, name in enumerate(source.ids):
        with pytest.raises(BadSample, match=f"{name} cannot be read"):
            source.read(np.array([place]))


def test_another_size_is_refused_by_name_whatever_is_read_first(held):
    source = held({**PICTURES, "dog/z.png": PNG})
    with pytest.raises(BadSample, match=r"dog/z.png is 9×13, cat/a.png is 4×6: give size=\(height, width\)") as told:
        source.read(np.array([3]))
    assert told.value.sample == "dog/z.png"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "CMYK"}, "mode 'CMYK' is not known"),
        ({"size": (0, 3)}, r"size \(0, 3\) is not a size"),
        ({"size": (3,)}, "is not a size"),
        ({"size": (3.5, 2)}, "is not a size"),
    ],
)
def test_options_that_make_no_sense(held, options, message):
    with pytest.raises(ConfigError, match=message):
        held(PICTURES, **options)


def test_an_archive_that_is_none(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK nonsense")
    with pytest.raises(DataError, match=r"cannot read .*x.zip as a zip archive"):
        ImageZip(tmp_path / "x.zip")
    with pytest.raises(DataError, match="cannot read"):
        ImageZip(tmp_path / "nowhere.zip")


def test_a_member_twice_in_an_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("cat/a.png", PNG)
        archive.writestr("cat/a.png", EIGHT_BITS["grey.png"])
    with pytest.raises(DataError, match=r"two samples have the id 'cat/a.png'"):
        ImageZip(tmp_path / "x.zip")


def test_an_encrypted_member_is_named(tmp_path):
    content = bytearray(zipped(tmp_path / "x.zip", PICTURES).read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 8] |= 1
    content[6] |= 1
    (tmp_path / "x.zip").write_bytes(bytes(content))
    with pytest.raises(BadSample, match=r"cat/a.png cannot be unpacked: .*encrypted"):
        whole(ImageZip(tmp_path / "x.zip"))


def test_a_member_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "MOST_BYTES", 1000)
    source = ImageZip(zipped(tmp_path / "x.zip", {"a.png": PNG, "b.png": b"\0" * 100_000}))
    with pytest.raises(BadSample, match=r"b.png cannot be unpacked: it unpacks to 100000 bytes, more than 1000"):
        whole(source)


ARCHIVE = {f"cat/{number}.png": saved(COLOUR.rotate(number), "PNG") for number in range(5)}


@settings(max_examples=150, deadline=None)
@given(
    compression=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]),
    keep=st.one_of(st.just(1.0), st.floats(0, 1)),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=3),
)
def test_damaged_archives_are_refused_or_read_right(compression, keep, changes):
    with tempfile.TemporaryDirectory() as folder:
        refused_or_right(zipped(Path(folder) / "x.zip", ARCHIVE, compression), keep, changes)


def refused_or_right(path, keep, changes):
    content = bytearray(path.read_bytes())
    for place, value in changes:
        content[int(place * len(content))] = value
    path.write_bytes(bytes(content[: round(keep * len(content))]))
    try:
        source = ImageZip(path, classes=["cat"])
    except WeakspotError:
        return
    for place, name in enumerate(source.ids):
        try:
            batch = source.read(np.array([place]))
        except BadSample as error:
            assert error.sample == name
            continue
        if name in ARCHIVE:  # the name itself may be what was changed
            assert np.array_equal(batch.inputs[0].numpy(), plain(ARCHIVE[name], "RGB"))


def test_many_threads_read_one_archive(tmp_path):
    source = ImageZip(zipped(tmp_path / "x.zip", ARCHIVE))
    expected, wrong = whole(source).inputs, []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            places = rng.integers(0, 5, 3)
            if not torch.equal(source.read(places).inputs, expected[places]):
                wrong.append(places)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(whole(source)) == 5
