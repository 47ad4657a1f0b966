"""Images in folders, one per class: on disk, or in a zip archive."""

import hashlib
import os
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.guarded_open import check_plain
from weakspot.core.source import Turn
from weakspot.data.framing import Framing, Size
from weakspot.data.image_source import MOST_BYTES, ImageSource, read_file
from weakspot.data.images import SUFFIXES, Mode
from weakspot.data.links import check_link
from weakspot.data.names import listed, readable, shown, unique_ids

_BLOCK = 1 << 20


class ImageFolder(ImageSource):
    """Images in one folder per class, `folder/class/image.png`, or in one folder without targets.

    classes: names in the order of the model's outputs; by default the folders' names in alphabetical order.
    mode: "RGB" or "L" for grey.
    size: (height, width) to resize to, or a `Framing` to resize and crop; without it all images must be of one size.
    follow_links: whether links may lead out of the folder; those that stay in it are always followed.

    An image's id is its path below the folder. Hidden files are left out; `remarks` lists files that are not images.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        classes: Sequence[str] | None = None,
        mode: Mode = "RGB",
        size: Size | Framing | None = None,
        follow_links: bool = False,
    ):
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise DataError(f"{folder} is not a folder: give the folder that holds the images")
        try:
            files, folders = sorted(_files(folder, folder, follow_links)), _folders(folder)
        except OSError as error:
            raise DataError(f"cannot read the folder {error.filename}: {error.strerror}") from error
        self._names = _images(files, str(folder))
        _check_no_class_is_empty(self._names, folders, classes)
        class_names, targets = class_folders(self._names, classes)
        remarks = [*_left_out(files), *_without_images(class_names, targets)]
        super().__init__(
            unique_ids(self._names), classes=class_names, targets=targets, mode=mode, size=size, remarks=remarks
        )

    def content(self, position: int) -> bytes:
        """The bytes of one file."""
        return read_file(self._folder / self._names[position], self.ids[position])


class ImageZip(ImageSource):
    """Images in a zip archive, in one folder per class or in none; nothing is unpacked to disk.

    folder: where in the archive the class folders or images lie; by default at its top.
    classes, mode, size: as for `ImageFolder`.

    An image's id is its path below that folder. Hidden files, and names that lead out of the archive, are left out.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        folder: str = "",
        classes: Sequence[str] | None = None,
        mode: Mode = "RGB",
        size: Size | Framing | None = None,
    ):
        self._lock, self._path = Turn(), Path(path)
        self._archive = _opened(self._path)
        within = f"{folder.strip('/')}/" if folder.strip("/") else ""
        files = sorted(name.removeprefix(within) for name in self._archive.namelist() if name.startswith(within))
        files = [name for name in files if _visible(name)]
        names = _images(files, f"{path}/{within}" if within else str(path))
        self._members = [self._archive.getinfo(within + name) for name in names]
        class_names, targets = class_folders(names, classes)
        remarks = [*_left_out(files), *_without_images(class_names, targets)]
        super().__init__(unique_ids(names), classes=class_names, targets=targets, mode=mode, size=size, remarks=remarks)

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens the archive again."""
        return {key: value for key, value in vars(self).items() if key != "_archive"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._archive = _opened(self._path)

    def content(self, position: int) -> bytes:
        """The bytes of one member; several threads may unpack at once."""
        return b"".join(self._blocks(position))

    def _content_digest(self, position: int) -> str:
        """Block by block: of all members at once, few bytes may unpack to more than the memory."""
        sha256 = hashlib.sha256()
        try:
            for block in self._blocks(position):
                sha256.update(block)
        except BadSample as error:  # reading will name it, or leave it out where that is asked for
            return str(error)
        return sha256.hexdigest()

    def _blocks(self, position: int) -> Iterator[bytes]:
        member, name = self._members[position], self.ids[position]
        try:
            if member.file_size > MOST_BYTES:
                raise ValueError(f"it unpacks to {member.file_size} bytes, more than {MOST_BYTES}")
            with self._lock:
                opened = self._archive.open(member)
            try:
                while block := opened.read(_BLOCK):
                    yield block
            finally:
                with self._lock:
                    opened.close()
        except Exception as error:  # as below
            raise BadSample(name, f"{shown(name)} cannot be unpacked: {error}; repair the archive") from error


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        check_plain(path)
        return zipfile.ZipFile(path)
    except Exception as error:  # zipfile raises many kinds for broken archives
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path} as a zip archive: {reason}") from error


def class_folders(
    names: Sequence[str], classes: Sequence[str] | None
) -> tuple[tuple[str, ...] | None, np.ndarray | None]:
    """Class names, and each file's class number by the first folder of its name; no numbers if none lies in a folder.

    >>> class_folders(["dog/1.png", "cat/2.png"], None)
    (('cat', 'dog'), array([1, 0]))
    """
    named = None if classes is None else _distinct(classes)
    labels = [readable(name.partition("/")[0]) if "/" in name else None for name in names]
    if all(label is None for label in labels):
        return named, None
    all_classes = named or tuple(sorted({label for label in labels if label is not None}))
    if named is None and len(all_classes) == 1 and all(name.count("/") > 1 for name in names):
        raise DataError(
            f"all images lie in {shown(all_classes[0])}, in further folders: give that folder, or name the classes if "
            f"{shown(all_classes[0])} is one"
        )
    number = {name: index for index, name in enumerate(all_classes)}
    for name, label in zip(names, labels, strict=True):
        if label not in number:
            raise DataError(
                f"{shown(name)} is in no folder of a known class: expected one of {listed(all_classes)}; move it, or "
                "add the class"
            )
    return all_classes, np.array([number[label] for label in labels if label is not None], dtype=np.int64)


def _distinct(classes: Sequence[str]) -> tuple[str, ...]:
    twice = next((name for name, times in Counter(classes).items() if times > 1), None)
    if twice is not None:
        raise ConfigError(f"the class {twice!r} is named twice: name each class once")
    return tuple(classes)


def _files(
    folder: str | Path, root: str | Path, follow: bool, prefix: str = "", above: tuple[str, ...] = ()
) -> Iterator[str]:
    """The names of all visible files below a folder, links within `root` followed; one to a folder further up is not.

    What is neither file nor folder, and a link to nowhere, are among them: reading names them.
    """
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                check_link(entry.path, root, follow=follow)
            if entry.is_dir():
                yield from _files(entry.path, root, follow, f"{prefix}{entry.name}/", (*above, real))
            else:
                yield prefix + entry.name


def _folders(folder: str | Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _visible(name: str) -> bool:
    """Not hidden, no Macintosh extras, and not leading out of the archive."""
    parts = name.split("/")
    return parts[0] != "__MACOSX" and not any(part.startswith(".") or not part for part in parts)


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122 - a path object per file takes seconds


def _images(files: Sequence[str], where: str) -> list[str]:
    names = [name for name in files if _is_image(name)]
    if not names:
        raise DataError(f"{where} holds no images ({', '.join(sorted(SUFFIXES))})")
    return names


def _check_no_class_is_empty(names: Sequence[str], folders: Sequence[str], classes: Sequence[str] | None) -> None:
    if classes is None and any("/" in name for name in names):
        used = {name.partition("/")[0] for name in names}
        empty = [folder for folder in folders if folder not in used]
        if empty:
            raise DataError(
                f"no images are in {listed(empty)}: is it a class? Name the classes in the order of the model's "
                "outputs, or remove it"
            )


def _left_out(files: Sequence[str]) -> list[str]:
    others = [name for name in files if not _is_image(name)]
    return [f"{len(others)} files that are no images are left out: {listed(others)}"] if others else []


def _without_images(classes: Sequence[str] | None, targets: np.ndarray | None) -> list[str]:
    if classes is None or targets is None:
        return []
    empty = [classes[number] for number in np.setdiff1d(np.arange(len(classes)), targets)]
    return [f"{len(empty)} of {len(classes)} classes have no image: {listed(empty)}"] if empty else []
