"""Folders with a digest of each file: damage by a disk or a power cut is noticed."""

import json
from collections.abc import Mapping
from pathlib import Path

from weakspot.core.digest import digest_file
from weakspot.core.errors import RunError
from weakspot.core.guarded_open import read_json

DIGESTS = "digests.json"


def seal(folder: Path) -> None:
    """Note the digest of every file in a folder that is complete."""
    digests = {path.name: digest_file(path) for path in sorted(folder.iterdir())}
    (folder / DIGESTS).write_text(json.dumps(digests), encoding="utf-8")


def damage(folder: Path) -> str | None:
    """What of a folder is not as it was sealed, in words; None where all is. Every byte is read."""
    if folder.is_symlink():
        return "it is a link"
    try:
        digests = read_json(folder / DIGESTS, links=False)
        if not isinstance(digests, dict):
            return f"{DIGESTS} is no mapping"
        differing = changed(folder, digests, besides=DIGESTS)
    except OSError as error:
        return f"{Path(error.filename).name if error.filename else folder.name}: {error.strerror or error}"
    except ValueError as error:
        return f"{DIGESTS}: {error}"
    return f"{', '.join(differing)}: not as written" if differing else None


def check_sealed(folder: Path, advice: str) -> None:
    """Refuse a folder that is not as it was sealed."""
    reason = damage(folder)
    if reason:
        raise RunError(f"{folder} is damaged: {reason}; {advice}")


def changed(folder: Path, digests: Mapping[str, object], *, besides: str) -> list[str]:
    """The files that are not there, not of these digests, or too many; `besides` is the one that holds the digests."""
    present = {path.name for path in folder.iterdir()} - {besides}
    both = present & digests.keys()
    return sorted({name for name in both if digest_file(folder / name) != digests[name]} | (present ^ digests.keys()))
