"""Error slices: rules that hold for unusually many errors, found on one half of the data and confirmed on the other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.causes.error_probes import (
    BY_SIZE,
    error_kinds,
    error_threshold,
    named_predictions,
    prediction_columns,
)
from weakspot.causes.slice_outputs import ERROR_SLICES
from weakspot.causes.slice_parts import ExaminedImages, slice_arrays, slice_columns, slice_summary
from weakspot.causes.slice_traits import LEAST_AGREEMENT, TraitOptions, check_column, trait_table, without_prefix
from weakspot.causes.slice_views import (
    SOURCES,
    WITHOUT_RELEVANCE,
    SliceSource,
    SliceWish,
    heat_layer,
    measure_key,
    views_of,
)
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.data.image_measures import MEASURES
from weakspot.data.metadata_rows import metadata_columns
from weakspot.slices import (
    SliceData,
    SliceSearch,
    Trait,
    chance_corrected_agreement,
    doubtful_labels,
    first_half,
    ranked_slices,
)


class ErrorSlices(Probe):
    """Rules that hold for unusually many errors, as "dark (brightness < 0.2)". After SliceLine (Sagadeeva, Boehm 2021).

    Rules are conditions on traits: the metadata, what can be measured of any image, and the true class; or regions of
    the model's features, of the statistics of its layers or of its heat maps, where it can be looked into, of its
    outputs where not, and of an embedding of the user's own. They are found on one half of the images. On the other
    half each is tested against images of the same classes that no earlier rule holds for, corrected for the number of
    rules. Those that do not pass are suspicions. What the rules leave is searched for predicted classes with many
    errors: confusions. Errors whose neighbours carry the predicted label are listed apart.

    threshold: error above which a number, keypoint or segmentation is incorrect; by default the quantile decides.
    quantile: of all errors in these data, above which one is incorrect: 0.9 takes the worst tenth.
    angles: columns of the metadata that are angles in degrees, where 359 is near 1.
    ignore: columns of the metadata that no rule may name.
    group: column of the metadata with equal values for images that belong together, such as a film or a patient; by
        default what the data say.
    measures: whether brightness, contrast and the other measures of the images are traits.
    sources: of the rules: "traits", "confusions", "features", "layer statistics", "outputs" (of a model that shows no
        layers), "embedding", and "heat maps", which need a backward pass: by default all but these.
    embedding: columns of the metadata that are an embedding of each image, by name or by a pattern such as "emb_*".
    depth: how many conditions a rule may have, at most 4.
    smallest: how many images a rule must hold for, in the half that is searched.
    most: how many rules at most.
    seed: of the halves.
    """

    outputs = ERROR_SLICES
    by_group = ("low", "high", "elsewhere_low", "elsewhere_high")

    threshold: float | None = None
    quantile: float = 0.9
    angles: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    group: str | None = None
    measures: bool = True
    sources: tuple[SliceSource, ...] = WITHOUT_RELEVANCE
    embedding: tuple[str, ...] = ()
    depth: int = 2
    smallest: int = 10
    most: int = 10
    seed: int = 0

    images = Rows()

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ConfigError(f"quantile is {self.quantile}: expected a number between 0 and 1, such as 0.9")
        if not self.sources or set(self.sources) - set(SOURCES):
            raise ConfigError(f"sources is {list(self.sources)}: expected some of {', '.join(SOURCES)}")
        _ = self.search

    @property
    def wish(self) -> SliceWish:
        """What is taken of each image."""
        return SliceWish(self.sources, self.measures, self.embedding)

    @property
    def needs(self) -> Needs:
        """The outputs, and of a model that can be looked into what its layers show."""
        return self.wish.needs(self.setting)

    @property
    def search(self) -> SliceSearch:
        """How rules are searched for."""
        return SliceSearch(depth=self.depth, smallest=self.smallest, most=self.most)

    def observe(self, seen: Observation) -> None:
        """Keep each prediction, the metadata, and what is measured of the image."""
        columns: dict[str, Any] = prediction_columns(seen, self.setting)
        if self.setting.task in BY_SIZE:
            columns = {name: values for name, values in columns.items() if name not in ("prediction", "target")}
        self.images.append(seen.ids, **columns, **self.wish.columns(seen, self.setting))

    def finish(self) -> Finding:
        """The ranked list of rules, each confirmed or a suspicion."""
        images, groups = self._examined(self.images.read())
        agreement = self._agreement(images)
        near_chance = agreement is not None and agreement < LEAST_AGREEMENT
        if not near_chance:
            images = replace(images, doubtful=self._doubtful(images))
        aside = images.flagged(images.doubtful)
        data = SliceData(images.wrong, images.found_on, images.labels, groups, aside, images.views)
        slices = [] if near_chance else ranked_slices(self._searched(images.table.traits), data, self.search)
        summary = slice_summary(images, slices)
        if self.setting.task in BY_SIZE and self.threshold is None:
            summary["set_share"] = Estimate(1 - self.quantile)
        if agreement is not None:
            summary["agreement"] = Estimate(agreement)
        if near_chance:
            summary["agreement_near_chance"] = Estimate(agreement)
        if near_chance or not images.wrong.any():
            del summary["searched"]
        columns = slice_columns(images, slices) if slices else None
        own = {"embedding": np.array(self.embedding, dtype=np.str_)} if self.embedding else {}
        return self.finding(summary=summary, table=columns, arrays={**slice_arrays(images, slices), **own})

    def _examined(self, rows: RowTable) -> tuple[ExaminedImages, NDArray[np.int64] | None]:
        """All images in the order of their ids, and the group of each."""
        order = id_order(rows.ids)
        ids = np.asarray(rows.ids, dtype=np.str_)[order]
        metadata = {name: column[order] for name, column in without_prefix(metadata_columns(rows)).items()}
        named: dict[str, NDArray[np.str_]] = {}
        if self.setting.task in BY_SIZE:
            wrong = rows["error"] > error_threshold(rows["error"], threshold=self.threshold, quantile=self.quantile)
        else:
            wrong = ~np.asarray(rows["correct"])
            named = {name: column[order] for name, column in named_predictions(rows, self.setting).items()}
        wrong = np.asarray(wrong)[order]
        measures = {name: np.asarray(rows[measure_key(name)])[order] for name in MEASURES if measure_key(name) in rows}
        group = self.group or (self.setting.groups.column if self.setting.groups else None)
        options = TraitOptions(self.angles, self.ignore, group)
        table = trait_table(metadata, measures, named, wrong, options)
        belongs = self._belongs(ids, metadata)
        groups = None if belongs is None else np.unique(belongs, return_inverse=True)[1].astype(np.int64)
        halves = (ids if belongs is None else belongs).tolist()
        labels = np.unique(named["target"], return_inverse=True)[1] if named else None
        kinds = error_kinds(rows, self.setting)[order]
        found_on = first_half(halves, seed=self.seed)
        views, useless = views_of(rows, order)
        layer = heat_layer(self.setting.layers) or ""
        table = replace(table, left_out={**table.left_out, **useless})
        return ExaminedImages(ids, wrong, kinds, labels, found_on, table, tuple(views), layer), groups

    def _searched(self, traits: Sequence[Trait]) -> list[Trait]:
        """The traits of the sources that were asked for."""
        kinds = {"prediction": "confusions"}
        return [trait for trait in traits if kinds.get(trait.source, "traits") in self.sources]

    def _doubtful(self, images: ExaminedImages) -> NDArray[np.int64]:
        """Errors whose label may be wrong, the clearest first: places in the order of the ids."""
        features = next((view.values for view in images.views if view.name == "features"), None)
        if features is None or self.setting.task != "classification":
            return np.zeros(0, dtype=np.int64)
        named = {trait.source: trait.column for trait in images.table.traits}
        numbers = np.unique(np.concatenate([named["class"], named["prediction"]]), return_inverse=True)[1]
        flags, near = doubtful_labels(features, *np.split(numbers, 2))
        places = np.flatnonzero(flags)
        return places[np.argsort(-near[places], kind="stable")]

    def _belongs(self, ids: NDArray[np.str_], metadata: dict[str, Any]) -> NDArray[np.str_] | None:
        """What each image belongs to; None where each stands for itself."""
        if self.group is None:
            return self.setting.groups_of(ids.tolist())
        check_column(metadata, self.group, "group")
        return np.asarray(metadata[self.group].astype(np.str_))

    def _agreement(self, images: ExaminedImages) -> float | None:
        if self.setting.task != "classification" or not len(images.ids):
            return None
        named = {trait.source: trait.column for trait in images.table.traits}
        return chance_corrected_agreement(named["class"], named["prediction"])
