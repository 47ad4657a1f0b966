"""The Finding of retraining: a row per method, repeat and root-cause cluster, and the verdicts on the differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.groups import NUMBER, Groups, declared
from weakspot.estimates import interval_estimate
from weakspot.repair.effects import Effect, mcnemar, repeated_effect
from weakspot.repair.outputs import RETRAINING, RETRAINING_OF_NUMBERS
from weakspot.statistics.clustered import effective_size
from weakspot.statistics.intervals import wilson_interval

NAME = "causes.retraining"
UNSAFE = "unsafe set"
NO_VERDICT = "none: chosen by the answers before"
"""Of what was correct before accuracy can only fall, of errors only rise: that shows nothing of the retraining."""
_KEYS = {
    "unsafe set": "unsafe_set",
    "random images": "random_images",
    "random images repeated": "random_images_repeated",
    "failing images": "failing_images",
    "training set alone": "training_set_alone",
}


@dataclass
class MethodScores:
    """The scores of a method's models, one per repeat, and how many samples each was trained on besides."""

    rows: list[np.ndarray] = field(default_factory=list)
    added: list[int] = field(default_factory=list)

    def add(self, scores: np.ndarray, added: int) -> None:
        """One more repeat."""
        self.rows.append(scores)
        self.added.append(added)

    @property
    def scores(self) -> np.ndarray:
        """Correct or not (boolean), or the error, shape (repeats, samples)."""
        return np.stack(self.rows)


def retraining_finding(
    ids: Sequence[str],
    before: np.ndarray,
    outcomes: Mapping[str, MethodScores],
    causes: Mapping[str, int],
    *,
    groups: Groups | None = None,
    confidence: float = 0.95,
) -> Finding:
    """The Finding `causes.retraining`.

    ids: of the test samples.
    before: whether each was predicted correctly before, or its error.
    outcomes: the scores after training, by method.
    causes: the root-cause cluster of test samples that were predicted incorrectly.
    groups: what the test samples belong to, where some belong together; intervals then go by group.
    """
    parts, names = _parts(ids, before, causes), None if groups is None else groups.names
    outputs = RETRAINING if before.dtype == bool else RETRAINING_OF_NUMBERS
    counted = {} if groups is None else {NUMBER: groups.estimate()}
    rows = [
        row for method, outcome in outcomes.items() for row in _rows(method, outcome, before, parts, names, confidence)
    ]
    return Finding(
        name=NAME,
        about="What retraining on the unsafe set changes, beside labelling as many other images (Fahmy et al. 2021).",
        summary={**_summary(before, outcomes, names, confidence), **counted},
        table=table_of({name: [row[name] for row in rows] for name in rows[0]}),
        arrays={
            "id": np.asarray(ids, dtype=np.str_),
            "before": before,
            **{f"after-{_KEYS[method]}": outcome.scores for method, outcome in outcomes.items()},
        },
        outputs=outputs if groups is None else declared(outputs, by_sample=False),
    )


