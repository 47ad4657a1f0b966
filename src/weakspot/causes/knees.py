"""Where a curve bends (its knee, by Kneedle): chooses the number of clusters."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.causes.distances import Floats

Bend = Literal["score", "gradient"]
"""Where the knee is sought: in the score itself, or in its gradient, as the released code does."""


def knee(x: np.ndarray, y: np.ndarray, *, sensitivity: float = 1.0) -> int:
    """The place of the knee of a curve that rises ever less steeply: Kneedle [satopaa2011].

    Both axes are scaled to [0, 1]. The knee is the first maximum of the curve's height above the diagonal after which
    it falls by `sensitivity` mean steps in x before it rises to another; where it never falls so far, the highest.

    >>> x = np.arange(2.0, 20.0)
    >>> x[knee(x, -1 / x)]
    np.float64(6.0)
    """
    if len(x) < 3 or np.ptp(y) == 0:
        return 0
    across = (x - x.min()) / np.ptp(x)
    above = (y - y.min()) / np.ptp(y) - across
    fall = sensitivity * np.diff(across).mean()
    highest = None
    for index in range(len(above) - 1):
        if _is_maximum(above, index):
            highest = index
        elif highest is not None and above[index] <= min(above[index - 1], above[index + 1]):
            highest = None  # past a minimum nothing counts before the next maximum
        if highest is not None and above[index + 1] < above[highest] - fall:
            return highest
    return int(above.argmax())


def _is_maximum(values: np.ndarray, index: int) -> bool:
    return bool(values[index] >= max(values[max(index - 1, 0)], values[index + 1]))


def gradient(values: np.ndarray) -> Floats:
    """The slope per step, accurate to fourth order inside and by single differences for two places at either end.

    g_i = (f_{i−2} − 8 f_{i−1} + 8 f_{i+1} − f_{i+2}) / 12

    >>> gradient(np.arange(6.0) ** 2)[2:-2].tolist()
    [4.0, 6.0]
    """
    values = np.asarray(values, dtype=np.float64)
    slope = np.empty_like(values)
    slope[:2], slope[-2:] = values[1:3] - values[:2], values[-2:] - values[-3:-1]
    slope[2:-2] = (values[:-4] - 8 * values[1:-3] + 8 * values[3:-1] - values[4:]) / 12
    return slope


def chosen_clusters(counts: NDArray[np.int64], scores: Floats, *, bend: Bend = "score") -> int:
    """The number of clusters at the knee of the score [fahmy2021].

    bend: "score", the knee of the falling score; "gradient", the knee of its rising gradient, as the released code has
        it. Fewer than five scores have no gradient.
    """
    use_gradient = bend == "gradient" and len(scores) >= 5
    return int(counts[knee(counts, gradient(scores) if use_gradient else -scores)])
