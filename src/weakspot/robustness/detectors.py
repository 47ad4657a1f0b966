"""Trains all detectors of weak inputs (the network: `detector_network.py`) and applies them (Zhong et al. 2021)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from weakspot.core.finding import Finding
from weakspot.looks import Neighbour
from weakspot.robustness.detector_data import DetectorLooks, fresh_looks
from weakspot.robustness.detector_network import (
    DetectorNetwork,
    DetectorTraining,
    FittedNetwork,
    NothingToLearnError,
    fit_network,
)
from weakspot.robustness.metrics import Bools, weak_inputs
from weakspot.robustness.metrics_detection import MethodOutput, baselines
from weakspot.robustness.metrics_promises import OperatingPoint
from weakspot.robustness.score_thresholds import NO_LEVELS, RULES, best_f1_threshold, chosen_threshold
from weakspot.statistics.calibration import logistic, platt_scaling, reliability

NETWORKS = ("white_box", "queries", "together")
"""The detectors that are networks."""
_BLOCK = 8192
Mode = Literal["white_box", "queries", "together", "black_box"]
"""The detectors that can be used at run time."""
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class FittedDetectors:
    """All detectors that were trained.

    networks: by their names.
    thresholds: score thresholds of −λ ("black_box") and of −(highest probability) ("max_softmax").
    concentration_odds: slope and offset from −λ to the log-odds of being weak.
    point: what all thresholds were chosen by, if not each by its own rule.
    """

    networks: Mapping[str, FittedNetwork]
    thresholds: Mapping[str, float]
    concentration_odds: np.ndarray | None = None
    point: OperatingPoint | None = None

    def held_out(self, columns: Columns, weak: Bools, groups: np.ndarray | None = None) -> list[MethodOutput]:
        """What each detector says of training inputs that it was not trained on.

        With an operating point, the threshold for each fold is chosen on the others; no group is in two folds.
        """
        outputs = [
            MethodOutput(name, fitted.held_out, fitted.held_out >= fitted.network.threshold, probability=True)
            for name, fitted in self.networks.items()
        ]
        outputs += threshold_outputs(columns, self.thresholds)
        if self.point is None:
            return outputs
        point = self.point
        return [replace(one, flagged=point.held_out(one.score, weak, NO_LEVELS, groups)) for one in outputs]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays, for a Finding."""
        networks = {
            key: values for name, fitted in self.networks.items() for key, values in fitted.network.arrays(name).items()
        }
        odds = {} if self.concentration_odds is None else {"concentration_odds": self.concentration_odds}
        thresholds = {f"{name}_threshold": np.array(value) for name, value in self.thresholds.items()}
        return {**networks, **thresholds, **odds}


def fit_detectors(
    columns: Columns,
    correct: np.ndarray,
    threshold: float,
    queries: int,
    training: DetectorTraining,
    *,
    rule: str = "quantile",
    point: OperatingPoint | None = None,
    groups: np.ndarray | None = None,
) -> FittedDetectors:
    """Train all detectors that the columns allow.

    columns: "features" (inputs, neurons), "queries" (inputs, width), "concentration", "confidence" (inputs,).
    correct: which looks are correct, (inputs, looks + 1), the original first. DeepRobust-W learns from all looks, the
        others from those that are no queries.
    point: what the thresholds of all detectors are chosen by, on held-out inputs and by the looks that are no queries;
        without it, those of the networks as `training` says, of λ by `rule`.
    groups: what each input belongs to, where some belong together: none is in two folds.
    """
    if len(correct) < 2 * training.folds:
        raise NothingToLearnError(
            f"{len(correct)} training inputs cannot be cut into {training.folds} folds: give more"
        )
    all_looks = correct.mean(1)
    fresh = correct[:, fresh_looks(queries, correct.shape[1] - 1)].mean(1)
    networks = {
        name: fit_network(features, all_looks if name == "white_box" else fresh, threshold, training, groups)
        for name, features in network_features(columns).items()
    }
    weak = weak_inputs(fresh, threshold, training.weak_if)
    thresholds, odds = {}, None
    if "confidence" in columns:
        thresholds["max_softmax"] = chosen_threshold(-columns["confidence"], weak, best_f1_threshold, point, groups)
    if queries and "concentration" in columns:
        thresholds["black_box"] = chosen_threshold(-columns["concentration"], weak, RULES[rule], point, groups)
        odds = platt_scaling(-columns["concentration"], weak)
    if point is not None:
        networks = {name: _at_point(fitted, weak, point, groups) for name, fitted in networks.items()}
    return FittedDetectors(networks, thresholds, odds, point)


def _at_point(fitted: FittedNetwork, weak: Bools, point: OperatingPoint, groups: np.ndarray | None) -> FittedNetwork:
    threshold = point.threshold(fitted.held_out, weak, NO_LEVELS, groups)
    return replace(fitted, network=replace(fitted.network, threshold=threshold))


def network_features(columns: Columns) -> dict[str, np.ndarray]:
    """The features that each network sees, by its name; networks whose features are missing are left out."""
    features = {"white_box": columns.get("features"), "queries": columns.get("queries")}
    present = {name: values for name, values in features.items() if values is not None}
    if len(present) == len(features):
        present["together"] = np.concatenate([present["white_box"], present["queries"]], 1)
    return present


