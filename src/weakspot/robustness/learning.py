"""What detectors learn from training inputs, and how a learnt one judges: plain functions of columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from weakspot.core.finding import Finding
from weakspot.looks import Neighbour
from weakspot.robustness.evaluation import Calls, baselines
from weakspot.robustness.gathering import Manner, fresh_looks
from weakspot.robustness.network import Fitted, Learning, Network, NothingToLearnError, fit
from weakspot.robustness.thresholds import RULES, best_f1_threshold
from weakspot.statistics.calibration import logistic, platt_scaling, reliability

NETWORKS = ("white_box", "queries", "together")
"""The detectors that are networks, in the order of what they must see."""
_BLOCK = 8192
Mode = Literal["white_box", "queries", "together", "black_box"]
"""What may judge an input at run time."""
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Learnt:
    """What was learnt of the training inputs: networks, and thresholds of λ and of the highest probability."""

    fitted: Mapping[str, Fitted]
    thresholds: Mapping[str, float]
    """Of −λ under "black_box", of −(highest probability) under "max_softmax"."""
    diversity_odds: np.ndarray | None = None
    """Slope and offset from −λ to the log-odds of being weak."""

    def held_out(self, columns: Columns) -> list[Calls]:
        """What each detector says of training inputs that it was not trained on."""
        calls = [
            Calls(name, fitted.held_out, fitted.held_out >= fitted.network.threshold, probability=True)
            for name, fitted in self.fitted.items()
        ]
        return [*calls, *threshold_calls(columns, self.thresholds)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as arrays, for a Finding."""
        networks = {
            key: values for name, fitted in self.fitted.items() for key, values in fitted.network.arrays(name).items()
        }
        odds = {} if self.diversity_odds is None else {"diversity_odds": self.diversity_odds}
        cut = {f"{name}_threshold": np.array(value) for name, value in self.thresholds.items()}
        return {**networks, **cut, **odds}


def learn(
    columns: Columns,
    right: np.ndarray,
    cutoff: float,
    queries: int,
    learning: Learning,
    *,
    rule: str = "quantile",
) -> Learnt:
    """All detectors that the columns allow.

    columns: "features" (inputs, neurons), "queries" (inputs, width), "diversity", "confidence" (inputs,). right
    (inputs, looks + 1), the original first. DeepRobust-W learns from all looks, the others from those that were no
    queries.
    """
    if len(right) < 2 * learning.folds:
        raise NothingToLearnError(f"{len(right)} training inputs cannot be cut into {learning.folds} folds: give more")
    accuracy, fresh = right.mean(1), right[:, fresh_looks(queries, right.shape[1] - 1)].mean(1)
    seen = seen_by(columns)
    truth = {name: accuracy if name == "white_box" else fresh for name in seen}
    fitted = {name: fit(seen[name], truth[name], cutoff, learning) for name in seen}
    thresholds, odds = {}, None
    if "confidence" in columns:
        thresholds["max_softmax"] = best_f1_threshold(-columns["confidence"], fresh <= cutoff)
    if queries and "diversity" in columns:
        thresholds["black_box"] = RULES[rule](-columns["diversity"], fresh <= cutoff)
        odds = platt_scaling(-columns["diversity"], fresh <= cutoff)
    return Learnt(fitted, thresholds, odds)


def seen_by(columns: Columns) -> dict[str, np.ndarray]:
    """What each network sees of the inputs, by its name; those are left out that would see something not there."""
    seen = {"white_box": columns.get("features"), "queries": columns.get("queries")}
    present = {name: values for name, values in seen.items() if values is not None}
    if len(present) == len(seen):
        present["together"] = np.concatenate([present["white_box"], present["queries"]], 1)
    return present


def threshold_calls(columns: Columns, thresholds: Mapping[str, float]) -> list[Calls]:
    """What the detectors say that are a threshold of one number."""
    scores = {"black_box": "diversity", "max_softmax": "confidence"}
    chosen = {name: -columns[of] for name, of in scores.items() if name in thresholds and of in columns}
    return [Calls(name, score, score >= thresholds[name]) for name, score in chosen.items()]


