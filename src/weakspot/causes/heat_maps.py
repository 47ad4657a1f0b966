"""Heat maps as rows: what each neuron contributed to the prediction, kept small enough for thousands of images."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.causes.distances import HeatMapRows, let_go
from weakspot.causes.sketches import sketch_error, sketched, worth_sketching
from weakspot.core.errors import DataError
from weakspot.core.needs import Attributed, RelevanceRequest
from weakspot.core.rows import RowTable
from weakspot.core.tasks import output_errors
from weakspot.relevance import GradientTimesInput, Method, epsilon_plus, hudd
from weakspot.relevance.need import LayerRelevance
from weakspot.relevance.starts import Start

Precision = Literal["auto", "float32", "float16"]
METHODS: dict[str, Callable[[], Method]] = {
    "hudd": hudd,
    "epsilon_plus": epsilon_plus,
    "epsilon_plus_redistributed": partial(epsilon_plus, bias="redistributed"),
    "gradient": GradientTimesInput,
}
SMALL = 1 << 14
"""Up to so many values a whole heat map is kept in 32 bits: that costs little, and rounding averages out over many."""

HEAT_SIDE = 32
"""Of the small pictures of heat maps, in pixels."""


@dataclass(frozen=True)
class WorstKeypoint:
    """Both coordinates of the keypoint that is furthest from its target."""

    targets: Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        """1 for these two outputs, else 0, in the shape of the outputs."""
        worst = output_errors(outputs, self.targets, "keypoints").argmax(1)
        chosen = F.one_hot(worst, outputs[0].numel() // 2).repeat_interleave(2, 1)
        return chosen.to(outputs).view_as(outputs)


@dataclass(frozen=True)
class WorstOutput:
    """The number that is furthest from its target."""

    targets: Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        """1 for this output, else 0, in the shape of the outputs."""
        errors = output_errors(outputs, self.targets, "regression")
        return F.one_hot(errors.argmax(1), errors.shape[1]).to(outputs).view_as(outputs)


@dataclass(frozen=True)
class WrongPositions:
    """The predicted class at each position of a segmentation that is predicted incorrectly."""

    targets: Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        """1 for these outputs, else 0, in the shape of the outputs."""
        predicted = outputs.argmax(1, keepdim=True)
        wrong = (predicted != self.targets[:, None]).to(outputs)
        return torch.zeros_like(outputs).scatter_(1, predicted, wrong)


STARTS: dict[str, Callable[[Tensor], Start]] = {
    "regression": WorstOutput,
    "keypoints": WorstKeypoint,
    "segmentation": WrongPositions,
}
"""What is explained of tasks whose predictions are incorrect where their error is large."""


@dataclass(frozen=True)
class ErrorRelevance(LayerRelevance):
    """Relevance for the incorrect prediction: the winning class or label, the worst number, the wrong positions."""

    def attribute(self, request: RelevanceRequest) -> Attributed:
        """One forward pass under observation, and one backward pass from the incorrect prediction."""
        explained = self
        if self.start is None and request.task in STARTS:
            if request.targets is None:
                raise DataError("what is predicted worst cannot be known without targets: add them to the data")
            explained = replace(self, start=STARTS[request.task](request.targets))
        return super(ErrorRelevance, explained).attribute(request)


def summed_positions(relevance: Tensor, most: int) -> Tensor:
    """Maps (samples, channels, positions …) with at most `most` positions a side: neighbours' relevance is summed.

    >>> summed_positions(torch.ones(1, 1, 4, 4), 2).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """
    if relevance.ndim < 4:
        return relevance
    for dim in range(2, relevance.ndim):
        side = relevance.shape[dim]
        if side > most:
            target = torch.arange(side, device=relevance.device) * most // side
            shape = [*relevance.shape[:dim], most, *relevance.shape[dim + 1 :]]
            relevance = relevance.new_zeros(shape).index_add_(dim, target, relevance)
    return relevance


def stored(relevance: Tensor, precision: Precision, *, small: int = SMALL) -> tuple[Tensor, Tensor]:
    """Heat maps as they are kept, and what to multiply each with.

    In 16 bits each map is first divided by its largest magnitude, so that none is too large or too small for them;
    "auto" does so for maps of more than `small` values.
    """
    values = relevance.float()
    if precision == "float32" or (precision == "auto" and values[0].numel() <= small):
        return values, values.new_ones(len(values))
    largest = values.flatten(1).abs().amax(1)
    largest = torch.where(largest > 0, largest, 1.0)
    scaled = values / largest.view(-1, *[1] * (values.ndim - 1))
    return scaled.half(), largest


def of_unit_length(relevance: Tensor) -> Tensor:
    """Each map over its Euclidean length, so that where relevance lies counts and how much there is does not.

    >>> of_unit_length(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = relevance.float().flatten(1).norm(dim=1).view(-1, *[1] * (relevance.ndim - 1))
    return relevance / torch.where(lengths > 0, lengths, 1.0)


def columns_of(
    relevance: Mapping[str, Tensor],
    precision: Precision,
    positions: int | None,
    *,
    unit_length: bool = False,
    sketch: int | None = None,
) -> dict[str, Tensor]:
    """The columns of the rows: a heat map and its scale for every layer, by the layer's number.

    sketch: maps of more than twice so many values are kept as sketches, with the length that the whole map has.
    """
    columns = {}
    for number, values in enumerate(relevance.values()):
        reduced = values if positions is None else summed_positions(values, positions)
        if unit_length:
            reduced = of_unit_length(reduced)
        small = SMALL
        if sketch is not None and worth_sketching(reduced[0].numel(), sketch):
            columns[f"length{number}"] = reduced.float().flatten(1).norm(dim=1)
            reduced, small = sketched(reduced, sketch), 0
        columns[f"map{number}"], columns[f"scale{number}"] = stored(reduced, precision, small=small)
    return columns


def heat_pictures(relevance: Tensor) -> dict[str, Tensor]:
    """Small pictures of maps (samples, channels, height, width), as a column of the rows; none of other shapes.

    The channels are added up, neighbouring positions averaged, and each map is divided by its largest magnitude.
    """
    if relevance.ndim != 4:
        return {}
    summed = relevance.float().sum(1, keepdim=True)
    scale = min(1.0, HEAT_SIDE / max(summed.shape[2:]))
    small = max(1, round(summed.shape[2] * scale)), max(1, round(summed.shape[3] * scale))
    reduced = (summed if scale == 1 else F.adaptive_avg_pool2d(summed, small))[:, 0]
    largest = reduced.flatten(1).abs().amax(1)[:, None, None]
    return {"heat_picture": (reduced / torch.where(largest > 0, largest, 1.0)).half()}


def heat_map_rows(rows: RowTable, layer: int, order: np.ndarray) -> HeatMapRows:
    """The heat maps of one layer, where they lie on disk, in the given order of the records."""
    return HeatMapRows(tuple(rows.blocks(f"map{layer}")), np.asarray(rows[f"scale{layer}"], dtype=np.float64), order)


def error_of_sketches(rows: RowTable, layer: int, maps: HeatMapRows) -> float:
    """How far the lengths of a layer's sketches lie from those of the whole maps; NaN where these are kept."""
    if f"length{layer}" not in rows:
        return float("nan")
    exact = np.asarray(rows[f"length{layer}"], dtype=np.float64)[maps.order]
    return sketch_error(exact, np.sqrt(np.square(maps.values()).sum(1)))


def on_disk(blocks: Sequence[np.ndarray], order: np.ndarray) -> np.ndarray:
    """The rows of all blocks in the given order, in a file without a name that goes when the array goes."""
    rows = HeatMapRows(tuple(blocks), np.ones(len(order)), order)
    gathered = _unnamed_file((len(order), *rows.shape), blocks[0].dtype)
    flat = gathered.reshape(len(order), -1)
    for block, first, mine in rows.parts:
        for some in np.array_split(mine, max(1, block.nbytes >> 26)):
            flat[some] = block[order[some] - first]
            let_go(block)
            let_go(gathered)
    return gathered


def parked(array: np.ndarray) -> np.ndarray:
    """A copy in a file without a name: for a Finding that holds more than the memory should."""
    copied = _unnamed_file(array.shape, array.dtype)
    copied[...] = array
    let_go(copied)
    return copied


def _unnamed_file(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if not np.prod(shape):
        return np.zeros(shape, dtype)  # an empty file cannot be mapped
    with tempfile.TemporaryFile(prefix="weakspot-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
