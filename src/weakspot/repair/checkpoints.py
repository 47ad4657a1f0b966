"""How far a training has come, on disk after every epoch: safetensors and JSON, whole or not at all."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from weakspot.core.files import whole_folder
from weakspot.core.finding import read_index

FORMAT = "weakspot-training"
VERSION = 1
_COURSE = "course.json"

Weights = dict[str, Tensor]


@dataclass
class Course:
    """Which epochs are done, what the validation loss was after each, and the weights at its best."""

    epochs: int = 0
    losses: list[float] = field(default_factory=list)
    best: Weights | None = None

    @property
    def best_epoch(self) -> int:
        """The epoch with the lowest validation loss, counted from 1; the last one where there is no validation."""
        return 1 + self.losses.index(min(self.losses)) if self.losses else self.epochs

    def note(self, model: nn.Module, loss: float | None) -> None:
        """One more epoch is done, with this validation loss."""
        self.epochs += 1
        if loss is not None:
            self.losses.append(loss)
            if self.best_epoch == self.epochs:
                self.best = weights_of(model)

    def over(self, patience: int) -> bool:
        """Whether the validation loss has not fallen for `patience` epochs."""
        return bool(self.losses) and self.epochs - self.best_epoch >= patience


@dataclass(frozen=True)
class Checkpoint:
    """The folder in which a training keeps how far it has come."""

    folder: Path

    def save(self, course: Course, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Replace what was kept of the epoch before."""
        with whole_folder(self.folder) as scratch:
            save_file(weights_of(model), scratch / "weights.safetensors")
            save_file(_momenta(optimiser), scratch / "momenta.safetensors")
            if course.best is not None:
                save_file(course.best, scratch / "best.safetensors")
            entry = {"format": FORMAT, "version": VERSION, "epochs": course.epochs, "losses": course.losses}
            (scratch / _COURSE).write_text(json.dumps(entry), encoding="utf-8")

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> Course:
        """Put model and optimiser where they were; a new course where nothing was kept."""
        if not (self.folder / _COURSE).exists():
            return Course()
        entry = read_index(self.folder / _COURSE, FORMAT, VERSION, {})
        model.load_state_dict(load_file(self.folder / "weights.safetensors"))
        _set_momenta(optimiser, load_file(self.folder / "momenta.safetensors"))
        best = self.folder / "best.safetensors"
        return Course(entry["epochs"], entry["losses"], load_file(best) if best.exists() else None)


def weights_of(model: nn.Module) -> Weights:
    """A copy of all parameters and buffers; those that share memory get a copy each, as safetensors wants it."""
    return {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights as safetensors, whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    save_file(weights_of(model), partial)
    partial.replace(path)


def _momenta(optimiser: torch.optim.Optimizer) -> Weights:
    kept = optimiser.state_dict()["state"]
    momenta = {str(number): state.get("momentum_buffer") for number, state in kept.items()}
    return {number: value.cpu().contiguous() for number, value in momenta.items() if value is not None}


def _set_momenta(optimiser: torch.optim.Optimizer, momenta: Weights) -> None:
    state = {int(number): {"momentum_buffer": value} for number, value in momenta.items()}
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
