"""Where small embedded models are kept once they are trained."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from weakspot.core.errors import RunError
from weakspot.core.files import make_folder, whole_file


def cache_folder() -> Path:
    """`$WEAKSPOT_CACHE`, or `weakspot` in the user's cache folder."""
    chosen = os.environ.get("WEAKSPOT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "weakspot"


def trained_once(name: str, build: Callable[[], nn.Module], train: Callable[[nn.Module], None]) -> nn.Module:
    """The model, trained from seed 0 at first use and read from the cache after that; in evaluation mode.

    A cache that cannot be written only costs the training next time.
    """
    path = cache_folder() / f"{name}.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build()
        try:
            model.load_state_dict(load_file(path))
        except (OSError, SafetensorError, RuntimeError):
            train(model)
            _keep(model, path)
    return model.eval()


def _keep(model: nn.Module, path: Path) -> None:
    with suppress(OSError, SafetensorError, RunError):
        make_folder(path.parent)
        with whole_file(path) as scratch:
            save_file(model.state_dict(), scratch)
