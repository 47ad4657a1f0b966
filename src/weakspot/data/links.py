"""Links in a folder of data: one that leads out of it would bring files into a Run that were never meant for it."""

import os
from pathlib import Path

from weakspot.core.errors import DataError
from weakspot.data.names import shown


def check_link(path: str | Path, *roots: str | Path, follow: bool) -> None:
    """Refuse a link that leads out of all these folders, unless such links are to be followed."""
    if follow or not os.path.islink(path):  # noqa: PTH114 - a path object per file takes seconds
        return
    target = os.path.realpath(path)
    if not any(Path(target).is_relative_to(os.path.realpath(root)) for root in roots):
        raise DataError(
            f"{shown(str(path))} is a link that leads out of the data, to {shown(target)}: copy what it leads to, or "
            "allow such links with follow_links if you trust the data"
        )
