"""The lesion model: learnt from lesions of cases with masks, it gives others the probability of a false positive.

Both graph networks of Lambert et al. 2022, simpler methods and scores that need no training. One method, by default the
best on held-out patients, gives the probability of a false positive; it is calibrated (Platt 1999) on these patients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Finding
from weakspot.core.progress import shown_progress
from weakspot.core.stateless_random import draw_keys
from weakspot.lesions.baselines import DIRECT
from weakspot.lesions.gcn import Learning, Readout
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.method_choice import MethodChoice, choose_method
from weakspot.lesions.methods import (
    METHODS,
    REGRESSIONS,
    TRAINED,
    Trained,
    arrays_of,
    known_methods,
    restored,
    score,
    train,
)
from weakspot.lesions.metrics_evaluation import accuracy_confidence
from weakspot.lesions.operating_points import KeptShare, operating_point, set_apart
from weakspot.lesions.transfer import known_features, patient_features
from weakspot.statistics.calibration import brier_score, logistic, platt_scaling

Floats = NDArray[np.float64]
BEST = "best"
"""Asks for the method that is best on held-out patients."""
LOGITS = tuple(name for name in TRAINED if name not in REGRESSIONS)
PROVENANCE = "lesion_model"
"""Under this name a Finding notes what of its model is no array."""
FEWEST = 10
"""With fewer true or false positives than this on held-out patients, scores are ranks and no probabilities."""


@dataclass(frozen=True)
class Calibration:
    """From a method's score to the probability of a false positive, or why there is none.

    slope, offset: of the log-odds.
    true, false: lesions of held-out patients that it rests on.
    brier: on these lesions, each judged without its own patient.
    area: under the accuracy–confidence curve of these lesions.
    """

    calibrated: bool
    slope: float
    offset: float
    true: int
    false: int
    brier: float | None = None
    area: float | None = None

    def probability(self, score: Floats) -> Floats:
        """The probability that each lesion is a false positive; NaN where scores are no more than ranks."""
        return logistic(self.slope * score + self.offset) if self.calibrated else np.full(len(score), np.nan)


@dataclass(frozen=True)
class LesionModel:
    """The trained methods, and the calibration of the one that was chosen."""

    method: str
    trained: Mapping[str, Trained]
    readout: Readout
    calibration: Calibration
    cases: tuple[str, ...]
    """The cases it was trained on."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """How the lesions were cut and sampled; lesions that it is to judge must be cut alike."""
    patient: str | None = None
    """The pattern that named the patients of these cases."""
    operating: KeptShare | None = None
    """Which lesions to drop, where that was asked for."""
    features: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Of the patients it learnt from, so that a shift can be seen."""

    def scores(self, lesions: LesionSet) -> dict[str, Floats]:
        """The score of each method, higher for more uncertain lesions; logits where a method gives logits."""
        every = np.arange(len(lesions))
        known = [name for name in known_methods(lesions) if name in DIRECT or name in self.trained]
        if self.method not in known:
            raise DataError(
                f"the lesion model reads what these lesions lack (method {self.method}): they were sampled by an "
                "earlier version; sample the cases again"
            )
        return {name: score(name, self.trained.get(name), lesions, every) for name in known}

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers as arrays, for a Finding or a file."""
        return {
            f"{name}.{key}": values
            for name, trained in self.trained.items()
            for key, values in arrays_of(trained).items()
        }

    def about(self) -> dict[str, Any]:
        """All that is no array, as plain JSON."""
        return {
            "method": self.method,
            "readout": self.readout,
            "calibration": asdict(self.calibration),
            "cases": list(self.cases),
            "parameters": dict(self.parameters),
            "patient": self.patient,
            "operating": None if self.operating is None else self.operating.about(),
            "features": {name: list(values) for name, values in self.features.items()},
        }

    @classmethod
    def of_finding(cls, finding: Finding) -> "LesionModel":
        """The model in a Finding of `LesionFit`."""
        about = finding.provenance.get(PROVENANCE)
        if about is None:
            raise DataError(f"{finding.name} holds no lesion model: fit one first")
        return cls.of({name: values for name, values in finding.arrays.items() if "." in name}, about)

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> "LesionModel":
        """The model that `arrays` and `about` describe."""
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, values in arrays.items():
            method, _, key = name.partition(".")
            parts.setdefault(method, {})[key] = np.asarray(values)
        try:
            trained = {name: restored(name, part, about["readout"]) for name, part in parts.items()}
            if about["method"] not in (*DIRECT, *trained):
                raise KeyError(about["method"])
            calibration = Calibration(**about["calibration"])
            cases, patient = tuple(about["cases"]), about.get("patient")
            kept = about.get("operating")
            point = None if kept is None else KeptShare.of(kept)
            rest = calibration, cases, about["parameters"], patient, point, known_features(about)
            return cls(about["method"], trained, about["readout"], *rest)
        except (KeyError, TypeError) as error:
            raise DataError(f"this is no lesion model: {error} is missing or odd; fit it again") from error


@dataclass(frozen=True)
class FittedLesionModel:
    """A lesion model with what was said of held-out patients.

    held_out: by the model's method, the score of each lesion of a model that was trained without its patient.
    choice: how the method was chosen, where that was asked for.
    """

    model: LesionModel
    held_out: Floats
    choice: MethodChoice | None = None


def uncertainties(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """The scores as the paper has them: of classifiers the probability of a false positive, not yet calibrated."""
    return {name: logistic(values) if name in LOGITS else values for name, values in scores.items()}


def fit_lesion_model(
    lesions: LesionSet,
    patients: np.ndarray,
    *,
    method: str = BEST,
    learning: Learning | None = None,
    folds: int = 5,
    parameters: Mapping[str, Any] | None = None,
    patient: str | None = None,
    keep: float | None = None,
) -> FittedLesionModel:
    """Train all methods on all lesions, and calibrate one on patients that it was not trained on.

    patients: of each lesion. For comparison and calibration a method is trained `folds` times more, each time without
        one part of the patients, and scores that part.
    method: which gives the probability; "best" compares all.
    parameters, patient: what the model is to note of its cases.
    keep: the share of the true lesions to keep of a new patient, on average at least; a third of the patients then has
        no part in training, and the threshold is set on them.
    """
    how = learning or Learning()
    if method not in (*METHODS, BEST):
        raise ConfigError(f"method {method!r} is not known: choose one of {', '.join((BEST, *METHODS))}")
    if folds < 2:
        raise ConfigError(f"folds is {folds}: expected 2 or more, so that some patients are held out")
    _check_both(lesions)
    noted: dict[str, Any] = {"parameters": parameters, "patient": patient}
    if keep is None:
        return _fitted(lesions, patients, method, how, folds, **noted)
    apart = set_apart(patients, lesions.false_positive, keep=keep, seed=how.seed)
    inside, outside = np.flatnonzero(~apart), np.flatnonzero(apart)
    rest, kept_back = lesions.chosen(inside), lesions.chosen(outside)
    _check_both(rest)
    fitted = _fitted(rest, patients[inside], method, how, folds, **noted)
    scored = fitted.model.scores(kept_back)[fitted.model.method]
    cases = tuple(np.unique(kept_back.case).tolist())
    point = operating_point(scored, kept_back.false_positive, patients[outside], keep=keep, cases=cases)
    held_out = np.full(len(lesions), np.nan)
    held_out[inside] = fitted.held_out
    model = replace(fitted.model, operating=point, cases=tuple(np.unique(lesions.case).tolist()))
    return FittedLesionModel(model, held_out, fitted.choice)


def _fitted(
    lesions: LesionSet,
    patients: np.ndarray,
    method: str,
    how: Learning,
    folds: int,
    *,
    parameters: Mapping[str, Any] | None,
    patient: str | None,
) -> FittedLesionModel:
    asked = known_methods(lesions) if method == BEST else (method,)
    progress = shown_progress()
    learning_ones = [name for name in known_methods(lesions) if name in TRAINED]
    progress.begin("training methods", total=len(asked) + len(learning_ones))
    try:
        held_out, trained = dict[str, Floats](), dict[str, Trained]()
        for name in asked:
            held_out[name] = held_out_scores(lesions, patients, name, how, folds=folds)
            progress.advance(1)
        for name in learning_ones:
            trained[name] = train(name, lesions, np.arange(len(lesions)), how)
            progress.advance(1)
    finally:
        progress.end()
    choice = choose_method(_comparable(held_out), lesions.false_positive, patients) if method == BEST else None
    taken = method if choice is None else choice.method
    model = LesionModel(
        taken,
        trained,
        how.readout,
        calibrate(held_out[taken], lesions.false_positive),
        tuple(np.unique(lesions.case).tolist()),
        dict(parameters or {}),
        patient,
        features=patient_features(lesions, patients),
    )
    return FittedLesionModel(model, held_out[taken], choice)


def _comparable(held_out: Mapping[str, Floats]) -> dict[str, Floats]:
    """Without the methods that could not be trained on any part of the patients."""
    return {name: values for name, values in held_out.items() if np.isfinite(values).any()}


def _check_both(lesions: LesionSet) -> None:
    if not len(lesions):
        raise DataError("no lesion was found in these cases: take others, or lower the threshold")
    wrong = int(lesions.false_positive.sum())
    if wrong in (0, len(lesions)):
        kind = "true" if wrong == 0 else "false"
        raise DataError(
            f"all {len(lesions)} lesions are {kind} positives: a lesion model needs both kinds, typically a few "
            "hundred lesions; take more cases, or lower the threshold"
        )


def held_out_scores(lesions: LesionSet, patients: np.ndarray, method: str, learning: Learning, *, folds: int) -> Floats:
    """The score of each lesion by a method that was trained without its patient; shape (lesions,).

    A method that needs no training scores as always. With one patient alone nothing can be held out: all NaN.
    """
    if method in DIRECT:
        return score(method, None, lesions, np.arange(len(lesions)))
    part = fold_of(patients, folds, learning.seed)
    scores = np.full(len(lesions), np.nan)
    for number in np.unique(part):
        inside, out = np.flatnonzero(part != number), np.flatnonzero(part == number)
        if 0 < lesions.false_positive[inside].sum() < len(inside):
            scores[out] = score(method, train(method, lesions, inside, learning), lesions, out)
    return scores


def fold_of(patients: np.ndarray, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each lesion: patients are dealt out in the order of a hash, so that none is in two folds."""
    names, patient_of = np.unique(patients, return_inverse=True)
    fold = np.empty(len(names), dtype=np.int64)
    fold[np.argsort(draw_keys(names.tolist(), seed))] = np.arange(len(names)) % folds
    return fold[patient_of]


def calibrate(score: Floats, false_positive: np.ndarray) -> Calibration:
    """Platt's slope and offset from held-out scores.

    Not calibrated where too few lesions of a kind were held out, or where a higher score does not mean more false
    positives: the probability would contradict the ranks.
    """
    held_out = np.isfinite(score)
    wrong = false_positive[held_out]
    true, false = int((~wrong).sum()), int(wrong.sum())
    if min(true, false) < FEWEST:
        return Calibration(False, 1.0, 0.0, true, false)
    area = accuracy_confidence(score[held_out], wrong).area
    slope, offset = platt_scaling(score[held_out], wrong).tolist()
    if slope <= 0:
        return Calibration(False, 1.0, 0.0, true, false, area=area)
    probability = logistic(slope * score[held_out] + offset)
    return Calibration(True, slope, offset, true, false, brier_score(probability, wrong), area)
