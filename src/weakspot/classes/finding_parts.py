"""Makes the Finding of class pairs: summary, table, arrays for figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.classes.analysis import OutputStudy, PairStudy, Ranking, Study
from weakspot.classes.metrics_bias import Near, worst_beside, worst_third_classes
from weakspot.classes.metrics_confusion import pair_confusion
from weakspot.classes.metrics_distance import class_tree
from weakspot.classes.pairs import pair_classes, pair_values, suspicious
from weakspot.core.finding import Estimate
from weakspot.estimates import share_estimate
from weakspot.formatting import counted

MOST_ROWS = 100_000
"""Rows of the table: the nearest pairs. The arrays hold all."""
MOST_NAMED = 1_000
"""Rows for which examples are looked up."""
CURVE_POINTS = 512

Array = NDArray[Any]
Example = Callable[[int, int], str]
"""The id of an image predicted as the first class that looks most like the second; empty if there is none."""


def summary(
    study: PairStudy, outputs: OutputStudy | None, sizes: Array, names: Sequence[str], *, sure: float = 0.95
) -> dict[str, Estimate]:
    """The numbers to read first; those of the ranking by the outputs, where there is one, begin with "outputs_"."""
    estimates = report_summary(study, sizes, names)
    if study.estimate is not None:
        certain = (study.estimate.certainty(study.cutoff) >= sure) & study.confused
        about = f"suspected pairs whose distance is below the cutoff with a probability of {sure:.0%} or more"
        estimates["surely_confused"] = Estimate(int(certain.sum()), about=about)
    if study.coincidence_correlation is not None:
        about = "Spearman's correlation of distance and how often two labels appear together"
        estimates["coincidence_correlation"] = Estimate(_number(study.coincidence_correlation), about=about)
    return {**estimates, **truth_summary(study), **outputs_summary(study, outputs)}


def report_summary(study: Study, sizes: Array, names: Sequence[str]) -> dict[str, Estimate]:
    """How many pairs are reported, and what was compared."""
    left_out = np.setdiff1d(np.arange(len(sizes)), study.classes).tolist()
    listed = _listed([f"{names[number]} ({sizes[number]})" for number in left_out])
    about = f"of {study.confused.size} pairs are suspected of confusion (cutoff {study.cutoff})"
    estimates = {"confused": Estimate(int(study.confused.sum()), about=about + _confirmed(study.confusion_ranking))}
    if study.biased is not None:
        about = "pairs suspected of unequal treatment" + _confirmed(study.bias_ranking)
        estimates["biased"] = Estimate(int(study.biased.sum()), about=about)
    if not study.confused.size:
        ranked = counted(len(study.classes), "class")
        why = f"{ranked} of {len(sizes)} with enough images predicted as it, and a pair needs two"
        estimates["no_pairs"] = Estimate(why, about="why no pair of classes is compared")
    return {
        **estimates,
        "pairs": Estimate(int(study.confused.size), about="pairs of ranked classes"),
        "classes": Estimate(len(study.classes), about="classes with enough predicted images to be ranked"),
        "not_ranked": Estimate(
            len(left_out), about=f"classes left out, with their numbers of images: {listed or 'none'}"
        ),
    }


def _confirmed(ranking: Ranking | None) -> str:
    """What labels say of a report, where there are any."""
    return "" if ranking is None else f"; the labels confirm {ranking.at_cutoff.true_positives} of them"


def outputs_summary(study: PairStudy, outputs: OutputStudy | None) -> dict[str, Estimate]:
    """The ranking by the outputs beside that by the distance: whether they agree, and which one labels bear out."""
    if outputs is None:
        about = "pairs reported by the outputs alone: not known, since the subject does not say what its scores are"
        return {"outputs_confused": Estimate(None, about=about)}
    both = int((study.confused & outputs.confused).sum())
    about = f"pairs reported by the outputs alone, {both} of them by the distance too"
    return {
        "outputs_confused": Estimate(int(outputs.confused.sum()), about=about),
        **{f"outputs_{name}": estimate for name, estimate in truth_summary(outputs).items()},
    }


def truth_summary(study: Study) -> dict[str, Estimate]:
    """How well a report does against labels."""
    return {
        **ranking_summary("confusion", study.confusion_ranking),
        **ranking_summary("bias", study.bias_ranking),
    }


def ranking_summary(what: str, ranking: Ranking | None) -> dict[str, Estimate]:
    """How well the report does against labels; nothing without them."""
    if ranking is None:
        return {}
    report, top, curve = ranking.at_cutoff, ranking.at_top, ranking.curve
    gain, shortfall = (None, None) if curve is None else (curve.gain, curve.shortfall)
    return {
        f"{what}_true_positives": Estimate(
            report.true_positives, about=f"reported pairs with true {what} (above mean + std)"
        ),
        f"{what}_false_positives": Estimate(report.false_positives, about=f"reported pairs without true {what}"),
        f"{what}_missed": Estimate(report.false_negatives, about=f"pairs with true {what} that are not reported"),
        f"{what}_precision": _share(
            report.true_positives, report.reported, "share of the reported pairs that are true"
        ),
        f"{what}_recall": _share(report.true_positives, report.true, "share of the true pairs that are reported"),
        f"{what}_chance": Estimate(_number(report.by_chance), about="true positives among as many random pairs"),
        f"{what}_top_precision": _share(top.true_positives, top.reported, "precision of the top 1 % of the pairs"),
        f"{what}_correlation": Estimate(
            _number(ranking.correlation), about=f"Spearman's correlation of score and true {what}"
        ),
        **({f"{what}_order": Estimate("worse than a random one")} if gain is not None and gain < 0 else {}),
        f"{what}_gain": Estimate(gain, about="area under the cost-effectiveness curve, gain over a random order"),
        f"{what}_shortfall": Estimate(shortfall, about="share of the optimal area that is missing"),
    }


def _share(some: int, pairs: int, about: str) -> Estimate:
    """With Wilson's interval, as if pairs were independent; they share classes, so it is rather too narrow."""
    return share_estimate(some, pairs, f"{about}; interval as if pairs were independent" if pairs else about)


