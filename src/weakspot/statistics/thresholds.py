"""Which shares are low: those below a threshold, or at or below it. Ties are common where shares have few values."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import ConfigError

LowIf = Literal["below", "at_or_below"]
"""What of a share exactly at the threshold."""


def low_shares(shares: ArrayLike, threshold: ArrayLike, low_if: LowIf = "below") -> NDArray[np.bool_]:
    """Which shares are low.

    >>> low_shares([0.5, 0.75, 0.76], 0.75).tolist(), low_shares([0.5, 0.75, 0.76], 0.75, "at_or_below").tolist()
    ([True, False, False], [True, True, False])
    """
    values, limit = np.asarray(shares, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    return np.asarray(values < limit if low_if == "below" else values <= limit)


def check_threshold(threshold: float, low_if: LowIf) -> None:
    """Refuse a threshold that makes every share low, or none."""
    if low_if not in get_args(LowIf):
        raise ConfigError(f"{low_if!r} is not known: choose one of {', '.join(get_args(LowIf))}")
    if low_if == "below" and not 0 < threshold <= 1:
        raise ConfigError(f"expected 0 < threshold ≤ 1, as no share lies below 0; got {threshold}")
    if low_if == "at_or_below" and not 0 <= threshold < 1:
        raise ConfigError(f"expected 0 ≤ threshold < 1, as every share lies at or below 1; got {threshold}")