@dataclass(frozen=True)
class Detector:
    """The detectors that a Finding of `WeakDetector` holds, ready to judge."""

    finding: Finding

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options with which it was trained."""
        given: Mapping[str, Any] = self.finding.provenance["parameters"]
        return given

    @cached_property
    def networks(self) -> dict[str, Network]:
        """The trained networks by their names."""
        arrays = self.finding.arrays
        return {name: Network.of(arrays, name) for name in NETWORKS if f"{name}_calibration" in arrays}

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of λ and of the highest probability."""
        arrays = self.finding.arrays
        names = ("black_box", "max_softmax")
        return {name: float(arrays[f"{name}_threshold"]) for name in names if f"{name}_threshold" in arrays}

    @property
    def mean_squared_error(self) -> float:
        """Of the training inputs, for numbers; 0 for classes."""
        return float(self.finding.arrays.get("mean_squared_error", np.zeros(())))

    @property
    def why_none(self) -> str | None:
        """Why nothing could be learnt, where there is no detector."""
        noted = self.finding.summary.get("detector")
        return None if noted is None else noted.about

    @property
    def best(self) -> str:
        """The detector that sees most."""
        return next(name for name in ("together", "queries", "white_box") if name in self.networks)

    def manner(self, *, looks: int | None = None, black_box: bool = False) -> Manner:
        """How it looks at an input; with so many looks in all, or only those it needs."""
        asked = self.parameters
        layers = asked["layers"]
        return Manner(
            Neighbour.of(self.finding),
            asked["queries"] if looks is None else looks,
            asked["queries"],
            None if black_box or layers is None else layers if isinstance(layers, str) else tuple(layers),
        )

    @property
    def modes(self) -> list[str]:
        """Which of them can judge an input at run time."""
        return [*self.networks, *(["black_box"] if "diversity_odds" in self.finding.arrays else [])]

    def judged(self, mode: Mode, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """How probably each input is weak, and whether it is called so; quick for few inputs."""
        if mode == "black_box":
            score, (slope, offset) = -columns["diversity"], self.finding.arrays["diversity_odds"]
            return logistic(score * slope + offset), score >= self.thresholds["black_box"]
        network = self.networks[mode]
        probability = network.at_once(seen_by(columns)[mode])
        return probability, probability >= network.threshold

    def calls(self, columns: Columns, order: np.ndarray) -> list[Calls]:
        """What every detector says of the inputs in this order; features are read block by block."""
        said: dict[str, list[np.ndarray]] = {}
        for start in range(0, len(order), _BLOCK):
            block = order[start : start + _BLOCK]
            seen = seen_by({name: columns[name][block] for name in ("features", "queries") if name in columns})
            for name, values in seen.items():
                if name in self.networks:
                    said.setdefault(name, []).append(self.networks[name].probability(values))
        whole = {name: np.concatenate(parts) for name, parts in said.items()}
        calls = [Calls(name, p, p >= self.networks[name].threshold, probability=True) for name, p in whole.items()]
        return [*calls, *threshold_calls(small_columns(columns, order), self.thresholds)]


def small_columns(columns: Columns, order: np.ndarray) -> dict[str, np.ndarray]:
    """What is one number per input, in this order."""
    return {name: np.asarray(columns[name])[order] for name in ("diversity", "confidence") if name in columns}


def evaluated_calls(detector: Detector, ids: Sequence[str], columns: Columns, order: np.ndarray) -> list[Calls]:
    """What the detectors say, and the baselines with as many flagged at random as the best of them flags.

    `ids` are those of the inputs in the order that is asked for.
    """
    said = detector.calls(columns, order)
    flagged = next(int(entry.flagged.sum()) for entry in said if entry.method == detector.best)
    beside = baselines(
        ids,
        small_columns(columns, order).get("confidence", np.full(len(ids), np.nan)),
        cutoff=detector.parameters["cutoff"],
        tuned=detector.thresholds.get("max_softmax", 0.0),
        flagged=flagged,
        seed=detector.parameters["seed"],
    )
    wanted = beside if "confidence" in columns else [each for each in beside if each.method in ("random", "flag_all")]
    return [*(entry for entry in said if entry.method != "max_softmax"), *wanted]


def reliability_arrays(calls: Sequence[Calls], weak: np.ndarray) -> dict[str, np.ndarray]:
    """Said, found and number of inputs of each bin, three rows, of every detector that gives a probability."""
    told = {entry.method: reliability(entry.score, weak) for entry in calls if entry.probability}
    return {f"{name}_reliability": np.stack([r.said, r.found, r.inputs.astype(float)]) for name, r in told.items()}