def named_pairs(
    study: PairStudy, names: Sequence[str], wanted: Iterable[tuple[int, int]], *, near: Near
) -> dict[str, Estimate]:
    """The average bias of the pairs asked for by name, with the third classes it shows beside."""
    index = {int(number): position for position, number in enumerate(study.classes)}
    estimates = {}
    for a, b in wanted:
        key = f"{names[a]} / {names[b]}"
        if study.average_bias is None or a not in index or b not in index:
            estimates[key] = Estimate(None, about="average bias: too few images of one of them")
            continue
        third = worst_third_classes(study.distance, index[a], index[b], near=near)
        beside = ", ".join(names[study.classes[c]] for c in third) or "no class near either"
        estimates[key] = Estimate(
            float(study.average_bias[index[a], index[b]]), about=f"average bias; worst beside {beside}"
        )
    return estimates


def pair_columns(
    study: PairStudy, outputs: OutputStudy | None, sizes: Array, names: Sequence[str], *, near: Near, example: Example
) -> dict[str, Array]:
    """The table: one row per pair, the nearest first."""
    order = in_order(study)
    places = pair_classes(order, len(study.classes))
    return {
        **_name_columns(study, places, names),
        "distance": pair_values(study.distance)[order],
        "confused": study.confused[order],
        **_certainty_columns(study, order),
        **_bias_columns(study, order, places, names, near),
        **({} if outputs is None else _soft_confusion_columns(outputs, order)),
        **_truth_columns(study, order, places),
        **_image_columns(study, places, sizes, example),
    }


def output_columns(study: OutputStudy, sizes: Array, names: Sequence[str], *, example: Example) -> dict[str, Array]:
    """The table of the outputs alone: one row per pair, the most suspicious first."""
    order = in_order(study)
    places = pair_classes(order, len(study.classes))
    bias = {} if study.average_bias is None else {"soft_confusion_bias": pair_values(study.average_bias)[order]}
    return {
        **_name_columns(study, places, names),
        "soft_confusion": study.score[order],
        "confused": study.confused[order],
        **bias,
        **({} if study.biased is None else {"biased": study.biased[order]}),
        **_truth_columns(study, order, places),
        **_image_columns(study, places, sizes, example),
    }


