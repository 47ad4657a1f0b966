"""What a model's layers show of each image, where it can be looked into: its features, and statistics of its layers."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.core.layers import Layer
from weakspot.core.observation import Observation
from weakspot.core.rows import RowTable
from weakspot.core.taps import Tap
from weakspot.slices import View

SliceSource = Literal["traits", "confusions", "features", "layer statistics"]
SOURCES: tuple[SliceSource, ...] = ("traits", "confusions", "features", "layer statistics")
"""Where rules may come from."""
KEYS = {"features": "view.features", "layer statistics": "view.statistics"}
"""The columns of rows that hold a view."""
MOST_VALUES = 2048
"""Of more values in a view, so many at even distances are kept."""


def view_taps(layers: Sequence[Layer], sources: Sequence[str]) -> dict[str, Tap]:
    """What to take of these layers for each source that looks inside; nothing of a model that shows no layers.

    Features are the input of the last linear or convolution. Statistics are the channel means of every layer with
    positions, such as convolutions: of other layers a mean would be the value itself.
    """
    weighted = [layer for layer in layers if layer.weighted]
    spread = tuple(layer.label for layer in weighted if len(layer.shape) > 1)
    taps = {"features": Tap("penultimate"), "layer statistics": Tap(spread)}
    possible = {"features": bool(weighted), "layer statistics": bool(spread)}
    return {name: tap for name, tap in taps.items() if name in sources and possible[name]}


def view_columns(seen: Observation, taps: dict[str, Tap]) -> dict[str, Any]:
    """The values of each view as columns of rows."""
    columns = {}
    for name, tap in taps.items():
        values = seen.channels(tap).mean.float()
        count = values.shape[1]
        kept = np.unique(np.linspace(0, count - 1, min(count, MOST_VALUES)).round().astype(np.int64))
        columns[KEYS[name]] = values if len(kept) == count else values[:, kept.tolist()]
    return columns


def views_of(rows: RowTable, order: NDArray[np.int64]) -> list[View]:
    """The views of all images, in this order."""
    return [View(name, np.asarray(rows[key])[order]) for name, key in KEYS.items() if key in rows]
