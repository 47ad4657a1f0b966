"""How long a fit will take, from training each method once on the lesions of a few cases."""

import time
from dataclasses import replace

import numpy as np

from weakspot.core.errors import DataError
from weakspot.lesions.gcn import Learning
from weakspot.lesions.lesion_model import BEST, Calibration, FittedLesionModel, LesionModel
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.methods import NETWORKS, TRAINED, Trained, known_methods, train


def tried_fit(
    lesions: LesionSet, learning: Learning, *, method: str, folds: int, share: float
) -> tuple[FittedLesionModel, float]:
    """A model that serves to try what follows, and the seconds that the fit of all lesions will take.

    Cross-validation trains a method `folds` times on (folds − 1)/folds of the lesions, and then once on all. Networks
    are trained for one epoch here; time grows with lesions and epochs.

    share: how many times more cases there are than those tried.
    """
    if len(lesions) < 2:
        raise DataError(
            f"{len(lesions)} lesions are in the cases tried, so how long the fit takes cannot be told: leave fit out, "
            "or examine at once"
        )
    some, every, quick = _of_both_kinds(lesions), np.arange(len(lesions)), replace(learning, epochs=1)
    trained, total = dict[str, Trained](), 0.0
    for name in (name for name in known_methods(lesions) if name in TRAINED):
        begun = time.perf_counter()
        trained[name] = train(name, some, every, quick)
        seconds = time.perf_counter() - begun
        times = folds if method in (BEST, name) else 1
        total += seconds * times * share * (learning.epochs if name in NETWORKS else 1)
    calibration = Calibration(False, 1.0, 0.0, 0, 0)
    cases = tuple(np.unique(lesions.case).tolist())
    model = LesionModel("entropy_mean", trained, learning.readout, calibration, cases)
    return FittedLesionModel(model, np.full(len(lesions), np.nan)), total


def _of_both_kinds(lesions: LesionSet) -> LesionSet:
    """The same lesions, every other one taken for false where all are of one kind: time does not depend on it."""
    if 0 < lesions.false_positive.sum() < len(lesions):
        return lesions
    return replace(lesions, columns={**lesions.columns, "true_positive": np.arange(len(lesions)) % 2 == 0})
