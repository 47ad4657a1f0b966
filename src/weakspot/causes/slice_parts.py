"""Summary, table and arrays of the Finding of error slices."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.causes.error_probes import kinds_text
from weakspot.causes.slice_traits import TraitTable, standing
from weakspot.core.finding import Estimate
from weakspot.formatting import counted, number, roughly
from weakspot.slices import ErrorRate, ErrorSlice, View, contrasts

SHOWN = 5
"""Examples of each slice."""
_NAMED = 3
"""Traits named in a contrast."""


@dataclass(frozen=True)
class ExaminedImages:
    """What is known of all images, in the order of their ids.

    wrong: whether each is predicted incorrectly.
    kinds: what was predicted in place of what.
    labels: the number of its label, where there are classes.
    views: what the model shows.
    heat_layer: of which layer heat maps are.
    doubtful: places of the errors whose label may be wrong, the clearest first.
    """

    ids: NDArray[np.str_]
    wrong: NDArray[np.bool_]
    kinds: NDArray[np.str_]
    labels: NDArray[np.int64] | None
    found_on: NDArray[np.bool_]
    table: TraitTable
    views: tuple[View, ...] = ()
    heat_layer: str = ""
    doubtful: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def flagged(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """These places as flags."""
        flags = np.zeros(len(self.ids), dtype=bool)
        flags[places] = True
        return flags


def sentence(images: ExaminedImages, one: ErrorSlice) -> str:
    """The rule with its rates, in words; of one that names no trait also what sets its errors apart."""
    half = f"of {number(one.inside.inputs)} images that it was not found on"
    rates = f"{_rate_text(one.inside)} wrong ({half}), elsewhere {_rate_text(one.outside)}"
    share = f"explains {number(round(one.explained))} of all {counted(int(images.wrong.sum()), 'error')}"
    told = f"{one.rule.text}: {rates}; {share}"
    if one.kind != "features":
        return told + _noted(images, one)
    named = contrast_text(images, one.members & images.wrong)
    apart = f"its errors are, unlike correct images of the same classes: {named}" if named else "no trait names it"
    return f"{told}; {apart}"


def _noted(images: ExaminedImages, one: ErrorSlice) -> str:
    """Of a rule on what was measured of the images alone: what the metadata say of its errors, where they do."""
    sources = {trait.name: trait.source for trait in images.table.traits}
    if any(sources.get(each.trait) != "image" for each in one.rule.conditions):
        return ""
    noted = contrast_text(images, one.members & images.wrong, ("metadata",), most=1)
    return f"; in the metadata its errors have {noted}" if noted else ""


def _rate_text(rate: ErrorRate) -> str:
    return roughly(float(f"{rate.share:.2g}")) if rate.inputs else "none"


def slice_summary(images: ExaminedImages, slices: Sequence[ErrorSlice]) -> dict[str, Estimate]:
    """How many rules are confirmed and how many are suspicions, and the first of each."""
    errors = int(images.wrong.sum())
    confirmed = [one for one in slices if one.confirmed]
    causes = [one for one in confirmed if one.kind != "confusion"]
    confusions = [one for one in confirmed if one.kind == "confusion"]
    suspicions = [one for one in slices if not one.confirmed]
    held = np.any([np.zeros(len(images.wrong), dtype=bool), *(one.members for one in confirmed)], axis=0)
    numbers: dict[str, Any] = {
        "confirmed": len(causes),
        "confusions": len(confusions),
        "suspicions": len(suspicions),
        "errors": errors,
        "inputs": len(images.wrong),
        "searched": len(images.table.traits),
        "views": ", ".join(view.name for view in images.views) or "none",
        "left_out": len(images.table.left_out),
        "doubtful_labels": len(images.doubtful),
    }
    if errors:
        numbers["explained_share"] = float(held[images.wrong].mean())
    if causes:
        numbers |= {"first": sentence(images, causes[0]), "first_rule": causes[0].rule.text}
    elif confusions:
        numbers["first_confusion"] = sentence(images, confusions[0])
    elif suspicions:
        numbers["first_suspicion"] = sentence(images, suspicions[0])
    return {name: Estimate(value) for name, value in numbers.items()}


def slice_columns(images: ExaminedImages, slices: Sequence[ErrorSlice]) -> dict[str, Any]:
    """One row per rule, in the order of the list."""
    places = standing(images.table.traits)
    rows = [_row(images, one, places) for one in slices]
    return {
        "slice": np.arange(1, len(rows) + 1),
        **{name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())},
    }


def _row(images: ExaminedImages, one: ErrorSlice, places: NDArray[np.float64]) -> dict[str, Any]:
    errors = one.members & images.wrong
    wrong, correct = examples(images, one, places)
    return {
        "status": "confirmed" if one.confirmed else "suspicion",
        "confirmed": one.confirmed,
        "kind": one.kind,
        "rule": one.rule.text,
        "summary": sentence(images, one),
        "images": int(one.members.sum()),
        "errors": int(errors.sum()),
        "explained": float(one.explained),
        "error_rate": one.inside.share,
        "low": one.inside.low,
        "high": one.inside.high,
        "elsewhere": one.outside.share,
        "elsewhere_low": one.outside.low,
        "elsewhere_high": one.outside.high,
        "p_value": one.p_value,
        "confused": kinds_text(images.kinds[errors].tolist()),
        "contrast": contrast_text(images, errors),
        "incorrect_examples": ", ".join(images.ids[wrong].tolist()),
        "correct_examples": ", ".join(images.ids[correct].tolist()),
        "conditions": json.dumps(one.rule.as_json(), ensure_ascii=False),
    }


def contrast_text(
    images: ExaminedImages,
    errors: NDArray[np.bool_],
    sources: Sequence[str] = ("metadata", "image"),
    *,
    most: int = _NAMED,
) -> str:
    """In what these errors differ from correct images of the same classes: the clearest traits, in words."""
    traits = [trait for trait in images.table.traits if trait.source in sources]
    alike = ~images.wrong
    if images.labels is not None:
        alike &= np.isin(images.labels, images.labels[errors])
    return "; ".join(each.text for each in contrasts(traits, errors, alike)[:most])


def examples(
    images: ExaminedImages, one: ErrorSlice, places: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Typical errors of a slice, nearest to their middle; and correct members like them, of their class if any.

    Of a region of the features those that are most alike.
    """
    errors = np.flatnonzero(one.members & images.wrong)
    if not len(errors):
        return errors, errors
    if one.likeness is not None:
        right = np.flatnonzero(one.members & ~images.wrong)
        first, second = (each[np.argsort(-one.likeness[each], kind="stable")[:SHOWN]] for each in (errors, right))
        return first, second
    middle = np.median(places[errors], axis=0)
    wrong = errors[np.argsort(np.abs(places[errors] - middle).sum(1), kind="stable")[:SHOWN]]
    left = np.flatnonzero(one.members & ~images.wrong).tolist()
    correct: list[int] = []
    for error in wrong.tolist():
        if not left:
            break
        apart = np.abs(places[left] - places[error]).sum(1)
        if images.labels is not None:
            apart = apart + (images.labels[left] != images.labels[error]) * (places.shape[1] + 1.0)
        correct.append(left.pop(int(np.argmin(apart))))
    return wrong, np.array(correct, dtype=np.int64)


