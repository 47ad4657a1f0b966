"""The methods that Lambert et al. 2022 compare with in Table 2: nine ways to measure the uncertainty of a lesion.

Mean and log-sum of three measures over the lesion's voxels (Nair et al. 2018), its size, and MetaSeg (Rottmann et al.
2020): logistic and linear regression on the three means and the size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]

METASEG_FEATURES = ("entropy", "variance", "pcs", "voxels")
Direct = Literal["entropy_mean", "entropy_logsum", "variance_mean", "variance_logsum", "pcs_mean", "pcs_logsum", "size"]
DIRECT: tuple[str, ...] = get_args(Direct)
MetaSegMethod = Literal["metaseg_classification", "metaseg_regression"]
METASEG: tuple[str, ...] = get_args(MetaSegMethod)


def direct_uncertainties(columns: Mapping[str, np.ndarray]) -> dict[str, Floats]:
    """The seven that need no training, higher for more uncertain lesions; each of shape (lesions,).

    columns: mean measures, log-sums and voxels of each lesion, as `case_lesions` gives them.
    """
    means = {"entropy_mean": columns["entropy"], "variance_mean": columns["variance"], "pcs_mean": 1 - columns["pcs"]}
    logsums = {name: columns[name] for name in ("entropy_logsum", "variance_logsum", "pcs_logsum")}
    uncertainties = {**means, **logsums, "size": 1 / np.asarray(columns["voxels"], dtype=np.float64)}
    return {name: np.asarray(uncertainties[name], dtype=np.float64) for name in DIRECT}


@dataclass(frozen=True)
class MetaSeg:
    """A linear model on z-scored features: the logit of being a false positive, or the adjusted IoU."""

    centre: Floats
    scale: Floats
    weights: Floats
    """One per feature, and the offset."""

    def outputs(self, columns: Mapping[str, np.ndarray]) -> Floats:
        """The linear model's value for each lesion."""
        return np.asarray(_standard(columns, self.centre, self.scale) @ self.weights)


def fit_metaseg_classification(columns: Mapping[str, np.ndarray], false_positive: np.ndarray) -> MetaSeg:
    """Logistic regression of being a false positive, with scikit-learn's usual penalty of 1 on z-scored features."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = _spread(columns)
    if len(np.unique(false_positive)) < 2:
        raise DataError(
            "all lesions are true positives, or all are false ones: a model cannot learn to tell them apart"
        )
    fitted = LogisticRegression(max_iter=1000).fit(_standard(columns, centre, scale)[:, :-1], false_positive)
    return MetaSeg(centre, scale, np.append(fitted.coef_[0], fitted.intercept_[0]))


def fit_metaseg_regression(columns: Mapping[str, np.ndarray], iou: np.ndarray) -> MetaSeg:
    """Least squares of the adjusted IoU on z-scored features."""
    centre, scale = _spread(columns)
    weights = np.linalg.lstsq(_standard(columns, centre, scale), iou, rcond=None)[0]
    return MetaSeg(centre, scale, weights)


def _features(columns: Mapping[str, np.ndarray]) -> Floats:
    return np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in METASEG_FEATURES])


def _spread(columns: Mapping[str, np.ndarray]) -> tuple[Floats, Floats]:
    features = _features(columns)
    spread = features.std(0)
    return features.mean(0), np.where(spread > 0, spread, 1.0)


def _standard(columns: Mapping[str, np.ndarray], centre: Floats, scale: Floats) -> Floats:
    standard = (_features(columns) - centre) / scale
    return np.column_stack([standard, np.ones(len(standard))])
