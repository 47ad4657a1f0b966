"""Whose a file is: the user's own, or one of weakspot's, of Python's or of an installed package."""

import os
import sysconfig
import traceback
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent
_NOT_THEIRS = (str(_HERE), *(str(Path(place).resolve()) for place in set(sysconfig.get_paths().values())))
_ELSEWHERE = "_weakspot_frames"


def is_users(file: str) -> bool:
    """Whether a file is none of weakspot's, of Python's and of an installed package."""
    path = str(Path(file).resolve()) if not file.startswith("<") else ""
    installed = any(path.startswith(f"{place}{os.sep}") for place in _NOT_THEIRS) or "site-packages" in path
    return bool(path) and not installed


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    """Where an error came about, the innermost place last: in the process where it was first raised."""
    return list(getattr(error, _ELSEWHERE, None) or traceback.extract_tb(error.__traceback__))


def with_frames(error: BaseException, frames: list[traceback.FrameSummary]) -> None:
    """Note on an error from another process where it came about there."""
    setattr(error, _ELSEWHERE, frames)
