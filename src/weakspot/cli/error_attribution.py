"""Separates errors in the user's own code, reported with file and line, from defects of weakspot."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from weakspot.core.errors import ConfigError, RunError, SubjectError, WeakspotError
from weakspot.core.user_code import error_frames, is_user_code

_HERE = Path(__file__).resolve().parent.parent
_TYPER = Path(typer.__file__).parent
_SUBJECT = _HERE / "core" / "subject.py"
_LONGEST = 300
_OF_MODELS = ("torch", "sklearn", "safetensors")
"""What an installation lacks that only reads Runs."""


def user_error(error: Exception) -> WeakspotError | None:
    """The message for the user where an exception is not weakspot's fault; None where it is a defect of weakspot."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return ConfigError(f"there is not enough memory: {_first_line(error)}; ask for less at once")
    frames = error_frames(error)
    theirs = [frame for frame in frames if is_user_code(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename and is_user_code(error.filename):
        return ConfigError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}")
    if theirs:
        location = f"{theirs[-1].filename}:{theirs[-1].lineno}, in {theirs[-1].name}"
        return SubjectError(f"your own code failed at {location}: {_described(error)}{_notes(error)}")
    if any(Path(frame.filename) == _SUBJECT for frame in frames):
        return SubjectError(
            f"the model cannot take these inputs: {_described(error)}; "
            + (_notes(error).removeprefix("\n") or "check the samples' shape, preprocess and output")
        )
    if any("importlib" in frame.filename for frame in frames) and not _is_weakspots(frames[-1].filename):
        return ConfigError(
            f"a library cannot be loaded: {_described(error)}, in {frames[-1].filename}; install it again"
        )
    if isinstance(error, ModuleNotFoundError) and error.name in _OF_MODELS:
        return ConfigError(
            f"this command needs {error.name}, which is not installed: pip install weakspot; without it Runs can be "
            "read: show, report, view, compare, gate, evidence"
        )
    if isinstance(error, ImportError):
        return ConfigError(f"a library cannot be loaded: {_described(error)}; install it again")
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        named = "" if error.filename is None else f" {error.filename}"
        return ConfigError(f"cannot use{named or ' a file or connection'}: {error.strerror or _described(error)}")
    return None


@contextmanager
def reading(*runs: Path | None) -> Iterator[None]:
    """Report what a forged or changed Run leads to as an error of that Run."""
    try:
        yield
    except (WeakspotError, MemoryError, OSError):
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # of typer, about options
            raise
        named = " and ".join(str(run) for run in runs if run is not None)
        raise RunError(
            f"{named} cannot be read: {_described(error)}; examine again; if weakspot itself wrote these files, please "
            "report a defect (weakspot --traceback … shows where)"
        ) from error


def ended_early(error: SystemExit) -> WeakspotError | None:
    """The message where other code than weakspot's called `sys.exit`; None where weakspot did."""
    frames = error_frames(error)
    if frames and (_is_weakspots(frames[-1].filename) or Path(frames[-1].filename).is_relative_to(_TYPER)):
        return None  # typer ends the program when it has completed a word in the shell
    theirs = [frame for frame in frames if is_user_code(frame.filename)] or frames
    location = f" at {theirs[-1].filename}:{theirs[-1].lineno}, in {theirs[-1].name}" if theirs else ""
    return SubjectError(
        f"your own code ended the program{location}: sys.exit({error.code!r}); remove that call; the "
        "examination did not finish"
    )


def _is_weakspots(filename: str) -> bool:
    return Path(filename).is_relative_to(_HERE)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {_first_line(error)}"


def _notes(error: BaseException) -> str:
    """The advice that was noted on an error on its way, a line each; a worker's traceback is longer, and is left out."""
    return "".join(f"\n{note}" for note in getattr(error, "__notes__", ()) if "\n" not in note)


def _first_line(error: BaseException) -> str:
    line = str(error).strip().partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
