"""Fits a guard on held-out labelled inputs, cut in three: a reference, a part to learn from, a part to set thresholds.

After maximum softmax (Hendrycks and Gimpel 2017), energy (Liu et al. 2020), maximum logit (Hendrycks et al. 2022),
Mahalanobis (Lee et al. 2018) and nearest-neighbour distances (Sun et al. 2022), split conformal prediction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from weakspot.core.stateless_random import draw_keys
from weakspot.robustness.guard_runtime import FORMAT, GuardModule, conformity
from weakspot.robustness.metrics_promises import NEVER, Names, OperatingPoint, conformal_quantile, risk_levels

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CONFIDENCE = ("max_softmax", "margin", "entropy", "energy", "max_logit")
STRANGENESS = ("mahalanobis", "knn", "pixels")
SETS = ("lac", "aps", "raps")
PARTS = (0.4, 0.6)
"""Where the reference ends, and where the part to learn from does."""
PENALTY, FREE = 0.01, 5
"""Of RAPS: the penalty per class beyond the first five (Angelopoulos et al. 2020)."""
_BLOCK = 256
_WEIGHT_OF_ERRORS = 0.1
"""C of the logistic regression: few errors should not part the weights far."""
_MOST_NEIGHBOURS = 5000
"""Reference inputs among which the nearest are sought."""


class NoGuardError(Exception):
    """A guard cannot be fitted on these inputs; the message says why, and what to do."""


@dataclass(frozen=True)
class GuardInputs:
    """What a guard sees of some inputs; columns may lie on disk and are read block by block.

    ids: in this order.
    outputs: of the model (inputs, classes).
    statistics: of the inputs, as `input_statistics` gives them.
    features: of a layer (inputs, neurons), if one is read.
    order: which row of the columns each input has.
    """

    ids: NDArray[np.str_]
    outputs: np.ndarray
    statistics: np.ndarray
    features: np.ndarray | None
    order: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, chosen: Flags | NDArray[np.intp]) -> "GuardInputs":
        """Some of the inputs."""
        return GuardInputs(self.ids[chosen], self.outputs, self.statistics, self.features, self.order[chosen])

    def blocks(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Statistics, outputs and features of some hundred inputs at a time."""
        for start in range(0, len(self), _BLOCK):
            rows = self.order[start : start + _BLOCK]
            features = None if self.features is None else _doubles(self.features[rows])
            yield _doubles(self.statistics[rows]), _doubles(self.outputs[rows]), features


@dataclass(frozen=True)
class GuardSettings:
    """How a guard is fitted.

    point: what its threshold is chosen by.
    miss: how often a prediction set may miss the true class.
    sets: how they are made.
    unfamiliar: the share of inputs like the calibration data that may be called unfamiliar.
    neighbours: k of the nearest-neighbour distance.
    probabilities: whether the outputs are probabilities.
    input_shape: of one input.
    layer: where the features are, as the runtime finds it.
    least: inputs that each part must have.
    """

    point: OperatingPoint
    miss: float
    sets: str
    unfamiliar: float
    neighbours: int
    probabilities: bool
    input_shape: tuple[int, ...]
    layer: Mapping[str, Any] | None
    least: int = 30
    seed: int = 0


def parts(names: Sequence[str], seed: int) -> NDArray[np.intp]:
    """0 for the reference, 1 for what is learnt from, 2 for where thresholds are set; by the names alone.

    names: the ids, or what the inputs belong to: those of one name stay together.
    """
    place = np.empty(len(names))
    place[np.argsort(draw_keys(names, seed), kind="stable")] = (np.arange(len(names)) + 0.5) / len(names)
    _, number = np.unique(np.asarray(names), return_inverse=True)
    middle = np.bincount(number, place) / np.bincount(number)
    return np.searchsorted(PARTS, middle[number])


@dataclass(frozen=True)
class FittedGuard:
    """A guard, with every score of the inputs that its thresholds were set on.

    scores: by name; "guard" is the probability of being wrong.
    wrong: which of these predictions are.
    levels: by score, the thresholds that may be tried for a promised risk.
    groups: what each of these inputs belongs to, where some belong together.
    """

    guard: GuardModule
    scores: Mapping[str, Floats]
    wrong: Flags
    levels: Mapping[str, Floats]
    groups: Names


