"""Root causes: one pass over the error-inducing images, then clusters of what their heat maps show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from weakspot.causes.analysis import ErrorImages, study_root_causes
from weakspot.causes.blank_layers import blank
from weakspot.causes.clusters import BestBy, ClusterRecipe, Compare
from weakspot.causes.device_distances import distances_on
from weakspot.causes.distances import Distances, HeatMapRows
from weakspot.causes.error_probes import Errors
from weakspot.causes.finding_outputs import ROOT_CAUSES
from weakspot.causes.finding_parts import finding_parts, no_errors, nothing_to_compare
from weakspot.causes.heat_maps import (
    METHODS,
    ErrorRelevance,
    Precision,
    columns_of,
    error_of_sketches,
    heat_map_rows,
    heat_pictures,
    on_disk,
    parked,
)
from weakspot.causes.knees import Bend
from weakspot.causes.labelling import table_in
from weakspot.causes.landmarks import landmarks
from weakspot.causes.parameters import Parameters
from weakspot.causes.sketches import SKETCH
from weakspot.causes.slice_traits import LEAST_AGREEMENT, OF_ATTACKS
from weakspot.causes.tree import Linkage
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.data.metadata_rows import PREFIX
from weakspot.data.thumbnails import thumbnails
from weakspot.relevance.soundness import problem_of, unsound_samples
from weakspot.slices import chance_corrected_agreement

Keep = Literal["best", "all", "none"]


class RootCauses(Probe):
    """Clusters of error-inducing images with similar heat maps, to look at for causes. HUDD (Fahmy et al. 2021).

    For every image that is predicted incorrectly, layer-wise relevance propagation says how much each neuron of a layer
    contributed to the prediction. A layer's heat map is the relevance of its input. The images are clustered by the
    Euclidean distances of their heat maps, layer by layer. The number of clusters is where the score bends, and the
    layer with the tightest clusters is taken. A layer whose heat maps are zero, or equal for all images, is left out,
    and the summary says so.

    errors: the Finding of `Errors`: which images are predicted incorrectly.
    layers: whose heat maps to compare: "all" convolutions and linears, "penultimate", names or patterns.
    method: how relevance is found: "hudd", the paper's rules; "epsilon_plus"; "epsilon_plus_redistributed", where
        biases absorb nothing, for deep networks; "gradient", activation × gradient.
    positions: sum the relevance of neighbouring positions until a map has at most so many a side; by default none.
    unit_length: divide each map by its length: where relevance lies is compared, not how much of it there is.
    sketch: maps of more than twice so many values are kept as sketches, a seeded random projection to so many values
        that keeps distances but for an error that the summary states; none keeps all maps whole.
    precision: "auto" keeps sketches and maps of more than 16,384 values in 16 bits and smaller ones in 32; "float32";
        "float16".
    linkage: how clusters are merged: "ward", "average", "complete", "weighted", "single"; or "density": HDBSCAN finds
        dense groups, as many as there are, and leaves the others alone.
    compare: images by their "heat maps", or, as the released code does, by their "distances" to all images.
    bend: where the knee is sought: in the "score", or, as the released code does, in its "gradient".
    clusters: how many, instead of the knee.
    most_clusters: the largest number tried.
    best_by: the best layer is the one with the lowest score "relative" to its mean distance, or, as in HUDD, with the
        lowest "raw" score, which the layer with the smallest relevance tends to have.
    layer: whose clusters to take, instead of the best layer's.
    most_images: beyond so many, a sample of this size is clustered and the others join the nearest cluster.
    replicates: resamplings of the images behind the clusters' stability; 0 for none.
    stable: a cluster of less stability is marked as unstable.
    keep: whose heat maps the Finding holds, to compare new images with: of the "best" layer, of "all", of "none".
    angles: columns of the metadata that are angles in degrees, where 359 is near 1.
    pictures: of how many clusters to show images.
    thumbnail: size of these images in pixels; 0 for none.
    seed: of the resampling, and of the draws that say what is chance.
    """

    outputs = ROOT_CAUSES
    by_group = ("explained_clusters", "reduced_clusters")  # shares of clusters

    errors: Finding
    layers: Layers = "all"
    method: str = "hudd"
    positions: int | None = None
    unit_length: bool = False
    sketch: int | None = SKETCH
    precision: Precision = "auto"
    linkage: Linkage = "ward"
    compare: Compare = "heat maps"
    bend: Bend = "score"
    clusters: int | None = None
    most_clusters: int = 150
    best_by: BestBy = "relative"
    layer: str | None = None
    most_images: int = 2000
    replicates: int = 50
    stable: float = 0.6
    keep: Keep = "best"
    angles: tuple[str, ...] = ()
    pictures: int = 12
    thumbnail: int = 64
    seed: int = 0

    heat_maps = Rows()
    unsound = Sum()
    """Images explained, and of these the ones whose relevance is absorbed, and whose diverges."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"method {self.method!r} is not known: choose one of {', '.join(METHODS)}")
        if self.most_images < 3 or (self.positions is not None and self.positions < 1):
            raise ConfigError(
                f"expected most_images ≥ 3 and positions ≥ 1 or none, got {self.most_images} and {self.positions}"
            )
        if self.sketch is not None and self.sketch < 16:
            raise ConfigError(f"sketch is {self.sketch}: expected 16 values or more, or null for whole heat maps")
        _ = self.recipe

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """Which images are predicted incorrectly."""
        return {"errors": Step.of(Errors)}

    @property
    def recipe(self) -> ClusterRecipe:
        """How distances become clusters."""
        return ClusterRecipe(self.linkage, self.compare, self.bend, self.clusters, self.most_clusters, self.best_by)

    @cached_property
    def attribution(self) -> ErrorRelevance:
        """How heat maps are made."""
        return ErrorRelevance(Tap(self.layers, side="input"), method=METHODS[self.method]())

    @property
    def needs(self) -> Needs:
        """Relevance at look 0."""
        return Needs(attribution=self.attribution)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """The kind of error of every error-inducing image, by its id."""
        table = self.errors.table
        if table is None or not {"id", "correct", "kind"} <= set(table.column_names):
            raise ProbeError(
                f"{self.errors.name} does not say which images are predicted incorrectly: give the Finding of Errors"
            )
        columns = (table[name].to_pylist() for name in ("id", "correct", "kind"))
        return {name: kind for name, correct, kind in zip(*columns, strict=True) if not correct}

    def wants(self, ids: Sequence[str]) -> list[str]:
        """The error-inducing images alone."""
        return [name for name in ids if name in self._kinds]

    def observe(self, seen: Observation) -> None:
        """Keep the heat maps of all layers, and a small picture of the image and of what its pixels contributed."""
        relevance = seen.relevance(self.attribution)
        if seen.relevance_start is not None:
            self.unsound = self.unsound + unsound_samples(relevance.values(), seen.relevance_start)
        columns = columns_of(
            relevance, self.precision, self.positions, unit_length=self.unit_length, sketch=self.sketch
        )
        if self.thumbnail and seen.inputs.ndim == 4:
            columns["thumbnail"] = thumbnails(seen.inputs, self.thumbnail)
            columns |= heat_pictures(next(iter(relevance.values())))
        self.heat_maps.append(seen.ids, **columns)

    def finish(self) -> Finding:
        """Distances, clusters of every layer, and the root causes that the best one shows."""
        rows = self.heat_maps.read()
        points = self.setting.layout(self.attribution.tap).points
        labels = [point.label.removesuffix(" (input)") for point in points]
        if not rows.count:
            return self.finding(summary=no_errors(len(labels)))
        images = self._images(rows, labels)
        if not images.layers:
            return self.finding(summary=nothing_to_compare(images))
        study = study_root_causes(images, self.recipe, layer=self.layer, replicates=self.replicates, seed=self.seed)
        kept = self._kept(images, study.best)
        parts = finding_parts(kept, study, stable=self.stable, pictures=self.pictures, seed=self.seed)
        noted = {**self._near_chance(), **problem_of(self.unsound)}
        return self.finding(**{**parts, "summary": {**parts["summary"], **noted}})

    def _near_chance(self) -> dict[str, Estimate]:
        """Cohen's kappa, where the model answers hardly better than chance: then errors are the rule."""
        table = table_in(self.errors)
        if self.setting.task != "classification" or not {"target", "prediction"} <= set(table.column_names):
            return {}
        agreement = chance_corrected_agreement(table["target"].to_numpy(), table["prediction"].to_numpy())
        return {"agreement_near_chance": Estimate(agreement)} if agreement < LEAST_AGREEMENT else {}

    def _images(self, kept: RowTable, labels: Sequence[str]) -> ErrorImages:
        order = id_order(kept.ids)
        ids = np.asarray(kept.ids, dtype=np.str_)[order]
        chosen = landmarks(ids.tolist(), self.most_images, seed=self.seed)
        maps, distances, errors, left_out = self._compared(kept, labels, order, chosen)
        return ErrorImages(
            ids=ids,
            kinds=np.array([self._kinds[name] for name in ids.tolist()], dtype=np.str_),
            layers=tuple(maps),
            distances=tuple(distances),
            landmarks=chosen,
            heat_maps=dict(enumerate(maps.values())),
            thumbnails=on_disk(tuple(kept.blocks("thumbnail")), order) if "thumbnail" in kept else None,
            heat_pictures=on_disk(tuple(kept.blocks("heat_picture")), order) if "heat_picture" in kept else None,
            **self._metadata(ids),
            method=self.method,
            positions=self.positions,
            unit_length=self.unit_length,
            sketch=self.sketch,
            sketch_errors=errors,
            left_out=left_out,
        )

    def _compared(
        self, kept: RowTable, labels: Sequence[str], order: np.ndarray, chosen: np.ndarray
    ) -> tuple[dict[str, HeatMapRows], list[Distances], tuple[float, ...], dict[str, str]]:
        """The heat maps of the layers that tell images apart, distances, errors of sketches, why others do not."""
        maps, distances, errors, left_out = {}, [], [], {}
        for number, label in enumerate(labels):
            rows = heat_map_rows(kept, number, order)
            between = distances_on(rows.select(chosen), self.setting.here)
            if why := blank(rows.select(chosen), between):
                left_out[label] = why
                continue
            maps[label] = rows
            distances.append(parked(between))
            errors.append(error_of_sketches(kept, number, rows.select(chosen)))
        return maps, distances, tuple(errors), left_out

    def _metadata(self, ids: np.ndarray) -> dict[str, Any]:
        """What is known of all images of the test set besides, and which of them have these ids."""
        table = table_in(self.errors)
        of_attacks = {f"{PREFIX}{name}" for name in OF_ATTACKS}  # what follows from the prediction explains nothing
        columns = [name for name in table.column_names if name.startswith(PREFIX) and name not in of_attacks]
        if not columns:
            return {"parameters": Parameters.of_columns({}, self.angles)}
        everyone = np.array(table["id"].to_pylist(), dtype=np.str_)
        order = id_order(everyone.tolist())
        metadata = {name.removeprefix(PREFIX): table[name].to_numpy()[order] for name in columns}
        places = np.searchsorted(everyone[order], ids)
        return {"parameters": Parameters.of_columns(metadata, self.angles), "places": places}

    def _kept(self, images: ErrorImages, best: int) -> ErrorImages:
        """The images with those heat maps that the Finding is to hold, in the order of the ids."""
        numbers = {"best": [best], "all": list(images.heat_maps), "none": []}[self.keep]
        rows = {number: images.heat_maps[number] for number in numbers}
        return replace(
            images,
            heat_maps={n: HeatMapRows.of(on_disk(r.blocks, r.order), r.scale[r.order]) for n, r in rows.items()},
        )
