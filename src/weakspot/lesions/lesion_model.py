"""The lesion model: learnt from lesions of cases with masks, it gives others the probability of a false positive.

Both graph networks of Lambert et al. 2022 and the two baselines that need training. One method gives the probability
of a false positive; it is calibrated (Platt 1999) on patients that its networks were not trained on.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Finding
from weakspot.core.stateless_random import draw_keys
from weakspot.lesions.baselines import (
    DIRECT,
    METASEG,
    Direct,
    MetaSeg,
    MetaSegMethod,
    direct_uncertainties,
    fit_metaseg_classification,
    fit_metaseg_regression,
)
from weakspot.lesions.gcn import Learning, TrainedGcn, train_gcn
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.metrics_evaluation import accuracy_confidence
from weakspot.statistics.calibration import brier_score, logistic, platt_scaling

Floats = NDArray[np.float64]
Method = Literal["gcn_classification", "gcn_regression", Direct, MetaSegMethod]
METHODS: tuple[Method, ...] = get_args(Method)
LOGITS = ("gcn_classification", "metaseg_classification")
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

    method: Method
    networks: Mapping[str, TrainedGcn]
    metaseg: Mapping[str, MetaSeg]
    calibration: Calibration
    cases: tuple[str, ...]
    """The cases it was trained on."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """How the lesions were cut and sampled; lesions that it is to judge must be cut alike."""
    patient: str | None = None
    """The pattern that named the patients of these cases."""

    def scores(self, lesions: LesionSet) -> dict[str, Floats]:
        """The score of each method, higher for more uncertain lesions; logits where a method gives logits."""
        scores = direct_uncertainties(lesions.columns)
        outputs = {name: net.outputs(lesions.graphs) for name, net in self.networks.items()}
        outputs |= {name: model.outputs(lesions.columns) for name, model in self.metaseg.items()}
        scores |= {name: values if name in LOGITS else 1 - values for name, values in outputs.items()}
        return {name: scores[name] for name in METHODS}

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers as arrays, for a Finding or a file."""
        parts = {name: network.arrays for name, network in self.networks.items()}
        parts |= {name: vars(model) for name, model in self.metaseg.items()}
        return {f"{name}.{key}": values for name, part in parts.items() for key, values in part.items()}

    def about(self) -> dict[str, Any]:
        """All that is no array, as plain JSON."""
        return {
            "method": self.method,
            "readout": self.networks["gcn_classification"].readout,
            "calibration": asdict(self.calibration),
            "cases": list(self.cases),
            "parameters": dict(self.parameters),
            "patient": self.patient,
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
            kinds = {"gcn_classification": "classification", "gcn_regression": "regression"}
            networks = {
                name: TrainedGcn(cast(Any, kind), about["readout"], parts[name]) for name, kind in kinds.items()
            }
            metaseg = {name: MetaSeg(**parts[name]) for name in METASEG}
            calibration = Calibration(**about["calibration"])
            cases, patient = tuple(about["cases"]), about.get("patient")
            return cls(about["method"], networks, metaseg, calibration, cases, about["parameters"], patient)
        except (KeyError, TypeError) as error:
            raise DataError(f"this is no lesion model: {error} is missing or odd; fit it again") from error


def uncertainties(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """The scores as the paper has them: of classifiers the probability of a false positive, not yet calibrated."""
    return {name: logistic(values) if name in LOGITS else values for name, values in scores.items()}


def fit_lesion_model(
    lesions: LesionSet,
    patients: np.ndarray,
    *,
    method: Method = "gcn_classification",
    learning: Learning | None = None,
    folds: int = 5,
    parameters: Mapping[str, Any] | None = None,
    patient: str | None = None,
) -> tuple[LesionModel, Floats]:
    """Train all methods on all lesions, and calibrate one on patients that it was not trained on; with those scores.

    patients: of each lesion. For the calibration the method is trained `folds` times more, each time without one part
        of the patients, and scores that part.
    parameters, patient: what the model is to note of its cases.
    """
    how = learning or Learning()
    if method not in METHODS:
        raise ConfigError(f"method {method!r} is not known: choose one of {', '.join(METHODS)}")
    if folds < 2:
        raise ConfigError(f"folds is {folds}: expected 2 or more, so that some patients are held out")
    _check_both(lesions)
    graphs, wrong, iou = lesions.graphs, lesions.false_positive, lesions.adjusted_iou
    held_out = held_out_scores(lesions, patients, method, how, folds=folds)
    model = LesionModel(
        method,
        {
            "gcn_classification": train_gcn(graphs, wrong, "classification", how),
            "gcn_regression": train_gcn(graphs, iou, "regression", how),
        },
        {
            "metaseg_classification": fit_metaseg_classification(lesions.columns, wrong),
            "metaseg_regression": fit_metaseg_regression(lesions.columns, iou),
        },
        calibrate(held_out, wrong),
        tuple(np.unique(lesions.case).tolist()),
        dict(parameters or {}),
        patient,
    )
    return model, held_out


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


def held_out_scores(
    lesions: LesionSet, patients: np.ndarray, method: Method, learning: Learning, *, folds: int
) -> Floats:
    """The score of each lesion by a method that was trained without its patient; shape (lesions,).

    A method that needs no training scores as always. With one patient alone nothing can be held out: all NaN.
    """
    if method in DIRECT:
        return direct_uncertainties(lesions.columns)[method]
    part = fold_of(patients, folds, learning.seed)
    scores = np.full(len(lesions), np.nan)
    for number in np.unique(part):
        out = part == number
        wrong = lesions.false_positive[~out]
        if 0 < wrong.sum() < len(wrong):
            scores[out] = _trained_score(lesions, ~out, out, method, learning)
    return scores


def _trained_score(lesions: LesionSet, inside: np.ndarray, out: np.ndarray, method: Method, how: Learning) -> Floats:
    regression = method.endswith("regression")
    target: np.ndarray = lesions.adjusted_iou if regression else lesions.false_positive
    if method in METASEG:
        learnt, judged = ({name: values[part] for name, values in lesions.columns.items()} for part in (inside, out))
        fit = fit_metaseg_regression if regression else fit_metaseg_classification
        outputs = fit(learnt, target[inside]).outputs(judged)
    else:
        graphs = [lesions.graphs[lesion] for lesion in np.flatnonzero(inside)]
        trained = train_gcn(graphs, target[inside], "regression" if regression else "classification", how)
        outputs = trained.outputs([lesions.graphs[lesion] for lesion in np.flatnonzero(out)])
    return 1 - outputs if regression else outputs


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
