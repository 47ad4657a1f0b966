"""Whose fault an exception is: an error in the user's own code is told with its place, without a trace-back."""

from pathlib import Path

from weakspot.core.errors import ConfigError, SubjectError, WeakspotError
from weakspot.core.whose import frames_of, is_users

_HERE = Path(__file__).resolve().parent.parent
_SUBJECT = _HERE / "core" / "subject.py"
_LONGEST = 300


def users_error(error: Exception) -> WeakspotError | None:
    """What to tell the user of an exception that is none of weakspot's own; None where it is a defect of weakspot."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return ConfigError(f"there is not enough memory: {_first_line(error)}; ask for less at once")
    frames = frames_of(error)
    theirs = [frame for frame in frames if is_users(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename and is_users(error.filename):
        return ConfigError(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}")
    if theirs:
        place = f"{theirs[-1].filename}:{theirs[-1].lineno}, in {theirs[-1].name}"
        return SubjectError(f"your own code failed at {place}: {type(error).__name__}: {_first_line(error)}")
    if any(Path(frame.filename) == _SUBJECT for frame in frames):
        return SubjectError(
            f"the model cannot take these inputs: {type(error).__name__}: {_first_line(error)}; check the shape of the "
            "samples, preprocess and output"
        )
    return None


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
