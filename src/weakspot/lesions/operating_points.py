"""Which lesions to drop so that a stated share of the true ones is kept, on average over patients.

The threshold is set on patients that had no part in training or choosing the method, so the promise holds for further
patients like them, whatever the method (conformal risk control, Angelopoulos et al. 2024,
`angelopoulos2024`).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.stateless_random import draw_keys

SHARE_APART = 1 / 3
"""The least share of the patients that is set apart for the threshold."""


@dataclass(frozen=True)
class KeptShare:
    """Lesions whose score is at most the threshold are kept.

    keep: the share of the true lesions found that is kept of a new patient, on average at least.
    patients: with true lesions, on which the threshold was set.
    kept: of their true lesions, the mean share over patients.
    removed: false positives dropped there, of `false_positives`.
    cases: those of these patients; no promise can be tested on them.
    """

    keep: float
    threshold: float
    patients: int
    kept: float
    removed: int
    false_positives: int
    cases: tuple[str, ...] = ()

    def keeps(self, score: np.ndarray) -> NDArray[np.bool_]:
        """Which lesions are kept."""
        return np.asarray(score <= self.threshold)

    def about(self) -> dict[str, Any]:
        """As plain JSON."""
        return {**asdict(self), "cases": list(self.cases)}

    @classmethod
    def of(cls, about: dict[str, Any]) -> "KeptShare":
        """From what `about` gave."""
        return cls(**{**about, "cases": tuple(about["cases"])})


def fewest_patients(keep: float) -> int:
    """How many patients with true lesions the promise takes: 19 for 95 %.

    >>> fewest_patients(0.95), fewest_patients(0.9)
    (19, 9)
    """
    if not 0 < keep < 1:
        raise ConfigError(f"keep_true is {keep}: expected a share of the true lesions between 0 and 1, such as 0.95")
    return int(np.ceil(1 / (1 - keep) - 1 - 1e-9))


def operating_point(
    score: np.ndarray, false_positive: np.ndarray, patient: np.ndarray, *, keep: float, cases: tuple[str, ...] = ()
) -> KeptShare:
    """The lowest threshold at which (Σ share of true lesions lost + 1) / (patients + 1) is at most 1 − keep.

    The share lost is that of a patient's true lesions that the segmentation found. Patients without any say nothing.
    """
    wrong = np.asarray(false_positive, dtype=np.bool_)
    owners, of = np.unique(patient[~wrong], return_inverse=True)
    if len(owners) < (fewest := fewest_patients(keep)):
        raise DataError(
            f"{len(owners)} patients with true lesions are set apart, and to keep {keep:.0%} of the true lesions takes "
            f"{fewest} or more: take more cases, or a smaller share"
        )
    true = score[~wrong]
    weight = 1 / np.bincount(of)[of]
    order = np.argsort(true, kind="stable")
    lost = np.append(weight[order][::-1].cumsum()[::-1][1:], 0.0)  # where the threshold is at each true lesion
    allowed = (1 - keep) * (len(owners) + 1) - 1
    threshold = float(true[order][int(np.flatnonzero(lost <= allowed + 1e-9)[0])])
    lost_there = np.bincount(of, weights=weight * (true > threshold))
    return KeptShare(
        keep, threshold, len(owners), float(1 - lost_there.mean()), int((score[wrong] > threshold).sum()),
        int(wrong.sum()), cases,
    )  # fmt: skip


def set_apart(patient: np.ndarray, false_positive: np.ndarray, *, keep: float, seed: int) -> NDArray[np.bool_]:
    """Which lesions are of patients set apart for the threshold: a third of those with true lesions, or what it takes.

    Patients without true lesions stay with those that train. Too few patients are refused.
    """
    with_true = np.unique(patient[~np.asarray(false_positive, dtype=np.bool_)])
    count = max(fewest_patients(keep), int(np.ceil(len(with_true) * SHARE_APART)))
    if len(with_true) < count + 2:
        raise DataError(
            f"{len(with_true)} patients have true lesions: to keep {keep:.0%} of the true lesions, {count} of them are "
            f"set apart, and two or more must be left to train: take {count + 2} or more, or a smaller share"
        )
    chosen = with_true[np.argsort(draw_keys([f"apart {name}" for name in with_true.tolist()], seed))[:count]]
    return np.isin(patient, chosen)
