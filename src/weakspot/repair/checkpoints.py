"""How far a training has come, on disk after every epoch: safetensors and JSON, whole or not at all."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from weakspot.core.errors import RunError
from weakspot.core.files import whole_file, whole_folder, writing
from weakspot.core.guarded_open import check_plain
from weakspot.core.index_checks import read_index
from weakspot.core.sealed import check_sealed, seal

FORMAT = "weakspot-training"
VERSION = 1
_PROGRESS = "progress.json"

Weights = dict[str, Tensor]


@dataclass
class TrainingProgress:
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

    def save(self, training: TrainingProgress, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Replace what was kept of the epoch before."""
        with writing(self.folder, also=SafetensorError), whole_folder(self.folder) as scratch:
            save_file(weights_of(model), scratch / "weights.safetensors")
            save_file(_momenta(optimiser), scratch / "momenta.safetensors")
            if training.best is not None:
                save_file(training.best, scratch / "best.safetensors")
            entry = {"format": FORMAT, "version": VERSION, "epochs": training.epochs, "losses": training.losses}
            (scratch / _PROGRESS).write_text(json.dumps(entry), encoding="utf-8")
            seal(scratch)

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> TrainingProgress:
        """Put model and optimiser where they were; a new one where nothing was kept."""
        if not (self.folder / _PROGRESS).exists():
            return TrainingProgress()
        check_sealed(self.folder, "delete that folder, and the training begins anew")
        entry = read_index(self.folder / _PROGRESS, FORMAT, VERSION, {})
        model.load_state_dict(self._kept("weights"))
        _set_momenta(optimiser, self._kept("momenta"))
        best = (self.folder / "best.safetensors").exists()
        return TrainingProgress(entry["epochs"], entry["losses"], self._kept("best") if best else None)

    def _kept(self, name: str) -> Weights:
        path = self.folder / f"{name}.safetensors"
        try:
            check_plain(path, links=False)
            return load_file(path)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(f"{path} is damaged: {reason}; delete that folder, and the training starts again") from error


def weights_of(model: nn.Module) -> Weights:
    """A copy of all parameters and buffers; those that share memory get a copy each, as safetensors wants it."""
    return {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights as safetensors, whole or not at all."""
    with writing(path, also=SafetensorError), whole_file(path) as scratch:
        save_file(weights_of(model), scratch)


def _momenta(optimiser: torch.optim.Optimizer) -> Weights:
    kept = optimiser.state_dict()["state"]
    momenta = {str(number): state.get("momentum_buffer") for number, state in kept.items()}
    return {number: value.cpu().contiguous() for number, value in momenta.items() if value is not None}


def _set_momenta(optimiser: torch.optim.Optimizer, momenta: Weights) -> None:
    state = {int(number): {"momentum_buffer": value} for number, value in momenta.items()}
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
