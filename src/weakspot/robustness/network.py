"""A small network that tells weak inputs from strong ones by features, with probabilities that mean what they say.

It is trained once per fold of the training inputs, on all the others; what each says of its own fold is honest, and
sets the calibration and the threshold. Together, by their mean, they are the detector (cross-fitting). A trained one is
plain arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.subject import check_training_device
from weakspot.robustness.thresholds import best_f1_threshold
from weakspot.statistics.calibration import logistic, platt_scaling

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_BLOCK = 1024
_SLOPE = 0.1
_STEPS, _FEW = 16, 32
"""However few inputs there are, an epoch has some sixteen steps, each over 32 inputs or more."""


class NothingToLearnError(DataError):
    """The training inputs are too few for a detector, or all alike."""


@dataclass(frozen=True)
class Learning:
    """How the network is trained: Adam with decoupled weight decay, one cycle of the learning rate.

    hidden: units of each hidden layer. epochs: times over the training inputs. folds: into how many parts they are cut.
    learning_rate: its peak. dropout, weight_decay: against learning by heart. batch_size: most inputs per step.
    weak_emphasis: how much more often weaker inputs are drawn, 0 for all alike; see `selection`. seed: of all chance.
    device: where it is trained; the features of all training inputs go there.
    """

    hidden: tuple[int, ...] = (256, 128)
    epochs: int = 40
    folds: int = 5
    learning_rate: float = 3e-3
    dropout: float = 0.2
    weight_decay: float = 1e-4
    batch_size: int = 512
    weak_emphasis: int = 0
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.folds < 2 or self.batch_size < 1 or self.weak_emphasis < 0:
            raise ConfigError(
                "expected epochs ≥ 1, folds ≥ 2, batch_size ≥ 1 and weak_emphasis ≥ 0, got "
                f"{self.epochs}, {self.folds}, {self.batch_size} and {self.weak_emphasis}"
            )
        check_training_device(self.device)


@dataclass(frozen=True)
class Network:
    """A trained detector: one network per fold, side by side, and what was learnt of them on held-out inputs.

    weights[l] (folds, units in, units out), biases[l] (folds, 1, units out); the last layer has one output per level.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    calibration: Floats
    """Slope and offset from the mean output to the log-odds of being weak."""
    threshold: float
    """The probability from which on an input is called weak."""

    def probability(self, features: np.ndarray) -> Floats:
        """How probably each input is weak; features (inputs, width). The same whatever comes beside an input."""
        blocks = [self._block(features[start : start + _BLOCK]) for start in range(0, len(features), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def _block(self, features: np.ndarray) -> Floats:
        padded = np.zeros((_BLOCK, len(self.centre)), dtype=np.float32)  # products of one shape give the same bits
        padded[: len(features)] = features
        return self.at_once(padded)[: len(features)]

    def at_once(self, features: np.ndarray) -> Floats:
        """The same in one piece: quicker for few inputs, and equal but for the last bits."""
        slope, offset = self.calibration
        with torch.no_grad():
            standard = torch.from_numpy((features - self.centre) / self.scale)
            weights, biases = self._tensors
            outputs = _forward(standard.expand(len(weights[0]), *standard.shape), weights, biases)[..., 0].mean(0)
        return logistic(outputs.numpy().astype(np.float64) * slope + offset)

    @cached_property
    def _tensors(self) -> tuple[list[Tensor], list[Tensor]]:
        return [torch.from_numpy(part) for part in self.weights], [torch.from_numpy(part) for part in self.biases]

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """As arrays under names that begin with `prefix`, for a Finding."""
        layers = {f"{prefix}_weights_{i}": values for i, values in enumerate(self.weights)}
        layers |= {f"{prefix}_biases_{i}": values for i, values in enumerate(self.biases)}
        return {
            f"{prefix}_centre": self.centre,
            f"{prefix}_scale": self.scale,
            **layers,
            f"{prefix}_calibration": np.append(self.calibration, self.threshold),
        }

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> "Network":
        """The network that a Finding holds under `prefix`."""
        if f"{prefix}_calibration" not in arrays:
            raise DataError(f"there is no detector {prefix!r} in this Finding: examine again with one")
        held = {name: np.array(values) for name, values in arrays.items() if name.startswith(f"{prefix}_")}
        layers = sum(name.startswith(f"{prefix}_weights_") for name in held)
        calibration = held[f"{prefix}_calibration"]
        return cls(
            held[f"{prefix}_centre"],
            held[f"{prefix}_scale"],
            tuple(held[f"{prefix}_weights_{i}"] for i in range(layers)),
            tuple(held[f"{prefix}_biases_{i}"] for i in range(layers)),
            calibration[:2],
            float(calibration[2]),
        )


@dataclass(frozen=True)
class Fitted:
    """A network with what it says, fold by fold, of inputs it was not trained on."""

    network: Network
    held_out: Floats
    """How probably each training input is weak, by the network that did not see it."""


def fit(features: np.ndarray, accuracy: np.ndarray, cutoff: float, learning: Learning) -> Fitted:
    """Train the detector: from features (inputs, width) to whether neighbour accuracy is at most the cutoff.

    Other cutoffs are learnt beside it (`levels_beside`): where an input lies between them says more than one bit does.
    """
    weak = accuracy <= cutoff
    if weak.all() or not weak.any():
        alike, other = ("weak", "narrower") if weak.all() else ("strong", "wider")
        raise NothingToLearnError(
            f"all {len(weak)} training inputs are {alike} at the cutoff {cutoff}, so there is nothing to tell apart: "
            f"choose another cutoff, {other} neighbours or more training inputs"
        )
    levels = levels_beside(cutoff)
    centre = features.mean(0, dtype=np.float64).astype(np.float32)
    spread = features.std(0, dtype=np.float64).astype(np.float32)
    scale = np.where(spread > 0, spread, np.float32(1))
    fold = np.random.default_rng(learning.seed).permutation(len(weak)) % learning.folds
    standard = torch.from_numpy(((features - centre) / scale).astype(np.float32))
    truth = torch.from_numpy((accuracy[:, None] <= levels).astype(np.float32))
    chances = selection(accuracy, learning.weak_emphasis)
    weights, biases = _train(standard.to(learning.device), truth.to(learning.device), fold, chances, learning)
    with torch.no_grad():
        said = _forward(standard.expand(learning.folds, *standard.shape), weights, biases)[..., 0]
    own = said.numpy()[fold, np.arange(len(fold))].astype(np.float64)
    calibration = platt_scaling(own, weak)
    if calibration[0] < 0:  # nothing was learnt that holds: say the same of all rather than the opposite
        calibration = platt_scaling(np.zeros(len(weak)), weak)
    held_out = logistic(own * calibration[0] + calibration[1])
    threshold = best_f1_threshold(held_out, weak)
    plain = [tuple(part.numpy() for part in parts) for parts in (weights, biases)]
    return Fitted(Network(centre, scale, plain[0], plain[1], calibration, threshold), held_out)


def selection(accuracy: np.ndarray, weak_emphasis: int) -> Floats:
    """How probably each training input is drawn, w = (1 + (1 − n)^m·100^m)/(1 + 100^m) (Zhong et al. 2021).

    n is the neighbour accuracy, m the emphasis: 0 draws all alike, with 2 the weakest count a hundred times more.

    >>> selection(np.array([0.0, 0.5, 1.0]), 1).round(3).tolist()
    [1.0, 0.505, 0.01]
    """
    return np.asarray((1 + (1 - accuracy) ** weak_emphasis * 100.0**weak_emphasis) / (1 + 100.0**weak_emphasis))


def levels_beside(cutoff: float) -> Floats:
    """The cutoff first, then tenths from 0.1 to 0.9 that lie at least 0.04 from it.

    >>> levels_beside(0.75).tolist()
    [0.75, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    """
    tenths = np.arange(1, 10) / 10
    return np.append(cutoff, tenths[np.abs(tenths - cutoff) > 0.04])


def _train(
    features: Tensor, truth: Tensor, fold: np.ndarray, chances: Floats, learning: Learning
) -> tuple[list[Tensor], list[Tensor]]:
    """The weights and biases of all folds, trained side by side."""
    there = features.device
    with torch.random.fork_rng(devices=[there] if there.type == "cuda" else []), torch.enable_grad():
        torch.manual_seed(learning.seed)
        weights, biases = _begin(features.shape[1], truth.shape[1], learning)
        others = [np.flatnonzero(fold != number) for number in range(learning.folds)]
        size = min(len(rows) for rows in others)
        rng = np.random.default_rng(learning.seed)
        optimiser = torch.optim.AdamW([*weights, *biases], learning.learning_rate, weight_decay=learning.weight_decay)
        batch = min(learning.batch_size, max(_FEW, size // _STEPS))
        steps = -(-size // batch) * learning.epochs
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning.learning_rate, total_steps=steps)
        for _ in range(learning.epochs):
            drawn = torch.from_numpy(np.stack([_drawn(rows, chances, size, rng) for rows in others]))
            for rows in drawn.to(there).split(batch, 1):
                optimiser.zero_grad()
                outputs = _forward(features[rows], weights, biases, learning.dropout)
                loss = F.binary_cross_entropy_with_logits(outputs, truth[rows], reduction="none")
                loss.mean((1, 2)).sum().backward()
                optimiser.step()
                schedule.step()
    return [part.detach().cpu() for part in weights], [part.detach().cpu() for part in biases]


def _drawn(rows: np.ndarray, chances: Floats, size: int, rng: np.random.Generator) -> np.ndarray:
    """The inputs of one epoch: all once where their chances are equal, else drawn by chance."""
    own = chances[rows]
    if np.ptp(own) == 0:
        return rng.permutation(rows)[:size]
    return rng.choice(rows, size, p=own / own.sum())


def _begin(width: int, outputs: int, learning: Learning) -> tuple[list[Tensor], list[Tensor]]:
    """Weights as torch begins a linear layer, U(±1/√width); biases at 0."""
    sizes = [width, *learning.hidden, outputs]
    weights, biases = [], []
    for before, after in pairwise(sizes):
        bound = before**-0.5
        drawn = torch.empty(learning.folds, before, after).uniform_(-bound, bound)
        weights.append(drawn.to(learning.device).requires_grad_())
        biases.append(torch.zeros(learning.folds, 1, after, device=learning.device).requires_grad_())
    return weights, biases


def _forward(features: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], dropout: float = 0.0) -> Tensor:
    """Leaky ReLU between the layers, as in the paper; features (folds, inputs, width)."""
    values = features
    for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if index:
            values = F.dropout(F.leaky_relu(values, _SLOPE), dropout, training=dropout > 0)
        values = torch.baddbmm(bias, values, weight)
    return values