def slice_arrays(images: ExaminedImages, slices: Sequence[ErrorSlice]) -> dict[str, NDArray[Any]]:
    """The first rule that holds for each image, what was measured, and what was left out."""
    first = np.zeros(len(images.ids), dtype=np.int64)
    for rank, one in reversed(list(enumerate(slices, start=1))):
        first[one.members] = rank
    measured = [trait for trait in images.table.traits if trait.source == "image"]
    arrays: dict[str, NDArray[Any]] = {
        "image_id": images.ids,
        "image_slice": first,
        "image_found_on": images.found_on,
    }
    if measured:
        arrays["measures"] = np.stack([trait.column for trait in measured], axis=1)
        arrays["measure_names"] = np.array([trait.name for trait in measured], dtype=np.str_)
    arrays |= _region_arrays([one for one in slices if one.region is not None])
    if any(view.name == "heat maps" for view in images.views):
        arrays["heat_layer"] = np.array(images.heat_layer)
    if len(images.doubtful):
        arrays["doubtful_id"] = images.ids[images.doubtful]
        arrays["doubtful_kind"] = images.kinds[images.doubtful]
    if images.table.left_out:
        arrays["left_out"] = np.array(list(images.table.left_out), dtype=np.str_)
        arrays["left_out_why"] = np.array(list(images.table.left_out.values()), dtype=np.str_)
    return arrays


def _region_arrays(slices: Sequence[ErrorSlice]) -> dict[str, NDArray[Any]]:
    """What the regions are, so that they can be found in new inputs: likeness = values · weights − offset."""
    if not slices:
        return {}
    regions = [one.region for one in slices if one.region is not None]
    weights = {f"region_weights-{place:02d}": each.weights for place, each in enumerate(regions)}
    names = np.array([one.rule.conditions[0].trait for one in slices], dtype=np.str_)
    likeness = np.stack([one.likeness for one in slices if one.likeness is not None], axis=1)
    offsets = np.array([each.offset for each in regions])
    return {"regions": names, "region_offset": offsets, "region_likeness": likeness, **weights}
