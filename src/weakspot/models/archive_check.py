"""A `torch.export` archive, rewritten from what is harmless: a graph of known operators, and its tensors.

`torch.export.load` evaluates sizes as Python, compiles names into source code, looks operators up by any name below
`torch`, imports what describes inputs and outputs, and unpickles what is not a tensor. So an archive is read here
first, as the zip of JSON and numbers that it is. torch never sees the file: it gets the archive that is made here
from the checked parts.
"""

import io
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.models.graph_check import checked_graph, checked_path
from weakspot.models.operators import UnknownOperator
from weakspot.models.zip_members import plain_members

_GRAPH, _SAMPLES = "models/model.json", "data/sample_inputs/model.pt"
_TENSORS = {"weights": re.compile(r"weight_\d{1,6}"), "constants": re.compile(r"tensor_\d{1,6}")}
_PLAIN_MEMBERS = re.compile(
    r"(archive_format|archive_version|byteorder|\.data/[\w.]+|models/model\.json|extra/.*|data/sample_inputs/model\.pt"
    r"|data/weights/(model_weights_config\.json|weight_\d{1,6})|data/constants/(model_constants_config\.json|tensor_\d{1,6}))"
)


class _Members:
    """The members of an archive, read one at a time."""

    def __init__(self, archive: zipfile.ZipFile, size: int):
        self._archive, self._infos = archive, plain_members(archive, size)

    def names(self) -> list[str]:
        return list(self._infos)

    def read(self, name: str) -> bytes:
        if name not in self._infos:
            raise ValueError(f"it holds no {name!r}")
        return self._archive.read(self._infos[name])

    def size(self, name: str) -> int:
        return self._infos[name].file_size if name in self._infos else -1


def plain_archive(path: Path) -> io.BytesIO:
    """The checked parts of an archive, as an archive; a ConfigError where there is anything else in it."""
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            return _rebuilt(path, _Members(archive, size))
    except UnknownOperator as error:
        raise ConfigError(
            f"{path} calls {error}, which is not among the operators that weakspot runs from a file: refused, nothing "
            "was executed; if you trust the model, load it as a Python class with its weights (model: module:Class, "
            "weights: file.safetensors)"
        ) from error
    except (OSError, EOFError, zipfile.BadZipFile, ValueError, NotImplementedError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not an archive of torch.export.save: {error}; export the model again with torch.export.export "
            "and torch.export.save"
        ) from error


def _rebuilt(path: Path, members: _Members) -> io.BytesIO:
    _check_members(path, members)
    try:
        graph = checked_graph(json.loads(members.read(_GRAPH)))
        tensors = {kind: _checked_tensors(kind, members) for kind in _TENSORS}
    except UnknownOperator:
        raise
    except ValueError as error:
        raise _refusal(path, str(error)) from error
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in (("archive_format", "pt2"), ("archive_version", "0"), (".data/version", "6")):
            archive.writestr(f"model/{name}", text)
        archive.writestr(f"model/{_GRAPH}", json.dumps(graph))
        archive.writestr(f"model/{_SAMPLES}", b"")  # torch would unpickle them, and nobody needs them
        for kind, config in tensors.items():
            archive.writestr(f"model/data/{kind}/model_{kind}_config.json", json.dumps({"config": config}))
            for name in sorted({entry["path_name"] for entry in config.values()}):
                archive.writestr(f"model/data/{kind}/{name}", members.read(f"data/{kind}/{name}"))
    made.seek(0)
    return made


def _check_members(path: Path, members: _Members) -> None:
    names = members.names()
    if "archive_format" not in names:
        raise ConfigError(
            f"{path} is not an archive of torch.export.save, or is one of an old torch: export the model again"
        )
    for name in names:
        if not _PLAIN_MEMBERS.fullmatch(name):
            raise _refusal(path, f"it holds {name[:60]!r}")
    for name, expected in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", sys.byteorder)):
        if members.read(name) != expected.encode():
            raise ConfigError(
                f"{path} has another {name} than {expected}: export the model again, on a machine like this"
            )


def _checked_tensors(kind: str, members: _Members) -> dict[str, Any]:
    config = json.loads(members.read(f"data/{kind}/model_{kind}_config.json"))
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        raise ValueError(f"it lists no {kind}")
    return {checked_path(name): _checked_tensor(kind, name, entry, members) for name, entry in entries.items()}


def _checked_tensor(kind: str, name: str, entry: Any, members: _Members) -> dict[str, Any]:
    if not isinstance(entry, dict) or entry.get("use_pickle") is not False:
        raise ValueError(f"it holds {name!r} as pickled values")
    file, about = str(entry.get("path_name")), entry.get("tensor_meta")
    size = members.size(f"data/{kind}/{file}")
    if not _TENSORS[kind].fullmatch(file) or not isinstance(about, dict) or size < _reach(about):
        raise ValueError(f"it holds {name!r} in a file that is missing or too small")
    return {
        "path_name": file,
        "is_param": entry.get("is_param") is True,
        "use_pickle": False,
        "tensor_meta": checked_graph(about),
    }


def _reach(about: dict[str, Any]) -> int:
    """How many numbers a tensor needs behind it; a number has at least one byte."""
    sizes, strides, offset = (about.get(name) for name in ("sizes", "strides", "storage_offset"))
    if not isinstance(sizes, list) or not isinstance(strides, list) or len(sizes) != len(strides):
        raise ValueError("a tensor has no shape")
    lengths, steps, start = [_count(size) for size in sizes], [_count(step) for step in strides], _count(offset)
    if 0 in lengths:
        return 0
    return start + sum((length - 1) * step for length, step in zip(lengths, steps, strict=True)) + 1


def _count(size: Any) -> int:
    number = size.get("as_int") if isinstance(size, dict) and len(size) == 1 else None
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"a tensor has a size of {str(size)[:60]}")
    return number


def _refusal(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{path} is not a plain graph of torch's operators, and loading it could run code ({reason}): refused, nothing "
        "was executed; export the model again with torch.export.export and torch.export.save"
    )