def in_order(study: Study) -> Array:
    """The pairs that get a row, the most suspicious first."""
    return np.argsort(-study.score, kind="stable")[:MOST_ROWS]


def _name_columns(study: Study, places: Array, names: Sequence[str]) -> dict[str, Array]:
    label = np.asarray(names, dtype=np.str_)[study.classes[places]]
    return {"first": label[:, 0], "second": label[:, 1]}


def _image_columns(study: Study, places: Array, sizes: Array, example: Example) -> dict[str, Array]:
    numbers = study.classes[places]
    columns: dict[str, Array] = {"images_first": sizes[numbers[:, 0]], "images_second": sizes[numbers[:, 1]]}
    for column, side in (("first_like_second", 1), ("second_like_first", -1)):
        examples = [example(*pair[::side]) for pair in numbers[:MOST_NAMED].tolist()]
        columns[column] = _padded(examples, len(places))
    return columns


def _soft_confusion_columns(study: OutputStudy, order: Array) -> dict[str, Array]:
    """What the outputs say of the same pairs, with the place that each has in their order."""
    rank = np.empty(study.score.size, dtype=np.int64)
    rank[np.argsort(-study.score, kind="stable")] = np.arange(1, study.score.size + 1)
    columns = {"soft_confusion": study.score, "soft_confusion_rank": rank, "outputs_confused": study.confused}
    if study.average_bias is not None and study.biased is not None:
        columns |= {"soft_confusion_bias": pair_values(study.average_bias), "outputs_biased": study.biased}
    return {name: values[order] for name, values in columns.items()}


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


def _truth_columns(study: Study, order: Array, places: Array) -> dict[str, Array]:
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


def figure_arrays(study: PairStudy, outputs: OutputStudy | None) -> dict[str, Array]:
    """What the report draws: matrices in the order of `classes`, the tree that orders them, and the curves."""
    arrays: dict[str, Array] = {"classes": study.classes, "distance": study.distance, **_truth_arrays(study)}
    if study.average_bias is not None:
        arrays["average_bias"] = study.average_bias
    if len(study.classes) > 1:
        arrays["tree"], arrays["tree_order"] = class_tree(study.distance)
    if outputs is None:
        return arrays
    return {**arrays, "soft_confusion": outputs.soft_confusion, **_curve_arrays(outputs, "outputs_")}


def output_arrays(study: OutputStudy) -> dict[str, Array]:
    """The same of the outputs alone; classes that are softly confused most stand side by side."""
    arrays: dict[str, Array] = {
        "classes": study.classes,
        "soft_confusion": study.soft_confusion,
        **_truth_arrays(study),
    }
    if study.average_bias is not None:
        arrays["soft_confusion_bias"] = study.average_bias
    if len(study.classes) > 1:
        arrays["tree_order"] = class_tree(1 - pair_confusion(study.soft_confusion))[1]
    return arrays


def _truth_arrays(study: Study) -> dict[str, Array]:
    matrices = {"confusion": study.confusion, "disparity": study.disparity}
    return {**{name: values for name, values in matrices.items() if values is not None}, **_curve_arrays(study)}


def _curve_arrays(study: Study, prefix: str = "") -> dict[str, Array]:
    """Cost-effectiveness: share inspected, share found, and what the best order finds."""
    arrays: dict[str, Array] = {}
    for what, ranking in (("confusion", study.confusion_ranking), ("bias", study.bias_ranking)):
        if ranking is not None and ranking.curve is not None:
            curve = ranking.curve
            points = np.unique(np.linspace(0, curve.found_share.size - 1, CURVE_POINTS).round().astype(np.int64))
            lines = {"cost": curve.cost, "found": curve.found_share, "optimal": curve.optimal}
            arrays |= {f"{prefix}{what}_{name}": values[points] for name, values in lines.items()}
    return arrays


def _padded(words: Sequence[str], length: int) -> Array:
    return np.array([*words, *[""] * (length - len(words))], dtype=np.str_)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _listed(words: Sequence[str], most: int = 20) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
