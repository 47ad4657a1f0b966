"""Distances between heat maps, worked out on a GPU where the model runs on one."""

import torch
from torch import Tensor

from weakspot.causes.distances import Distances, HeatMapRows, heat_map_distances, spans


def distances_on(rows: HeatMapRows, device: torch.device) -> Distances:
    """As `heat_map_distances`: in blocks of values, the products summed in 64 bits; on the device unless it is a CPU.

    >>> import numpy as np
    >>> distances_on(HeatMapRows.of(np.array([[0.0, 0.0], [3.0, 4.0]])), torch.device("cpu")).tolist()
    [5.0]
    """
    if device.type == "cpu":
        return heat_map_distances(rows)
    return condensed_distances(_products(rows, device))


def condensed_distances(products: Tensor) -> Distances:
    """From the products of all pairs of rows to their distances, condensed.

    >>> condensed_distances(torch.tensor([[0.0, 0.0], [0.0, 25.0]], dtype=torch.float64)).tolist()
    [5.0]
    """
    squares = products.diagonal()
    squares = squares[:, None] + squares - 2 * products
    first, second = torch.triu_indices(len(products), len(products), 1, device=products.device)
    between: Distances = squares[first, second].clamp_min(0).sqrt().float().cpu().numpy()
    return between


def _products(rows: HeatMapRows, device: torch.device) -> Tensor:
    total = torch.zeros((len(rows), len(rows)), dtype=torch.float64, device=device)
    for start, stop in spans(rows.size, len(rows)):
        values = torch.from_numpy(rows.values(start, stop)).to(device)
        total.addmm_(values, values.T)
    return total
