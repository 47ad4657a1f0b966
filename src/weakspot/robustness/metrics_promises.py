"""Thresholds that keep a promise on new inputs: conformal quantiles, operating points, and abstention at a given risk.

All of them are set on labelled inputs that neither the model nor the score was fitted on. Where inputs belong together,
such as the frames of a film, a promise is made for an input of a new group: each group counts once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from weakspot.core.errors import ConfigError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Names = NDArray[np.str_] | None
"""What each input belongs to; None where each stands for itself."""
Aim = Literal["recall", "precision", "false_alarms", "risk"]
AIMS = {
    "recall": "share of the incorrect predictions that are flagged",
    "precision": "share of the flagged predictions that are incorrect",
    "false_alarms": "share of the correct predictions that are flagged",
    "risk": "share of the predictions not flagged that are incorrect",
}
"""What an operating point may be chosen by."""
NEVER = 1e9
"""A threshold that no score reaches."""
RISK_LEVELS = 20
"""How many thresholds are tried for a promised risk."""
_FEWEST_FLAGGED = 10


def conformal_quantile(scores: Floats, miss: float, groups: Names = None) -> float:
    """The ⌈(n + 1)(1 − miss)⌉-th smallest score: a new one exceeds it with a probability of at most `miss`.

    `NEVER` where there are too few scores (split conformal prediction, Vovk et al. 2005, `vovk2005`). With groups, n is
    their number, and the scores of one share its one vote; the new one is of a new group (Lee et al. 2023, `lee2023`).

    >>> conformal_quantile(np.arange(1.0, 100.0), 0.05)
    95.0
    """
    names, group = np.unique(np.arange(len(scores)) if groups is None else groups, return_inverse=True)
    wanted = (len(names) + 1) * (1 - miss) - 1e-9
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum((1 / np.bincount(group))[group][order]) >= wanted
    return float(scores[order][reached.argmax()]) if reached.any() else NEVER


def recall_threshold(scores: Floats, wrong: Flags, recall: float, groups: Names = None) -> float:
    """The highest threshold that a new wrong prediction reaches with a probability of at least `recall`.

    >>> recall_threshold(np.arange(1.0, 100.0), np.ones(99, dtype=bool), 0.9)
    10.0
    """
    return -conformal_quantile(-scores[wrong], 1 - recall, _of(groups, wrong))


def false_alarm_threshold(scores: Floats, wrong: Flags, rate: float, groups: Names = None) -> float:
    """The lowest threshold that a new correct prediction exceeds with a probability of at most `rate`."""
    return float(np.nextafter(conformal_quantile(scores[~wrong], rate, _of(groups, ~wrong)), np.inf))


def precision_threshold(scores: Floats, wrong: Flags, precision: float) -> float:
    """The lowest threshold whose flagged inputs, at least ten, are wrong in that share; `NEVER` where none is."""
    order = np.argsort(-scores, kind="stable")
    flagged = np.arange(1, len(scores) + 1)
    last = np.append(np.diff(scores[order]) != 0, True)  # equal scores are flagged together
    good = last & (flagged >= _FEWEST_FLAGGED) & (np.cumsum(wrong[order]) >= precision * flagged)
    return float(scores[order][np.flatnonzero(good)[-1]]) if good.any() else NEVER


def risk_threshold(
    scores: Floats, wrong: Flags, risk: float, *, levels: Floats, confidence: float = 0.95, groups: Names = None
) -> float:
    """The highest level below which, with that confidence, at most the share `risk` of new predictions is wrong.

    Each level is tested by the binomial tail P(Bin(accepted, risk) ≤ wrong ones) at (1 − confidence)/levels, so that
    the promise holds for whichever is chosen (Geifman and El-Yaniv 2017, `geifman2017`; Angelopoulos et al. 2021,
    `angelopoulos2021`). −`NEVER`, at which everything is flagged, where no level passes. With groups, one input of each
    is drawn and counts.

    levels: thresholds that were chosen on other inputs.
    """
    if groups is not None:
        drawn = np.random.default_rng(0).permutation(len(scores))
        one = drawn[np.unique(groups[drawn], return_index=True)[1]]
        scores, wrong = scores[one], wrong[one]
    tried = np.unique(levels)
    accepted = (scores[:, None] < tried).sum(0)
    errors = (scores[wrong][:, None] < tried).sum(0)
    passed = binom.cdf(errors, accepted, risk) <= (1 - confidence) / len(tried)
    return float(tried[passed][-1]) if passed.any() else -NEVER


def _of(groups: Names, chosen: Flags) -> Names:
    return None if groups is None else groups[chosen]


def risk_levels(scores: Floats) -> Floats:
    """The levels to try: quantiles of the scores of other inputs; the last one accepts all."""
    return np.append(np.quantile(scores, np.arange(1, RISK_LEVELS) / RISK_LEVELS), NEVER)


@dataclass(frozen=True)
class OperatingPoint:
    """What a threshold is chosen by.

    aim: "recall", "precision", "false_alarms" or "risk".
    value: from 0 to 1.
    confidence: of a promised risk.
    """

    aim: Aim
    value: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.aim not in AIMS:
            raise ConfigError(f"an operating point by {self.aim!r} is not known: choose one of {', '.join(AIMS)}")
        if not 0 < self.value < 1:
            raise ConfigError(f"{self.aim} is {self.value}: expected a number between 0 and 1, such as 0.05")

    def threshold(self, scores: Floats, wrong: Flags, levels: Floats, groups: Names = None) -> float:
        """The threshold at which scores are flagged."""
        if self.aim == "risk":
            return risk_threshold(scores, wrong, self.value, levels=levels, confidence=self.confidence, groups=groups)
        if self.aim == "precision":
            return precision_threshold(scores, wrong, self.value)
        rule = recall_threshold if self.aim == "recall" else false_alarm_threshold
        return rule(scores, wrong, self.value, groups)

    def held_out(self, scores: Floats, wrong: Flags, levels: Floats, groups: Names = None, *, folds: int = 5) -> Flags:
        """What is flagged where the threshold for each fold is chosen on the others: an honest measure of the rule.

        groups: none is in two folds.
        """
        fold = np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
        flagged = np.zeros(len(scores), dtype=np.bool_)
        for number in range(folds):
            here = fold % folds == number
            limit = self.threshold(scores[~here], wrong[~here], levels, _of(groups, ~here))
            flagged[here] = scores[here] >= limit
        return flagged