def threshold_outputs(columns: Columns, thresholds: Mapping[str, float]) -> list[MethodOutput]:
    """What the methods say that are a threshold of one number."""
    scored = {"black_box": "concentration", "max_softmax": "confidence"}
    scores = {name: -columns[of] for name, of in scored.items() if name in thresholds and of in columns}
    return [MethodOutput(name, score, score >= thresholds[name]) for name, score in scores.items()]


@dataclass(frozen=True)
class Detector:
    """The detectors that a Finding of `WeakDetector` holds, ready to use."""

    finding: Finding

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options with which it was trained."""
        parameters: Mapping[str, Any] = self.finding.provenance["parameters"]
        return parameters

    def weak(self, accuracy: np.ndarray) -> Bools:
        """Which inputs are weak by their neighbour accuracy, as when it was trained."""
        # before there was a choice, an input exactly at the threshold was weak
        return weak_inputs(accuracy, self.parameters["threshold"], self.parameters.get("weak_if", "at_or_below"))

    @cached_property
    def networks(self) -> dict[str, DetectorNetwork]:
        """The trained networks by their names."""
        arrays = self.finding.arrays
        return {name: DetectorNetwork.of(arrays, name) for name in NETWORKS if f"{name}_calibration" in arrays}

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """The score thresholds of −λ and of −(highest probability)."""
        arrays = self.finding.arrays
        names = ("black_box", "max_softmax")
        return {name: float(arrays[f"{name}_threshold"]) for name in names if f"{name}_threshold" in arrays}

    @property
    def mean_squared_error(self) -> float:
        """Of the training inputs, for a regression; 0 for classes."""
        return float(self.finding.arrays.get("mean_squared_error", np.zeros(())))

    @property
    def why_none(self) -> str | None:
        """Why nothing could be learnt, where there is no detector."""
        reason = self.finding.summary.get("detector")
        return None if reason is None else reason.about

    @property
    def best(self) -> str:
        """The detector that sees most."""
        return next(name for name in ("together", "queries", "white_box") if name in self.networks)

    def looks(self, *, looks: int | None = None, black_box: bool = False) -> DetectorLooks:
        """Which looks it takes at an input.

        looks: how many neighbours in all; by default only the queries.
        black_box: whether it reads no layer.
        """
        queries, layers = self.parameters["queries"], self.parameters["layers"]
        return DetectorLooks(
            Neighbour.of(self.finding),
            queries if looks is None else looks,
            queries,
            None if black_box or layers is None else layers if isinstance(layers, str) else tuple(layers),
        )

    @property
    def modes(self) -> list[str]:
        """The detectors that it has for run time."""
        return [*self.networks, *(["black_box"] if "concentration_odds" in self.finding.arrays else [])]

    def judge(self, mode: Mode, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """The probability that each input is weak, and whether it is flagged; fast for few inputs."""
        if mode == "black_box":
            score, (slope, offset) = -columns["concentration"], self.finding.arrays["concentration_odds"]
            return logistic(score * slope + offset), score >= self.thresholds["black_box"]
        network = self.networks[mode]
        probability = network.at_once(network_features(columns)[mode])
        return probability, probability >= network.threshold

    def outputs(self, columns: Columns, order: np.ndarray) -> list[MethodOutput]:
        """What every detector says of the inputs in this order; features are read block by block."""
        parts: dict[str, list[np.ndarray]] = {}
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            block = {name: columns[name][rows] for name in ("features", "queries") if name in columns}
            for name, features in network_features(block).items():
                if name in self.networks:
                    parts.setdefault(name, []).append(self.networks[name].probability(features))
        probabilities = {name: np.concatenate(blocks) for name, blocks in parts.items()}
        outputs = [
            MethodOutput(name, p, p >= self.networks[name].threshold, probability=True)
            for name, p in probabilities.items()
        ]
        return [*outputs, *threshold_outputs(scalar_columns(columns, order), self.thresholds)]


def scalar_columns(columns: Columns, order: np.ndarray) -> dict[str, np.ndarray]:
    """The columns with one number per input, in this order."""
    return {name: np.asarray(columns[name])[order] for name in ("concentration", "confidence") if name in columns}


def with_baselines(detector: Detector, ids: Sequence[str], columns: Columns, order: np.ndarray) -> list[MethodOutput]:
    """What the detectors say, and the baselines; as many inputs are flagged at random as the best detector flags.

    ids: of the inputs, in `order`.
    """
    detected = detector.outputs(columns, order)
    flagged = next(int(output.flagged.sum()) for output in detected if output.method == detector.best)
    compared = baselines(
        ids,
        scalar_columns(columns, order).get("confidence", np.full(len(ids), np.nan)),
        threshold=detector.parameters["threshold"],
        tuned=detector.thresholds.get("max_softmax", 0.0),
        flagged=flagged,
        seed=detector.parameters["seed"],
    )
    without_confidence = [output for output in compared if output.method in ("random", "flag_all")]
    return [
        *(output for output in detected if output.method != "max_softmax"),
        *(compared if "confidence" in columns else without_confidence),
    ]


def reliability_arrays(outputs: Sequence[MethodOutput], weak: np.ndarray) -> dict[str, np.ndarray]:
    """Predicted probability, observed frequency and number of inputs of each bin, of every method with probabilities.

    Each array has shape (3, bins).
    """
    curves = {output.method: reliability(output.score, weak) for output in outputs if output.probability}
    return {
        f"{name}_reliability": np.stack([c.probability, c.frequency, c.inputs.astype(float)])
        for name, c in curves.items()
    }
