"""The methods that Lambert et al. 2022 compare with in Table 2, nine ways to measure the uncertainty of a lesion.

Mean and log-sum of three measures over the lesion's voxels (Nair et al. 2018), its size, and MetaSeg (Rottmann et al.
2020): logistic and linear regression on the three means and the size.
"""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

METASEG_FEATURES = ("entropy", "variance", "pcs", "voxels")
Direct = Literal["entropy_mean", "entropy_logsum", "variance_mean", "variance_logsum", "pcs_mean", "pcs_logsum", "size"]
STRUCTURAL = "structural"
"""1 − mean IoU of a lesion with those of single looks (Molchanova et al. 2025); not in the paper's table."""
PAPER_DIRECT: tuple[str, ...] = get_args(Direct)
DIRECT: tuple[str, ...] = (*PAPER_DIRECT, STRUCTURAL)
"""Scores that need no training."""
MetaSegMethod = Literal["metaseg_classification", "metaseg_regression"]
METASEG: tuple[str, ...] = get_args(MetaSegMethod)


def direct_uncertainties(columns: Mapping[str, np.ndarray]) -> dict[str, Floats]:
    """Those that need no training, higher for more uncertain lesions; each of shape (lesions,).

    columns: mean measures, log-sums, voxels and, of newer samples, structural uncertainty of each lesion, as
        `case_lesions` gives them.
    """
    means = {"entropy_mean": columns["entropy"], "variance_mean": columns["variance"], "pcs_mean": 1 - columns["pcs"]}
    logsums = {name: columns[name] for name in ("entropy_logsum", "variance_logsum", "pcs_logsum")}
    uncertainties = {**means, **logsums, "size": 1 / np.asarray(columns["voxels"], dtype=np.float64)}
    if STRUCTURAL in columns:
        uncertainties[STRUCTURAL] = columns[STRUCTURAL]
    return {name: np.asarray(uncertainties[name], dtype=np.float64) for name in DIRECT if name in uncertainties}


def metaseg_features(columns: Mapping[str, np.ndarray]) -> Floats:
    """MetaSeg's features of each lesion: the three mean measures and the size; shape (lesions, 4)."""
    return np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in METASEG_FEATURES])
