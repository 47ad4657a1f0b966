"""A study of class pairs as a Finding tells it: summary, table, arrays for figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.classes.bias import Near, worst_beside, worst_third_classes
from weakspot.classes.distance import class_tree
from weakspot.classes.pairs import pair_classes, pair_values, suspicious
from weakspot.classes.study import PairStudy, Ranking
from weakspot.core.finding import Estimate

MOST_ROWS = 100_000
"""Rows of the table: the nearest pairs. The arrays hold all."""
MOST_NAMED = 1_000
"""Rows for which examples are looked up."""
CURVE_POINTS = 512

Array = NDArray[Any]
Example = Callable[[int, int], str]
"""The id of an image predicted as the first class that looks most like the second; empty if there is none."""


def summary(study: PairStudy, sizes: Array, names: Sequence[str], *, sure: float = 0.95) -> dict[str, Estimate]:
    """The numbers to read first."""
    left_out = np.setdiff1d(np.arange(len(sizes)), study.classes).tolist()
    listed = _listed([f"{names[number]} ({sizes[number]})" for number in left_out])
    told = {
        "classes": Estimate(len(study.classes), about="classes with enough predicted images to be ranked"),
        "not_ranked": Estimate(len(left_out), about=f"classes left out, with their images: {listed or 'none'}"),
        "pairs": Estimate(int(study.confused.size), about="pairs of ranked classes"),
        "confused": Estimate(int(study.confused.sum()), about=f"pairs reported as confused, cutoff {study.cutoff}"),
    }
    if study.estimate is not None:
        certain = (study.estimate.certainty(study.cutoff) >= sure) & study.confused
        about = f"of them, pairs that are nearer than the cutoff with a chance of {sure:.0%} or more"
        told["surely_confused"] = Estimate(int(certain.sum()), about=about)
    if study.biased is not None:
        told["biased"] = Estimate(int(study.biased.sum()), about="pairs reported as treated unequally")
    if study.coincidence_correlation is not None:
        about = "Spearman's, of distance and how often two labels appear together"
        told["coincidence_correlation"] = Estimate(_number(study.coincidence_correlation), about=about)
    return {
        **told,
        **ranking_summary("confusion", study.confusion_ranking),
        **ranking_summary("bias", study.bias_ranking),
    }


def ranking_summary(what: str, ranking: Ranking | None) -> dict[str, Estimate]:
    """How well the report does against labels; nothing without them."""
    if ranking is None:
        return {}
    found, top, curve = ranking.found, ranking.found_at_top, ranking.curve
    gain, shortfall = (None, None) if curve is None else (curve.gain, curve.shortfall)
    return {
        f"{what}_true_positives": Estimate(found.true_positives, about=f"reported pairs with true {what}"),
        f"{what}_false_positives": Estimate(found.false_positives, about=f"reported pairs without true {what}"),
        f"{what}_precision": Estimate(_number(found.precision), about="share of the reported pairs that are true"),
        f"{what}_recall": Estimate(_number(found.recall), about="share of the true pairs that are reported"),
        f"{what}_chance": Estimate(_number(found.by_chance), about="true positives of a random report of that length"),
        f"{what}_top_precision": Estimate(_number(top.precision), about="precision of the top 1 % of the pairs"),
        f"{what}_correlation": Estimate(_number(ranking.correlation), about=f"Spearman's, of score and true {what}"),
        f"{what}_gain": Estimate(gain, about="area under the cost-effectiveness curve over random"),
        f"{what}_shortfall": Estimate(shortfall, about="share of the optimal area that is missing"),
    }


def named_pairs(
    study: PairStudy, names: Sequence[str], wanted: Iterable[tuple[int, int]], *, near: Near
) -> dict[str, Estimate]:
    """The average bias of the pairs asked for by name, with the third classes it shows beside."""
    place = {int(number): position for position, number in enumerate(study.classes)}
    told = {}
    for a, b in wanted:
        key = f"{names[a]} / {names[b]}"
        if study.average_bias is None or a not in place or b not in place:
            told[key] = Estimate(None, about="average bias: too few images of one of them")
            continue
        third = worst_third_classes(study.distance, place[a], place[b], near=near)
        beside = ", ".join(names[study.classes[c]] for c in third) or "no class near either"
        told[key] = Estimate(
            float(study.average_bias[place[a], place[b]]), about=f"average bias; worst beside {beside}"
        )
    return told


def pair_columns(
    study: PairStudy, sizes: Array, names: Sequence[str], *, near: Near, example: Example
) -> dict[str, Array]:
    """The table: one row per pair, the nearest first."""
    distance = pair_values(study.distance)
    order = np.argsort(distance, kind="stable")[:MOST_ROWS]
    places = pair_classes(order, len(study.classes))
    numbers = study.classes[places]
    label = np.asarray(names, dtype=np.str_)[numbers]
    columns: dict[str, Array] = {
        "first": label[:, 0],
        "second": label[:, 1],
        "distance": distance[order],
        "confused": study.confused[order],
        **_certainty_columns(study, order),
        **_bias_columns(study, order, places, names, near),
        **_truth_columns(study, order, places),
        "images_first": sizes[numbers[:, 0]],
        "images_second": sizes[numbers[:, 1]],
    }
    for column, side in (("first_like_second", 1), ("second_like_first", -1)):
        found = [example(*pair[::side]) for pair in numbers[:MOST_NAMED].tolist()]
        columns[column] = _padded(found, len(order))
    return columns


def _certainty_columns(study: PairStudy, order: Array) -> dict[str, Array]:
    if study.estimate is None:
        return {}
    low, high = study.estimate.interval()
    return {
        "certainty": study.estimate.certainty(study.cutoff)[order],
        "corrected_distance": study.estimate.distance[order],
        "low": low[order],
        "high": high[order],
    }


def _bias_columns(study: PairStudy, order: Array, places: Array, names: Sequence[str], near: Near) -> dict[str, Array]:
    if study.average_bias is None or study.biased is None:
        return {}
    third = worst_beside(study.distance, places, near=near)
    label = np.array([names[number] for number in study.classes.tolist()])
    return {
        "average_bias": pair_values(study.average_bias)[order],
        "biased": study.biased[order],
        "worst_beside": np.where(third >= 0, label[third], ""),
    }


def _truth_columns(study: PairStudy, order: Array, places: Array) -> dict[str, Array]:
    if study.confusion is None:
        return {}
    columns: dict[str, Array] = {
        "first_taken_for_second": study.confusion[places[:, 0], places[:, 1]],
        "second_taken_for_first": study.confusion[places[:, 1], places[:, 0]],
    }
    if study.confusion_ranking is not None:
        columns["truly_confused"] = suspicious(study.confusion_ranking.truth)[order]
    if study.bias_ranking is not None:
        columns["disparity"] = study.bias_ranking.truth[order]
        columns["truly_biased"] = suspicious(study.bias_ranking.truth)[order]
    return columns


def figure_arrays(study: PairStudy) -> dict[str, Array]:
    """What the report draws: matrices in the order of `classes`, the tree that orders them, and the curves."""
    arrays: dict[str, Array] = {"classes": study.classes, "distance": study.distance}
    optional = {"average_bias": study.average_bias, "confusion": study.confusion, "disparity": study.disparity}
    arrays |= {name: values for name, values in optional.items() if values is not None}
    if len(study.classes) > 1:
        arrays["tree"], arrays["tree_order"] = class_tree(study.distance)
    rankings = {"confusion": study.confusion_ranking, "bias": study.bias_ranking}
    for name, ranking in rankings.items():
        arrays |= _curve_arrays(name, ranking)
    return arrays


def _curve_arrays(what: str, ranking: Ranking | None) -> dict[str, Array]:
    """Cost-effectiveness: share inspected, share found, and what the best order finds."""
    if ranking is None or ranking.curve is None:
        return {}
    curve = ranking.curve
    points = np.unique(np.linspace(0, curve.found.size - 1, CURVE_POINTS).round().astype(np.int64))
    return {
        f"{what}_cost": curve.cost[points],
        f"{what}_found": curve.found[points],
        f"{what}_optimal": curve.optimal[points],
    }


def _padded(words: Sequence[str], length: int) -> Array:
    return np.array([*words, *[""] * (length - len(words))], dtype=np.str_)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _listed(words: Sequence[str], most: int = 20) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