def fit_guard(
    inputs: GuardInputs,
    targets: NDArray[np.int64],
    settings: GuardSettings,
    belongs: NDArray[np.str_] | None = None,
) -> FittedGuard:
    """Fit a guard on inputs and their targets, the numbers of their classes.

    belongs: what each input belongs to, such as a film, where some belong together: the parts are cut between them,
        and what is promised is promised for an input of a new one.
    """
    part = parts((inputs.ids if belongs is None else belongs).tolist(), settings.seed)
    sizes = np.bincount(part, minlength=3)
    if sizes.min() < settings.least:
        least = int(np.ceil(settings.least / np.diff([0, *PARTS, 1]).min()))
        raise NoGuardError(f"{len(inputs)} calibration inputs are too few: expected {least} or more")
    reference, learnt, held_out = ((inputs.rows(part == own), targets[part == own]) for own in range(3))
    bare = GuardModule(_about(settings, reference[0]), {})
    placed = GuardModule(bare.about, _reference(bare, *reference))
    scores, wrong = _scores(placed, learnt[0]), wrong_predictions(*learnt)
    judging = GuardModule(placed.about | _inputs_of(scores), dict(placed.named_buffers()) | _weights(scores, wrong))
    before, after = (scored(judging, chosen[0]) for chosen in (learnt, held_out))
    wrong, levels = wrong_predictions(*held_out), {name: risk_levels(scores) for name, scores in before.items()}
    groups = None if belongs is None else belongs[part == 2]
    quantiles = set_quantiles(*held_out, settings, groups)
    about = judging.about | {
        "flag_threshold": flag_threshold(settings.point, after["guard"], wrong, levels["guard"], groups),
        "set": {"method": settings.sets, "quantile": quantiles[settings.sets], "penalty": PENALTY, "free": FREE},
        "set_quantiles": quantiles,
        "promise": {"aim": settings.point.aim, "value": settings.point.value, "coverage": 1 - settings.miss},
    }
    seen = {f"calibration_{kind}": torch.from_numpy(np.sort(after[name])) for kind, name in _WATCHED.items()}
    return FittedGuard(GuardModule(about, dict(judging.named_buffers()) | seen), after, wrong, levels, groups)


def flag_threshold(point: OperatingPoint, scores: Floats, wrong: Flags, levels: Floats, groups: Names) -> float:
    """Where predictions are flagged; refused where there are too few groups to promise it for a new one."""
    threshold = point.threshold(scores, wrong, levels, groups)
    if groups is None or point.aim not in ("recall", "false_alarms") or abs(threshold) < NEVER:
        return threshold
    miss = point.value if point.aim == "false_alarms" else 1 - point.value
    kind, chosen = ("correct", ~wrong) if point.aim == "false_alarms" else ("incorrect", wrong)
    raise NoGuardError(
        f"{point.aim.replace('_', ' ')} of {point.value:g} cannot be promised for a new group: that takes "
        f"{int(np.ceil(1 / miss - 1e-9)) - 1} groups with {kind} predictions in the part where thresholds are set (two "
        f"fifths of the groups), and there are {len(np.unique(groups[chosen]))}: give more groups, or promise less"
    )


_WATCHED = {"wrong": "guard", "unusual": "unusual"}
"""The scores whose drift is watched."""


def _about(settings: GuardSettings, reference: GuardInputs) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "outputs": "probabilities" if settings.probabilities else "logits",
        "classes": int(reference.outputs.shape[1]),
        "input_shape": list(settings.input_shape),
        "layer": None if settings.layer is None else dict(settings.layer),
        "neighbours": min(settings.neighbours, len(reference)),
        "unfamiliar_rate": settings.unfamiliar,
    }


def _reference(guard: GuardModule, inputs: GuardInputs, targets: NDArray[np.int64]) -> dict[str, Tensor]:
    """Where the reference inputs lie: what they look like, and where the classes are among the features."""
    mean, whitening = _gaussian(guard.appearance(_doubles(inputs.statistics[inputs.order])).numpy())
    tensors = {"pixel_mean": mean, "pixel_whitening": whitening}
    if inputs.features is None:
        return tensors
    features = _doubles(inputs.features[inputs.order])
    classes, number = np.unique(targets, return_inverse=True)
    values = features.numpy()
    means = np.stack([values[number == own].mean(0) for own in range(len(classes))])
    _, feature_whitening = _gaussian(values - means[number])
    bank = torch.nn.functional.normalize(features[:_MOST_NEIGHBOURS], dim=1)
    return {
        **tensors, "feature_whitening": feature_whitening, "class_means": torch.from_numpy(means), "bank": bank
    }  # fmt: skip