def _parts(ids: Sequence[str], before: np.ndarray, causes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Which test samples belong to all, to those predicted correctly before, to each cluster."""
    cluster = np.array([causes.get(name, -1) for name in ids])
    parts = {"all": np.ones(len(ids), dtype=bool)}
    if before.dtype == bool and before.any():
        parts["correct before"] = before
    numbered = {
        f"cluster {number}" if number else "alone": cluster == number for number in sorted(set(causes.values()))
    }
    return parts | {name: members for name, members in numbered.items() if members.any()}


def _rows(
    method: str,
    outcome: MethodScores,
    before: np.ndarray,
    parts: Mapping[str, np.ndarray],
    groups: np.ndarray | None,
    confidence: float,
) -> Iterator[dict[str, Any]]:
    """For each part of the test set the mean of the repeats ("all"), then every repeat."""
    repeats = [("all", outcome.scores)] + [(str(r + 1), row[None]) for r, row in enumerate(outcome.rows)]
    for name, members in parts.items():
        for repeat, scores in repeats:
            old, new = np.broadcast_to(before[members], scores[:, members].shape), scores[:, members]
            belongs = None if groups is None else groups[members]
            effect = repeated_effect(old, new, groups=belongs, confidence=confidence)
            yield {
                "method": method,
                "repeat": repeat,
                "part": name,
                "images": int(members.sum()),
                "before": float(old.mean()),
                "after": float(new.mean()),
                "difference": effect.difference,
                "low": effect.low,
                "high": effect.high,
                "verdict": effect.verdict if name == "all" else NO_VERDICT,
                **_changes(old, new, tested=groups is None),
            }


def _changes(old: np.ndarray, new: np.ndarray, *, tested: bool) -> dict[str, Any]:
    """How many samples are fixed and broken per repeat, with McNemar's p-value of one repeat; nothing for numbers."""
    if old.dtype != bool:
        return {}
    fixed, broken = ((one & ~other).sum(1).mean() for one, other in ((new, old), (old, new)))
    chance = mcnemar(int(fixed), int(broken)) if len(old) == 1 and tested else np.nan
    return {"fixed": float(fixed), "broken": float(broken), "p_value": chance}


def _summary(
    before: np.ndarray, outcomes: Mapping[str, MethodScores], groups: np.ndarray | None, confidence: float
) -> dict[str, Estimate]:
    unsafe = outcomes[UNSAFE].scores
    word = "accuracy" if before.dtype == bool else "mean error"
    gain = repeated_effect(np.broadcast_to(before, unsafe.shape), unsafe, groups=groups, confidence=confidence)
    summary = {
        "verdict": Estimate(gain.verdict, about="the model retrained on the unsafe set, against the one before"),
        "difference": gain.estimate(f"{word} after less before, mean of the repeats"),
        "before": _level(before[None], f"{word} before", groups, confidence),
        "after": _level(unsafe, f"{word} after, mean of the repeats", groups, confidence),
    }
    for method, outcome in outcomes.items():
        if method != UNSAFE:
            effect = repeated_effect(outcome.scores, unsafe, groups=groups, confidence=confidence)
            level = _level(outcome.scores, f"{word} after, {method}", groups, confidence)
            summary |= _against(method, effect, level, word)
    added = ", ".join(f"{method} {np.mean(outcome.added):.0f}" for method, outcome in outcomes.items())
    return {
        **summary,
        "added": Estimate(added, about="samples that each method trains on besides the training set"),
        "repeats": Estimate(len(unsafe), about=_of_repeats(len(unsafe))),
        "inputs": Estimate(len(before), about="test samples by which the models are compared"),
        **({} if len(outcomes) > 1 else _alone()),
    }


def _against(method: str, effect: Effect, level: Estimate, word: str) -> dict[str, Estimate]:
    key = _KEYS[method]
    return {
        f"after_{key}": level,
        f"over_{key}": effect.estimate(f"{word} with the unsafe set less that with {method}"),
        f"verdict_{key}": Estimate(effect.verdict, about=f"the unsafe set, against {method}"),
    }


def _of_repeats(repeats: int) -> str:
    return "trainings of each method" + ("; the intervals say nothing of how trainings differ" if repeats == 1 else "")


def _alone() -> dict[str, Estimate]:
    about = "no baseline: whether other images would have helped as much is not known"
    return {"baselines": Estimate("none", about=about)}


def _level(scores: np.ndarray, about: str, groups: np.ndarray | None, confidence: float) -> Estimate:
    """The mean; for shares with Wilson's interval, as if the mean count were one count."""
    if scores.dtype != bool:
        return Estimate(float(scores.mean()), about=about)
    part = 1.0
    if groups is not None:
        part = effective_size(scores.mean(0) - scores.mean(), groups, confidence=confidence) / scores.shape[1]
    interval = wilson_interval(scores.sum(1).mean() * part, scores.shape[1] * part, confidence=confidence)
    return interval_estimate(scores.mean(), interval, about, confidence=confidence)
