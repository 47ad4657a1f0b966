"""Linear models on z-scored features of lesions: logistic regression and least squares."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """Weights on z-scored features, and an offset."""

    centre: Floats
    scale: Floats
    weights: Floats
    """One per feature, and the offset."""

    def outputs(self, features: Floats) -> Floats:
        """The model's value for each lesion: a logit after `fit_logistic`."""
        return np.asarray(_standard(features, self.centre, self.scale) @ self.weights)


def fit_logistic(features: Floats, wrong: NDArray[np.bool_]) -> Linear:
    """Logistic regression of being a false positive, with scikit-learn's usual penalty of 1 on z-scored features."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(wrong)) < 2:
        raise DataError(
            "all lesions are true positives, or all are false ones: a model cannot learn to tell them apart"
        )
    centre, scale = _spread(features)
    fitted = LogisticRegression(max_iter=1000).fit(_standard(features, centre, scale)[:, :-1], wrong)
    return Linear(centre, scale, np.append(fitted.coef_[0], fitted.intercept_[0]))


def fit_least_squares(features: Floats, target: Floats) -> Linear:
    """Least squares of a number, such as the adjusted IoU, on z-scored features."""
    centre, scale = _spread(features)
    weights = np.linalg.lstsq(_standard(features, centre, scale), target, rcond=None)[0]
    return Linear(centre, scale, np.asarray(weights, dtype=np.float64))


def _spread(features: Floats) -> tuple[Floats, Floats]:
    spread = features.std(0)
    return np.asarray(features.mean(0)), np.where(spread > 0, spread, 1.0)


def _standard(features: Floats, centre: Floats, scale: Floats) -> Floats:
    standard = (features - centre) / scale
    return np.column_stack([standard, np.ones(len(standard))])
