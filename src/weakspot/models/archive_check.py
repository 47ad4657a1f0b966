"""Whether a `torch.export` archive holds a plain graph and tensors, or something that would run code when it is loaded.

`torch.export.load` evaluates symbolic sizes as Python, looks operators up by any name below `torch`, and unpickles what
is not a tensor. So an archive is read here first, as the zip of JSON that it is, and only the plain is let through.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError

_PLAIN_MEMBERS = re.compile(
    r"(archive_format|archive_version|byteorder|\.data/[\w.]+|models/[\w.-]+\.json|extra/.*"
    r"|data/(weights|constants)/(model|[\w-]+)_(weights|constants)_config\.json|data/weights/weight_\d+"
    r"|data/constants/tensor_\d+|data/sample_inputs/[\w.-]+\.pt)"
)
_PLAIN_TARGETS = re.compile(
    r"torch\.ops\.[a-z]\w*\.\w*[a-z]\w*\.[A-Za-z]\w*|torch\.ops\.higher_order\.[a-z]\w*|torch\.sym_[a-z_]+|math\.[a-z]\w*"
    r"|_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|pow|neg|eq|ne|lt|le|gt|ge|and_|or_|not_)"
)
_PLAIN_WORDS = frozenset(
    "Symbol Integer Rational Float Add Mul Pow Mod Max Min Abs Eq Ne Lt Le Gt Ge And Or Not FloorDiv CleanDiv CeilDiv "
    "PythonMod TruncToInt IntTrueDiv FloatTrueDiv ToFloat RoundToInt floor ceiling positive nonnegative integer "
    "nonzero True False int_oo oo evaluate".split()
)
_WORD = re.compile(r"'[a-z]\w{0,20}'|[A-Za-z_]\w*")
_EXPRESSION = re.compile(r"[\w\s+\-*/%(),<>=&|~'.]*")


def check_archive(path: Path) -> None:
    """Refuse an archive that holds anything but a graph of torch's own operators, tensors and JSON."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.partition("/")[2]: name for name in archive.namelist()}
            _check_members(path, members)
            for member, name in members.items():
                if member.endswith(".json"):
                    _check_json(path, json.loads(archive.read(name)))
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ConfigError(f"{path} is no archive of torch.export.save: {error}") from error


def _check_members(path: Path, members: dict[str, str]) -> None:
    if "archive_format" not in members:
        raise ConfigError(f"{path} is no archive of torch.export.save, or one of an old torch: export the model again")
    for member in members:
        if not _PLAIN_MEMBERS.fullmatch(member):
            raise _refusal(path, f"it holds {member!r}")


def _check_json(path: Path, content: Any) -> None:
    for key, value in _entries(content):
        if key == "target" and not (isinstance(value, str) and _PLAIN_TARGETS.fullmatch(value)):
            raise _refusal(path, f"it calls {str(value)[:60]!r}")
        if key == "expr_str" and not (isinstance(value, str) and _plain_expression(value)):
            raise _refusal(path, f"it computes a size as {str(value)[:60]!r}")
        if key == "use_pickle" and value:
            raise _refusal(path, "it holds pickled values")


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _plain_expression(text: str) -> bool:
    """Arithmetic on named sizes, and nothing that could reach anything else.

    >>> _plain_expression("Add(Symbol('s77', positive=True, integer=True), Integer(1))"), _plain_expression("exit(1)")
    (True, False)
    """
    words = _WORD.findall(text)
    return bool(_EXPRESSION.fullmatch(text)) and all(word.startswith("'") or word in _PLAIN_WORDS for word in words)


def _refusal(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} is not a plain graph of torch's operators, and loading it could run code ({reason}): refused, nothing "
        "was executed; export the model again with torch.export.export and torch.export.save"
    )
