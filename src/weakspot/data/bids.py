"""Which files belong to a case in a BIDS data set: images of a subject's session, and masks, also among derivatives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.data.names import listed, readable

_NAME = re.compile(
    r"(?P<case>sub-[A-Za-z0-9]+(?:_ses-[A-Za-z0-9]+)?)(?:_(?P<entities>.+))?_(?P<suffix>[A-Za-z0-9]+)\.nii(?:\.gz)?"
)
_MASKS = ("mask", "dseg", "roi")
"""Suffixes of segmentations."""
_NOT_LESIONS = ("brain", "head", "skull")
"""In the entities of masks that say where the head is."""
_FOLDERS = ("anat", "ct", "pet", "perf", "dwi", "swi")


@dataclass(frozen=True)
class BidsLayout:
    """The files of a data set.

    files: of each case, such as "sub-01" or "sub-01_ses-02", by the number of the sequence.
    masks: of each case that has one; None where no case has.
    names: of the sequences, by their number: what follows subject and session in the file names, such as "FLAIR".
    """

    files: dict[str, dict[int, Path]]
    masks: dict[str, Path] | None
    names: tuple[str, ...]


@dataclass
class _Found:
    images: dict[str, dict[str, Path]] = field(default_factory=dict)
    masks: dict[str, list[Path]] = field(default_factory=dict)


def is_bids(folder: Path) -> bool:
    """Whether a folder holds subjects as BIDS names them: sub-LABEL/…/anat/sub-LABEL_…_SUFFIX.nii.gz."""
    return any(_NAME.fullmatch(path.name) for subject in _subjects(folder) for path in _volumes(subject))


def bids_layout(folder: Path) -> BidsLayout:
    """The cases of a BIDS data set; masks may lie beside the images or below `derivatives`."""
    found = _Found()
    for subject in _subjects(folder):
        _gather(subject, found, images=True)
    for derivative in sorted((folder / "derivatives").glob("*/")):
        for subject in _subjects(derivative):
            _gather(subject, found, images=False)
    if not found.images:
        raise DataError(f"{folder} holds masks and no images: expected files such as sub-01/anat/sub-01_FLAIR.nii.gz")
    names = tuple(sorted({name for of_case in found.images.values() for name in of_case}))
    files = {case: {names.index(name): path for name, path in own.items()} for case, own in found.images.items()}
    masks = {case: _one_mask(case, paths) for case, paths in found.masks.items() if case in files}
    return BidsLayout(files, masks or None, names)


def _subjects(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("sub-*") if path.is_dir())


def _volumes(subject: Path) -> list[Path]:
    places = [
        subject,
        *(subject / name for name in _FOLDERS),
        *(s / name for s in subject.glob("ses-*") for name in _FOLDERS),
    ]
    return sorted(path for place in places if place.is_dir() for path in place.iterdir() if path.is_file())


def _gather(subject: Path, found: _Found, *, images: bool) -> None:
    for path in _volumes(subject):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        case, entities = readable(match["case"]), match["entities"] or ""
        if match["suffix"] in _MASKS:
            if not any(word in entities.lower() for word in _NOT_LESIONS):
                found.masks.setdefault(case, []).append(path)
        elif images:
            name = "_".join(filter(None, (entities, match["suffix"])))
            found.images.setdefault(case, {}).setdefault(name, path)


def _one_mask(case: str, paths: Sequence[Path]) -> Path:
    """The mask of a case: the one that says that it is of lesions, or the only one."""
    said = [path for path in paths if "lesion" in path.name.lower()]
    chosen = said or list(paths)
    if len(chosen) > 1:
        raise DataError(
            f"case {case} has several masks, {listed([path.name for path in chosen])}: leave that of the lesions, or "
            "name it with desc-lesion"
        )
    return chosen[0]


def named_sequences(names: Sequence[str], chosen: Sequence[int]) -> str:
    """What the numbers of the sequences mean, for people."""
    some = ", ".join(f"{number} {names[number]}" for number in chosen)
    left = [name for number, name in enumerate(names) if number not in chosen]
    return f"sequences {some}" + (
        f"; left out, since not every case has them or by choice: {listed(left)}" if left else ""
    )
