"""Whether a file belongs to the user, to weakspot, to Python or to an installed package."""

import os
import sys
import sysconfig
import traceback
from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent
_NOT_THEIRS = (str(_HERE), *(str(Path(folder).resolve()) for folder in set(sysconfig.get_paths().values())))
_ELSEWHERE = "_weakspot_frames"


def is_user_code(file: str) -> bool:
    """Whether a file is none of weakspot's, of Python's and of an installed package."""
    path = str(Path(file).resolve()) if not file.startswith("<") else ""
    installed = any(path.startswith(f"{folder}{os.sep}") for folder in _NOT_THEIRS)
    return bool(path) and not installed and not any(part in path for part in ("site-packages", "dist-packages"))


def is_users_module(name: str) -> bool:
    """Whether a module is none of weakspot's, of Python's and of an installed package.

    One that is not loaded is: its code came from another process, and only the user's own is sent.
    """
    top = name.partition(".")[0]
    if name == "__main__":
        return True
    if top == "weakspot" or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return not file or _is_users(file)


@cache
def _is_users(file: str) -> bool:
    return is_user_code(file)


def error_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Where an error came about, the innermost place last: in the process where it was first raised."""
    return list(getattr(error, _ELSEWHERE, None) or traceback.extract_tb(error.__traceback__))


def with_frames(error: BaseException, frames: list[traceback.FrameSummary]) -> None:
    """Note on an error from another process where it came about there."""
    setattr(error, _ELSEWHERE, frames)
