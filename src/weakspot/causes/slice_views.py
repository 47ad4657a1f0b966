"""What is taken of each image for rules about errors: measures, metadata, and what the model shows of it."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weakspot.causes.error_probes import BY_SIZE
from weakspot.causes.heat_maps import of_unit_length
from weakspot.causes.sketches import sketched, worth_sketching
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.layers import Layer
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation, Setting
from weakspot.core.rows import RowTable
from weakspot.core.taps import Tap
from weakspot.data.image_measures import image_measures, measurable
from weakspot.data.metadata_rows import metadata_rows
from weakspot.relevance import Winners, hudd
from weakspot.relevance.need import LayerRelevance
from weakspot.slices import View

SliceSource = Literal["traits", "confusions", "features", "layer statistics", "heat maps", "outputs", "embedding"]
SOURCES: tuple[SliceSource, ...] = (
    "traits",
    "confusions",
    "features",
    "layer statistics",
    "heat maps",
    "outputs",
    "embedding",
)
"""Where rules may come from."""
WITHOUT_RELEVANCE = tuple(source for source in SOURCES if source != "heat maps")
"""Those that need no backward pass."""
KEYS = {
    "features": "view.features",
    "layer statistics": "view.statistics",
    "heat maps": "view.relevance",
    "outputs": "view.outputs",
    "embedding": "view.embedding",
}
"""The columns of rows that hold a view."""
MOST_VALUES = 2048
"""Of more values in a view, so many at even distances are kept."""
HEAT_VALUES = 1021
"""Heat maps of more than twice so many values are kept as sketches of so many."""
_WEIGHING = re.compile(r"(^|[._])(q|k|query|key|to_q|to_k|q_proj|k_proj|q_lin|k_lin|qkv|in_proj)($|[._#])")
"""Names of the queries and keys of attention, which only weigh: rules of relevance give all of it to the values."""


@dataclass(frozen=True)
class SliceWish:
    """What is taken of each image. The options are those of `ErrorSlices`."""

    sources: tuple[SliceSource, ...]
    measures: bool
    embedding: tuple[str, ...]

    def taps(self, setting: Setting) -> dict[str, Tap]:
        """What is taken of the model's layers, by source."""
        return view_taps(setting.layers, self.sources)

    def attribution(self, setting: Setting) -> LayerRelevance | None:
        """The heat map of the prediction, where it is asked for and there is a layer to take it of."""
        layer = heat_layer(setting.layers) if "heat maps" in self.sources else None
        start = Winners() if setting.task == "segmentation" else None
        return None if layer is None else LayerRelevance(Tap((layer,), side="input"), method=hudd(), start=start)

    def needs(self, setting: Setting) -> Needs:
        """The outputs, and of a model that can be looked into its features, statistics and heat maps."""
        return Needs(taps=tuple(self.taps(setting).values()), attribution=self.attribution(setting))

    def columns(self, seen: Observation, setting: Setting) -> dict[str, Any]:
        """Metadata, measures and views as columns of rows."""
        own = embedding_columns(seen.metadata, self.embedding)
        known = {name: column for name, column in seen.metadata.items() if name not in own}
        columns: dict[str, Any] = dict(metadata_rows(known))
        if self.measures and measurable(seen.inputs):
            columns |= {measure_key(name): values for name, values in image_measures(seen.inputs).items()}
        for name, tap in self.taps(setting).items():
            columns[KEYS[name]] = _some(seen.channels(tap).mean.float())
        if relevance := self.attribution(setting):
            columns[KEYS["heat maps"]] = heat_view(next(iter(seen.relevance(relevance).values())))
        if "outputs" in self.sources and not setting.layers:
            columns[KEYS["outputs"]] = _outputs(seen, setting)
        if own and "embedding" in self.sources:
            columns[KEYS["embedding"]] = _joined(own, seen.ids)
        return columns


def measure_key(measure: str) -> str:
    """The column of rows that holds a measure."""
    return f"measure.{measure.replace(' ', '_')}"


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


def heat_layer(layers: Sequence[Layer]) -> str | None:
    """Of which layer heat maps are compared: the last one with positions, but no query or key of attention."""
    spread = [layer for layer in layers if layer.weighted and len(layer.shape) > 1 and len(layer.input_shape) > 1]
    usable = [layer.label for layer in spread if not _WEIGHING.search(layer.name)]
    return usable[-1] if usable else None


def embedding_columns(metadata: Mapping[str, Any], patterns: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The columns of metadata that an embedding is made of: names, or patterns such as "emb_*"."""
    chosen: dict[str, NDArray[Any]] = {}
    for pattern in patterns:
        named = [name for name in metadata if fnmatch.fnmatchcase(name, pattern)]
        if not named:
            have = ", ".join(list(metadata)[:8]) or "none"
            raise ConfigError(
                f"embedding names {pattern!r}, and no column of the metadata is called so: there is {have}"
            )
        chosen |= {name: np.asarray(metadata[name]) for name in named}
    odd = [name for name, column in chosen.items() if column.dtype.kind not in "biuf" or column.ndim not in (1, 2)]
    if odd:
        raise ConfigError(
            f"embedding names {odd[0]!r}, which holds no numbers: expected one or several for each sample"
        )
    return chosen


def _joined(columns: Mapping[str, NDArray[Any]], ids: Sequence[str]) -> NDArray[np.float32]:
    values = np.concatenate([each.reshape(len(ids), -1).astype(np.float32) for each in columns.values()], axis=1)
    unknown = np.flatnonzero(~np.isfinite(values).all(1))
    if len(unknown):
        raise DataError(f"the embedding of sample {ids[unknown[0]]!r} is not finite: give one for every sample")
    return values


def _some(values: Tensor) -> Tensor:
    count = values.shape[1]
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_VALUES)).round().astype(np.int64))
    return values if len(kept) == count else values[:, kept.tolist()]


def heat_view(relevance: Tensor) -> Tensor:
    """Of unit length, small."""
    maps = of_unit_length(relevance.float()).flatten(1)
    return sketched(maps, HEAT_VALUES) if worth_sketching(maps.shape[1], HEAT_VALUES) else maps


def _outputs(seen: Observation, setting: Setting) -> Tensor:
    """Probabilities, or what the model gives where there are none."""
    known = setting.task not in BY_SIZE and setting.scores is not None
    values = (seen.probabilities if known else seen.outputs).float().flatten(1)
    return _some(torch.nan_to_num(values))


def views_of(rows: RowTable, order: NDArray[np.int64]) -> tuple[list[View], dict[str, str]]:
    """The views of all images, in this order, and those that say nothing with the reason why."""
    views, left_out = [], {}
    for name, key in KEYS.items():
        if key not in rows:
            continue
        values = np.asarray(rows[key])[order]
        if name == "heat maps" and not np.any(values, axis=1).mean() > 0.5:
            left_out[name] = "they are zero for half of the images or more: no relevance reaches the layer"
        else:
            views.append(View(name, values))
    return views, left_out