def wrong_predictions(inputs: GuardInputs, targets: NDArray[np.int64]) -> Flags:
    """Which predictions are wrong; refused where all or none are."""
    wrong = np.concatenate([outputs.argmax(1).numpy() for _, outputs, _ in inputs.blocks()]) != targets
    if wrong.all() or not wrong.any():
        kind, advice = ("wrong", "check the order of the classes") if wrong.all() else ("correct", "give more")
        raise NoGuardError(
            f"all {len(wrong)} predictions of a part of the calibration inputs are {kind}, so there is nothing to tell "
            f"apart: {advice}"
        )
    return np.asarray(wrong)


def _inputs_of(scores: Mapping[str, Floats]) -> dict[str, Any]:
    """Which scores are weighed, confidence always among them, and which say how unusual an input is."""
    weighed = [name for name in (*CONFIDENCE, *STRANGENESS) if name in scores]
    return {"inputs": weighed, "strangeness": [name for name in STRANGENESS if name in scores]}


def _weights(scores: Mapping[str, Floats], wrong: Flags) -> dict[str, Tensor]:
    """A logistic regression on the scores, and how the distances spread."""
    names = _inputs_of(scores)
    columns = np.stack([scores[name] for name in names["inputs"]], 1)
    strange = np.stack([scores[name] for name in names["strangeness"]], 1)
    centre, scale = columns.mean(0), _positive(columns.std(0))
    fit = LogisticRegression(C=_WEIGHT_OF_ERRORS, max_iter=1000).fit((columns - centre) / scale, wrong)
    arrays = {
        "score_mean": centre,
        "score_scale": scale,
        "score_low": columns.min(0),
        "score_high": columns.max(0),
        "weights": fit.coef_[0],
        "offset": fit.intercept_[0],
        "strange_mean": strange.mean(0),
        "strange_scale": _positive(strange.std(0)),
    }
    return {name: torch.as_tensor(np.asarray(values, dtype=np.float64)) for name, values in arrays.items()}


def set_quantiles(
    inputs: GuardInputs, targets: NDArray[np.int64], settings: GuardSettings, groups: Names = None
) -> dict[str, float]:
    """The conformal quantile of every kind of prediction set."""
    probabilities = class_probabilities(inputs, probabilities=settings.probabilities)
    own = torch.from_numpy(targets)[:, None]
    fits = {kind: conformity(probabilities, kind, PENALTY, FREE).gather(1, own)[:, 0].numpy() for kind in SETS}
    return {kind: conformal_quantile(scores, settings.miss, groups) for kind, scores in fits.items()}


def class_probabilities(inputs: GuardInputs, *, probabilities: bool) -> Tensor:
    """Of all classes, (inputs, classes), as the runtime computes them."""
    outputs = torch.cat([outputs for _, outputs, _ in inputs.blocks()])
    return (outputs.clamp_min(1e-12).log() if probabilities else outputs).softmax(1)


def _scores(guard: GuardModule, inputs: GuardInputs) -> dict[str, Floats]:
    blocks = [guard.scored(*block) for block in inputs.blocks()]
    return {name: torch.cat([block[name] for block in blocks]).numpy() for name in blocks[0]}


def scored(guard: GuardModule, inputs: GuardInputs) -> dict[str, Floats]:
    """Every score of the inputs, with "guard", the probability of being wrong, and "unusual"."""
    scores = _scores(guard, inputs)
    wrong, unusual = guard.judged({name: torch.from_numpy(values) for name, values in scores.items()})
    return {**scores, "guard": wrong.numpy(), "unusual": unusual.numpy()}


def _gaussian(values: Floats) -> tuple[Tensor, Tensor]:
    """The mean, and the matrix that gives values unit covariance; the covariance is shrunk (Ledoit and Wolf 2004)."""
    spread = _positive(values.std(0))
    covariance, _ = ledoit_wolf(values / spread)
    variances, axes = np.linalg.eigh(covariance)
    whitening = (axes / np.sqrt(np.maximum(variances, 1e-6 * variances.max()))) / spread[:, None]
    return torch.from_numpy(values.mean(0)), torch.from_numpy(np.ascontiguousarray(whitening))


def _positive(spread: Floats) -> Floats:
    return np.where(spread > 0, spread, 1.0)


def _doubles(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64))
