"""A small network that separates weak inputs from strong ones by features: training and calibrated probabilities.

After DeepRobust-W (Zhong et al. 2021, `zhong2021`), with cross-fitting: one network is trained per fold of the training
inputs, on all other folds. Its outputs for the fold it was not trained on set the calibration and the threshold. The
detector is the mean of these networks. A trained one is plain arrays.
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
from weakspot.robustness.metrics import weak_inputs
from weakspot.robustness.score_thresholds import best_f1_threshold
from weakspot.statistics.calibration import logistic, platt_scaling
from weakspot.statistics.thresholds import LowIf

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_BLOCK = 1024
_SLOPE = 0.1
_STEPS, _FEW = 16, 32
"""With few inputs, an epoch still has about sixteen steps, each over 32 inputs or more."""


class NothingToLearnError(DataError):
    """The training inputs are too few for a detector, or all weak, or all strong."""


@dataclass(frozen=True)
class DetectorTraining:
    """How the network is trained: AdamW with a one-cycle learning rate.

    hidden: units of each hidden layer.
    epochs: times over the training inputs.
    folds: into how many parts the training inputs are cut.
    learning_rate: its peak.
    dropout: share of the hidden units that are dropped in training.
    weight_decay: as in AdamW.
    batch_size: most inputs per step.
    weak_emphasis: how much more often weaker inputs are drawn, 0 for all alike; see `selection_weights`.
    weak_if: what of an input exactly at the threshold, as in `weak_inputs`.
    own_decision: whether inputs are flagged where the networks themselves say "weak", as in the paper, so that the
        emphasis moves precision against recall; otherwise at the best F1 on held-out inputs, which undoes it.
    seed: of all random numbers.
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
    weak_if: LowIf = "below"
    own_decision: bool = False
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
class DetectorNetwork:
    """A trained detector: one network per fold, with calibration and threshold from held-out inputs.

    centre, scale: mean and standard deviation of the features.
    weights, biases: of layer l (folds, units in, units out) and (folds, 1, units out); the last layer has one output
        per level of neighbour accuracy.
    calibration: slope and offset from the mean output to the log-odds of being weak.
    threshold: the probability from which on an input is flagged as weak.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    calibration: Floats
    threshold: float

    def probability(self, features: np.ndarray) -> Floats:
        """The probability that each input is weak; features (inputs, width).

        The other inputs change nothing; the place among them changes the last bit at most.
        """
        blocks = [self._block(features[start : start + _BLOCK]) for start in range(0, len(features), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def _block(self, features: np.ndarray) -> Floats:
        # matrix products of one shape give the same bits for the same row
        padded = np.zeros((_BLOCK, len(self.centre)), dtype=np.float32)
        padded[: len(features)] = features
        return self.at_once(padded)[: len(features)]

    def at_once(self, features: np.ndarray) -> Floats:
        """The same in one batch: faster for few inputs, and equal up to rounding."""
        slope, offset = self.calibration
        with torch.no_grad():
            standardised = torch.from_numpy((features - self.centre) / self.scale)
            weights, biases = self._tensors
            outputs = _forward(standardised.expand(len(weights[0]), *standardised.shape), weights, biases)[..., 0]
        return logistic(outputs.mean(0).numpy().astype(np.float64) * slope + offset)

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
    def of(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> "DetectorNetwork":
        """The network that a Finding holds under `prefix`."""
        if f"{prefix}_calibration" not in arrays:
            raise DataError(f"there is no detector {prefix!r} in this Finding: examine again with one")
        parts = {name: np.array(values) for name, values in arrays.items() if name.startswith(f"{prefix}_")}
        layers = sum(name.startswith(f"{prefix}_weights_") for name in parts)
        calibration = parts[f"{prefix}_calibration"]
        return cls(
            parts[f"{prefix}_centre"],
            parts[f"{prefix}_scale"],
            tuple(parts[f"{prefix}_weights_{i}"] for i in range(layers)),
            tuple(parts[f"{prefix}_biases_{i}"] for i in range(layers)),
            calibration[:2],
            float(calibration[2]),
        )


@dataclass(frozen=True)
class FittedNetwork:
    """A trained detector with its probabilities for the training inputs.

    network: the detector.
    held_out: the probability that each training input is weak, from the fold's network that was not trained on it.
    """

    network: DetectorNetwork
    held_out: Floats


def fit_network(
    features: np.ndarray,
    accuracy: np.ndarray,
    threshold: float,
    training: DetectorTraining,
    groups: np.ndarray | None = None,
) -> FittedNetwork:
    """Train the detector: from features (inputs, width) to whether an input is weak by its neighbour accuracy.

    Other thresholds are learnt beside it (`accuracy_levels`): they tell the network how weak an input is.
    """
    weak = weak_inputs(accuracy, threshold, training.weak_if)
    if weak.all() or not weak.any():
        kind, other = ("weak", "narrower") if weak.all() else ("strong", "wider")
        raise NothingToLearnError(
            f"all {len(weak)} training inputs are {kind} at the threshold {threshold}, so there is nothing to tell "
            f"apart: choose another threshold, {other} neighbours or more training inputs"
        )
    centre = features.mean(0, dtype=np.float64).astype(np.float32)
    spread = features.std(0, dtype=np.float64).astype(np.float32)
    scale = np.where(spread > 0, spread, np.float32(1))
    fold = _folds(len(weak), training, groups)
    standardised = torch.from_numpy(((features - centre) / scale).astype(np.float32))
    levels = weak_inputs(accuracy[:, None], accuracy_levels(threshold), training.weak_if)
    labels = torch.from_numpy(levels.astype(np.float32))
    weights, biases = _train(
        standardised.to(training.device),
        labels.to(training.device),
        fold,
        selection_weights(accuracy, training.weak_emphasis),
        training,
    )
    with torch.no_grad():
        outputs = _forward(standardised.expand(training.folds, *standardised.shape), weights, biases)[..., 0]
    held_out = outputs.numpy()[fold, np.arange(len(fold))].astype(np.float64)
    calibration = platt_scaling(held_out, weak)
    learnt = calibration[0] > 0
    if not learnt:  # nothing that holds: one probability for all inputs rather than the opposite
        calibration = platt_scaling(np.zeros(len(weak)), weak)
    probability = logistic(held_out * calibration[0] + calibration[1])
    own = training.own_decision and learnt  # an output of 0, before it is calibrated
    flagged_from = float(logistic(calibration[1])) if own else best_f1_threshold(probability, weak)
    plain = [tuple(part.numpy() for part in parts) for parts in (weights, biases)]
    network = DetectorNetwork(centre, scale, plain[0], plain[1], calibration, flagged_from)
    return FittedNetwork(network, probability)


def _folds(inputs: int, training: DetectorTraining, groups: np.ndarray | None) -> np.ndarray:
    """The fold of each input; inputs that belong together are in one."""
    units = np.arange(inputs) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(units.max()) + 1
    if count < training.folds:
        raise NothingToLearnError(f"{count} groups of inputs cannot be cut into {training.folds} folds: give more")
    folds = np.random.default_rng(training.seed).permutation(count) % training.folds
    return np.asarray(folds[units])


def selection_weights(accuracy: np.ndarray, weak_emphasis: int) -> Floats:
    """Weight of each training input when it is drawn, w = (1 + (1 − n)^m·100^m)/(1 + 100^m) (Zhong et al. 2021).

    n is the neighbour accuracy, m the emphasis: 0 draws all alike; the larger, the more often the weakest are drawn.

    >>> selection_weights(np.array([0.0, 0.5, 1.0]), 1).round(3).tolist()
    [1.0, 0.505, 0.01]
    """
    return np.asarray((1 + (1 - accuracy) ** weak_emphasis * 100.0**weak_emphasis) / (1 + 100.0**weak_emphasis))


def accuracy_levels(threshold: float) -> Floats:
    """The threshold first, then tenths from 0.1 to 0.9 that lie more than 0.04 from it.

    >>> accuracy_levels(0.75).tolist()
    [0.75, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    """
    tenths = np.arange(1, 10) / 10
    return np.append(threshold, tenths[np.abs(tenths - threshold) > 0.04])


def _train(
    features: Tensor, labels: Tensor, fold: np.ndarray, draw_weights: Floats, training: DetectorTraining
) -> tuple[list[Tensor], list[Tensor]]:
    """The weights and biases of all folds, trained at the same time."""
    device = features.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.enable_grad():
        torch.manual_seed(training.seed)
        weights, biases = _initial(features.shape[1], labels.shape[1], training)
        others = [np.flatnonzero(fold != number) for number in range(training.folds)]
        size = min(len(rows) for rows in others)
        rng = np.random.default_rng(training.seed)
        optimiser = torch.optim.AdamW([*weights, *biases], training.learning_rate, weight_decay=training.weight_decay)
        batch = min(training.batch_size, max(_FEW, size // _STEPS))
        steps = -(-size // batch) * training.epochs
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, training.learning_rate, total_steps=steps)
        for _ in range(training.epochs):
            drawn = torch.from_numpy(np.stack([_drawn(rows, draw_weights, size, rng) for rows in others]))
            for rows in drawn.to(device).split(batch, 1):
                optimiser.zero_grad()
                outputs = _forward(features[rows], weights, biases, training.dropout)
                loss = F.binary_cross_entropy_with_logits(outputs, labels[rows], reduction="none")
                loss.mean((1, 2)).sum().backward()
                optimiser.step()
                schedule.step()
    return [part.detach().cpu() for part in weights], [part.detach().cpu() for part in biases]


def _drawn(rows: np.ndarray, draw_weights: Floats, size: int, rng: np.random.Generator) -> np.ndarray:
    """The inputs of one epoch: each once where their weights are equal, else drawn by their weights."""
    weights = draw_weights[rows]
    if np.ptp(weights) == 0:
        return rng.permutation(rows)[:size]
    return rng.choice(rows, size, p=weights / weights.sum())


def _initial(width: int, outputs: int, training: DetectorTraining) -> tuple[list[Tensor], list[Tensor]]:
    """Weights as torch initialises a linear layer, U(±1/√width); biases 0."""
    sizes = [width, *training.hidden, outputs]
    weights, biases = [], []
    for before, after in pairwise(sizes):
        bound = before**-0.5
        drawn = torch.empty(training.folds, before, after).uniform_(-bound, bound)
        weights.append(drawn.to(training.device).requires_grad_())
        biases.append(torch.zeros(training.folds, 1, after, device=training.device).requires_grad_())
    return weights, biases


def _forward(features: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], dropout: float = 0.0) -> Tensor:
    """Leaky ReLU between the layers, as in the paper; features (folds, inputs, width)."""
    values = features
    for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if index:
            values = F.dropout(F.leaky_relu(values, _SLOPE), dropout, training=dropout > 0)
        values = torch.baddbmm(bias, values, weight)
    return values
