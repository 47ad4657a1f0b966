"""Weights from a file into a model. Nothing in the file is executed, and what does not fit is named."""

import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import check_plain
from weakspot.models.zip_members import plain_members

WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net", "weights", "params")
"""Under which names training programs keep the weights inside a checkpoint."""
PREFIXES = ("module.", "_orig_mod.", "model.")
"""What wrappers for several devices, for compiling and for training put before every name."""
_FROM_PICKLE = frozenset({".pt", ".pth", ".th", ".tar", ".bin", ".ckpt"})
_COUNTERS = "num_batches_tracked"
"""How many batches a batch norm has seen: older files lack it, and torch begins at 0 then. No prediction uses it."""
_SHOWN = 3


@dataclass(frozen=True)
class Weights:
    """Tensors by name, and what had to be done to get at them."""

    tensors: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()


def load_weights(model: nn.Module, path: str | Path, *, entry: str | None = None) -> tuple[str, ...]:
    """Put the weights of a file into a model; returns what is worth saying about it.

    path: safetensors, or a state dict that `torch.save` wrote (.pt, .pth, .th, .tar, .bin, .ckpt).
    entry: which part of a checkpoint holds the weights; needed only where several could.
    """
    read = read_weights(path, entry=entry)
    fitted = _without_prefix(read, model.state_dict())
    uncounted = [name for name in model.state_dict() if name not in fitted.tensors and _counts(name)]
    wanted = {name: tensor for name, tensor in model.state_dict().items() if name not in uncounted}
    problems = misfits(wanted, fitted.tensors)
    if problems:
        raise ConfigError(f"weights {path} do not fit the model: {'; '.join(problems)}")
    model.load_state_dict(dict(fitted.tensors))
    lacking = f"the weights lack {len(uncounted)} × {_COUNTERS}, which no prediction uses: they begin at 0"
    return (*fitted.notes, *([lacking] if uncounted else []))


def read_weights(path: str | Path, *, entry: str | None = None) -> Weights:
    """The tensors of a file by name."""
    file = Path(path)
    try:
        check_plain(file)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read weights {file}: {reason}") from error
    if file.suffix.lower() not in _FROM_PICKLE:
        return Weights(_read_safetensors(file))
    return _unwrapped(_read_state_dict(file), file, entry)


def _read_safetensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"cannot read weights {file}: {error}; expected a safetensors file, or a state dict named "
            f"{', '.join(sorted(_FROM_PICKLE))}"
        ) from error


def _read_state_dict(file: Path) -> Any:
    try:
        _check_format(file)
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConfigError(_refused(file, str(error))) from error
    except Exception as error:  # torch raises many kinds for files that are cut short or something else
        raise ConfigError(f"cannot read weights {file}: {type(error).__name__}: {_first_line(error)}") from error


def _check_format(file: Path) -> None:
    """A zip as torch writes it, or the pickle that it wrote before there were zips."""
    with file.open("rb") as opened:
        begin = opened.read(4)
        if begin == b"PK\3\4":
            with zipfile.ZipFile(opened) as archive:
                plain_members(archive, file.stat().st_size)
        elif begin[:1] != b"\x80":
            raise ValueError("it does not begin as torch.save begins a file")


def _refused(file: Path, reason: str) -> str:
    named = re.search(r"(?:GLOBAL|Unsupported global:?|global) ([\w.]+)", reason)
    wants = f" (it wants to use {named[1]})" if named else ""
    return (
        f"weights {file} hold more than tensors, and loading them could run code{wants}: refused, nothing was "
        "executed; if you trust the file, save its state_dict() as safetensors: "
        "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"
    )


def _unwrapped(stored: Any, file: Path, entry: str | None) -> Weights:
    """The state dict in a checkpoint: the one that is named, the file itself, or the only one there is."""
    if not isinstance(stored, Mapping):
        raise ConfigError(f"weights {file} hold a {type(stored).__name__}: expected a state dict, tensors by name")
    if entry is not None:
        return Weights(_named(stored, file, entry), (f"the weights are those under {entry!r} in {file.name}",))
    if _is_state_dict(stored):
        return Weights(stored)
    entries = [name for name, part in stored.items() if _is_state_dict(part)]
    if len(entries) == 1 and entries[0] in WRAPPERS:
        return Weights(stored[entries[0]], (f"the weights are those under {entries[0]!r} in {file.name}",))
    held = ", ".join(map(repr, list(stored)[:8])) or "nothing"
    which = (
        f"say which with weights_entry: {', '.join(map(str, entries))}" if entries else "none of them is a state dict"
    )
    raise ConfigError(f"weights {file} hold {held}: {which}")


def _named(stored: Mapping[Any, Any], file: Path, entry: str) -> Mapping[str, Tensor]:
    if not _is_state_dict(stored.get(entry)):
        fitting = [str(name) for name, part in stored.items() if _is_state_dict(part)]
        raise ConfigError(f"weights {file} hold no state dict {entry!r}; they hold: {', '.join(fitting) or 'none'}")
    return stored[entry]  # type: ignore[no-any-return]


def _is_state_dict(part: Any) -> bool:
    return (
        isinstance(part, Mapping)
        and len(part) > 0
        and all(isinstance(name, str) and isinstance(value, Tensor) for name, value in part.items())
    )


def _without_prefix(weights: Weights, wanted: Mapping[str, Tensor]) -> Weights:
    """Without prefixes, one or several, where the names then are exactly those of the model.

    What stands beside the names with the prefix, as the state of a loss in a training program, is left out and named.
    """
    expected, prefix, left = _uncounted(wanted), "", weights.tensors
    while left and _uncounted(left) != expected:
        found = next((one for one in PREFIXES if any(name.startswith(one) for name in left)), None)
        if found is None:
            return weights
        left = {name.removeprefix(found): tensor for name, tensor in left.items() if name.startswith(found)}
        prefix += found
    if not prefix or not left:
        return weights
    others = [name for name in weights.tensors if not name.startswith(prefix)]
    said = [f"the names of the weights began with {prefix!r}: left out"]
    said += [f"{len(others)} tensors of the file are not the model's and are left out ({_few(others)})"] * bool(others)
    return Weights(left, (*weights.notes, *said))


def _counts(name: str) -> bool:
    return name.rpartition(".")[2] == _COUNTERS


def _uncounted(names: Iterable[str]) -> set[str]:
    return {name for name in names if not _counts(name)}


def misfits(wanted: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> list[str]:
    """What keeps weights from fitting, in words: missing, unexpected and mis-shaped names, the first few of each."""
    shaped = [
        f"{name} is {_shape(weights[name])} and should be {_shape(wanted[name])}"
        for name in wanted
        if name in weights and weights[name].shape != wanted[name].shape
    ]
    kinds = {
        "missing": [name for name in wanted if name not in weights],
        "unexpected": [name for name in weights if name not in wanted],
        "of another shape": shaped,
    }
    return [f"{len(names)} {kind} ({_few(names)})" for kind, names in kinds.items() if names]


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a number"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
