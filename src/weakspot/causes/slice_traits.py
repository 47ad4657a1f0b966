"""The traits that rules are sought in, and those that are left out since they say what is to be explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError
from weakspot.core.options import nearest
from weakspot.data.image_measures import MEASURES
from weakspot.data.metadata_rows import PREFIX
from weakspot.slices import Trait

OF_ATTACKS = ("attack_success", "attack_before")
"""Metadata of attacked images that follow from the model's predictions."""
LEAST_AGREEMENT = 0.2
"""Cohen's kappa below which agreement is at most "slight" [landis1977], and errors are the rule."""
_MOST_VALUES = 1000
"""A column with more values is not compared with labels and predictions."""


@dataclass(frozen=True)
class TraitOptions:
    """angles: columns of metadata in degrees. ignore: columns to leave out. group: the column of groups of images."""

    angles: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    group: str | None = None


@dataclass(frozen=True)
class TraitTable:
    """Traits of all images, and the columns that were left out with the reason."""

    traits: tuple[Trait, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def trait_table(
    metadata: Mapping[str, NDArray[Any]],
    measures: Mapping[str, NDArray[np.float64]],
    named: Mapping[str, NDArray[np.str_]],
    wrong: NDArray[np.bool_],
    options: TraitOptions,
) -> TraitTable:
    """Metadata, image measures, label and prediction as traits.

    metadata: columns by their name.
    measures: by theirs.
    named: "target" and "prediction" by name, where there are any.
    """
    _check(metadata, options)
    left_out = {
        name: why for name, column in metadata.items() if (why := _why_not(name, column, named, wrong, options))
    }
    traits = [_metadata_trait(name, column, options) for name, column in metadata.items() if name not in left_out]
    for name, column in measures.items():
        measure = MEASURES[name]
        trait_name = f"{name} of the image" if name in metadata else name
        traits.append(Trait(trait_name, column, "image", measure.period, measure.low, measure.high))
    if "target" in named:
        traits.append(Trait("true class", named["target"], "class"))
        traits.append(Trait("predicted class", named["prediction"], "prediction"))
    return TraitTable(tuple(traits), left_out)


def _check(metadata: Mapping[str, NDArray[Any]], options: TraitOptions) -> None:
    for option, names in (("angles", options.angles), ("ignore", options.ignore)):
        for name in names:
            check_column(metadata, name, option)
    texts = [name for name in options.angles if metadata[name].dtype.kind not in "biuf"]
    if texts:
        raise ConfigError(f"angles names {texts[0]!r}, which holds text: expected a column of degrees")


def check_column(metadata: Mapping[str, NDArray[Any]], name: str, option: str) -> None:
    """Refuse a column that the metadata do not have."""
    if name not in metadata:
        have = ", ".join(metadata) or "none"
        raise ConfigError(
            f"{option} names {name!r}, and no column of the metadata is called so: {nearest(name, list(metadata))}"
            f"there is {have}"
        )


def _metadata_trait(name: str, column: NDArray[Any], options: TraitOptions) -> Trait:
    trait_name = f"metadata {name}" if name in ("true class", "predicted class") else name
    if column.dtype.kind in "biuf":
        return Trait(trait_name, column.astype(np.float64), period=360.0 if name in options.angles else None)
    return Trait(trait_name, column.astype(np.str_))


def _why_not(
    name: str,
    column: NDArray[Any],
    named: Mapping[str, NDArray[np.str_]],
    wrong: NDArray[np.bool_],
    options: TraitOptions,
) -> str:
    """Why a column is left out; nothing where it is not."""
    if name in options.ignore:
        return "it is to be ignored"
    if name == options.group:
        return "it says which images belong together"
    if name in OF_ATTACKS:
        return "it follows from the model's prediction of the attacked image"
    if same_partition(column, wrong):
        return "it says which images are predicted incorrectly"
    for what, words in (("target", "label"), ("prediction", "prediction")):
        if what in named and same_partition(column, named[what]):
            return f"it is the {words} under another name"
    return ""


def same_partition(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns part the images alike, whatever the parts are called; one part is no partition.

    >>> same_partition(np.array(["a", "b", "a"]), np.array([1, 0, 1])), same_partition(np.zeros(3), np.zeros(3))
    (True, False)
    """
    parts = [np.unique(column, return_inverse=True)[1] for column in (first, second)]
    count = int(parts[0].max(initial=0)) + 1
    if not 1 < count <= _MOST_VALUES or count != int(parts[1].max(initial=0)) + 1:
        return False
    return len(np.unique(parts[0] * count + parts[1])) == count


def without_prefix(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Metadata by their own names."""
    return {name.removeprefix(PREFIX): column for name, column in columns.items()}


def standing(traits: Sequence[Trait]) -> NDArray[np.float64]:
    """Numbers of traits as ranks from 0 to 1, (images, traits), unknown ones in the middle: to compare images by."""
    columns = []
    for trait in traits:
        if trait.numeric and trait.source in ("metadata", "image") and trait.period is None:
            values = np.unique(trait.column, return_inverse=True)[1].astype(np.float64)
            ranks = values / max(values.max(initial=0.0), 1.0)
            columns.append(np.where(np.isnan(trait.column), 0.5, ranks))
    count = len(traits[0].column) if traits else 0
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))
