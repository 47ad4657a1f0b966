"""Distances between classes of resampled images, worked out on a GPU where the model runs on one."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weakspot.classes.membership import Members
from weakspot.classes.metrics_activation import Bits
from weakspot.classes.metrics_bootstrap import Squared, squared_distances
from weakspot.classes.metrics_distance import CANCELLED

Floats = NDArray[np.float64]

_BLOCK = 1 << 28
"""Values of one block on the device."""


def squared_on(device: torch.device) -> Squared:
    """What gives the squared distances of resampled images there."""
    return squared_distances if device.type == "cpu" else partial(resampled_distances, device)


def resampled_distances(
    device: torch.device,
    bits: Bits,
    members: Members,
    neurons: int,
    groups: Iterable[NDArray[np.float32]],
    normalise: bool,
) -> Iterator[Floats]:
    """As `squared_distances`; counts are exact, and sums are in 64 bits there too."""
    belongs = torch.from_numpy(members.toarray().T.astype(np.float32)).to(device)
    for weights in groups:
        weighted = (torch.from_numpy(weights).to(device)[:, None] * belongs).flatten(0, 1)
        counts = _counts(bits, weighted, neurons) / weighted.sum(1)[:, None]
        for probability in counts.split(len(belongs)):
            yield pair_distances(probability, normalise=normalise).cpu().numpy()


def _counts(bits: Bits, weighted: Tensor, neurons: int) -> Tensor:
    """Images that activate each neuron, as often as each row of `weighted` counts them: rows × neurons, float32."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=weighted.device)
    counts = torch.zeros((len(weighted), neurons), device=weighted.device)
    step = max(1, _BLOCK // max(1, neurons))
    for start in range(0, len(bits), step):
        packed = torch.from_numpy(np.array(bits[start : start + step])).to(weighted.device)
        active = ((packed[..., None] >> shifts) & 1).flatten(1)[:, :neurons]
        counts += weighted[:, start : start + step] @ active.float()
    return counts


def pair_distances(probability: Tensor, *, normalise: bool) -> Tensor:
    """Squared distance of every two rows a < b, as `activation_distance` works it out; NaN for a class without images.

    >>> pair_distances(torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.6, 0.8]]), normalise=False).round(decimals=6).tolist()
    [1.0]
    """
    rows = probability.double()
    rows = rows - rows.nan_to_num().mean(0)
    first, second = torch.triu_indices(len(rows), len(rows), 1, device=rows.device)
    lengths = rows.square().sum(1)
    norms = lengths[first] + lengths[second]
    squared = norms - 2 * (rows @ rows.T)[first, second]
    for some in (squared < CANCELLED * norms).nonzero()[:, 0].split(max(1, _BLOCK // max(1, 8 * rows.shape[1]))):
        squared[some] = (rows[first[some]] - rows[second[some]]).square().sum(1)
    if normalise:
        active = (probability > 0).float()
        each = active.sum(1, dtype=torch.float64)
        either = each[first] + each[second] - (active @ active.T)[first, second]
        squared = squared / either.clamp_min(1)
    return squared
