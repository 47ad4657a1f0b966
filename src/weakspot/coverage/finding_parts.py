"""What a Finding says of importance-driven coverage: summary, columns, arrays for figures, pictures of the holes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.coverage.analysis import Group, Hole, ImportanceStudy
from weakspot.coverage.counting import saturation_sizes, unseen_estimate
from weakspot.coverage.trace_probes import Traces
from weakspot.data.images import enlarged, png, strip
from weakspot.statistics.rarefaction import expected_coverage, unseen_targets

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles behind a box plot."""
PICTURES = 8
"""Of how many holes pictures are shown."""


def summary(study: ImportanceStudy, names: Sequence[str] | None) -> dict[str, Estimate]:
    """Covered share beside that of a random half and of training inputs, the unseen, and what was chosen and why."""
    half = np.array([max(1, study.inputs // 2)])
    overall = {
        "coverage": Estimate(
            float(np.mean([group.reached.coverage for group in study.groups])),
            about="share of the combinations of clusters that at least one input covers"
            + (", mean of the classes" if names else ""),
        ),
        "coverage_of_half": Estimate(
            float(_curve(study, half)[0]),
            about="share that a random half of the inputs covers, averaged over all halves",
        ),
        "coverage_of_training": Estimate(
            _of_training(study), about="share that as many training inputs, drawn at random, cover on average"
        ),
        "unseen": unseen_estimate(
            unseen_targets(study.counts, study.inputs, targets=study.targets),
            "share of the combinations that more inputs of the same kind would add (Chao2 estimate)",
            of=study.targets,
        ),
        "targets": Estimate(study.targets, about="combinations that can be covered"),
        "inputs": Estimate(study.inputs, about="samples examined"),
        "neurons": _neurons(study, names),
        "clusters": Estimate(_clusters(study), about="clusters of the important neurons, the most important first"),
    }
    each = {
        f"coverage, {names[group.number]}": Estimate(
            group.reached.coverage, about=f"of {group.reached.targets} combinations, by {len(group.test)} inputs"
        )
        for group in (study.groups if names else ())
        if names
    }
    return {**overall, **each}


def _curve(study: ImportanceStudy, sizes: np.ndarray) -> np.ndarray:
    """Mean over the groups of the expected coverage of random subsets of all inputs."""
    each = [_expected(group.reached.counts, group.reached.targets, study.inputs, sizes) for group in study.groups]
    return np.asarray(np.mean(each, axis=0))


def _expected(counts: np.ndarray, targets: int, inputs: int, sizes: np.ndarray) -> np.ndarray:
    return expected_coverage(counts, inputs, sizes, targets=targets) if len(counts) else np.zeros(len(sizes))


def _of_training(study: ImportanceStudy) -> float:
    size = np.array([min(study.inputs, study.training_inputs)])
    each = [_expected(group.shown.counts, group.shown.targets, study.training_inputs, size) for group in study.groups]
    return float(np.mean(each))


def _neurons(study: ImportanceStudy, names: Sequence[str] | None) -> Estimate:
    reasons = dict.fromkeys(group.reason for group in study.groups)
    if len(reasons) == 1:
        return Estimate(
            len(study.groups[0].neurons), about=f"important neurons that are combined: {next(iter(reasons))}"
        )
    most = max(study.groups, key=lambda group: len(group.neurons))
    counts = [len(group.neurons) for group in study.groups]
    who = f"class {names[most.number]}: " if names else ""
    about = f"important neurons of a class, {min(counts)} to {max(counts)}, here the most; {who}{most.reason}"
    return Estimate(max(counts), about=about)


def _clusters(study: ImportanceStudy) -> str:
    counts = [clusters.count for group in study.groups for clusters in group.reached.clusters]
    if len(study.groups) == 1 and len(counts) <= 12:
        return ", ".join(map(str, counts))
    return f"{min(counts)} to {max(counts)}"


def input_columns(study: ImportanceStudy, test: Traces, names: Sequence[str] | None) -> dict[str, Any]:
    """Each test input's combination, by its row in the array `combinations`, and how many inputs share it."""
    combination, alike = np.full(test.count, -1), np.zeros(test.count, dtype=np.int64)
    begin = 0
    for group in study.groups:
        combination[group.test] = begin + group.reached.combination_of
        alike[group.test] = group.reached.counts[group.reached.combination_of]
        begin += len(group.reached.counts)
    columns = {"id": test.ids, "combination": combination, "inputs_alike": alike}
    if names is not None:
        numbers = np.full(test.count, len(names))
        for group in study.groups:
            numbers[group.test] = group.number
        columns["class"] = np.array([*names, ""])[numbers]
    return columns


def combination_arrays(study: ImportanceStudy) -> dict[str, np.ndarray]:
    """The combinations that are reached with their counts, the curve, and the neurons with their clusters.

    One row of `important`, `centres` and `borders` per group; what a shorter one lacks is −1, 255 or not a number.
    """
    widest = max(len(group.neurons) for group in study.groups)
    most = max(clusters.count for group in study.groups for clusters in group.reached.clusters)
    important = np.full((len(study.groups), widest), -1, dtype=np.int64)
    centres = np.full((len(study.groups), widest, most), np.nan)
    borders = np.full((len(study.groups), widest, max(most - 1, 1)), np.nan)
    for row, group in enumerate(study.groups):
        important[row, : len(group.neurons)] = group.neurons
        for column, clusters in enumerate(group.reached.clusters):
            centres[row, column, : clusters.count] = clusters.centres
            borders[row, column, : clusters.count - 1] = clusters.borders
    sizes = saturation_sizes(study.inputs)
    return {
        "counts": study.counts,
        "combinations": np.concatenate([_widened(group.reached.combinations, widest) for group in study.groups]),
        "combination_group": np.repeat(
            [group.number for group in study.groups], [len(group.reached.counts) for group in study.groups]
        ),
        "curve_size": sizes,
        "curve_coverage": _curve(study, sizes),
        "important": important,
        "centres": centres,
        "borders": borders,
        "coverage_by_group": np.array([group.reached.coverage for group in study.groups]),
    }


def _widened(numbers: np.ndarray, width: int) -> np.ndarray:
    wide = np.full((len(numbers), width), 255, dtype=np.uint8)
    wide[:, : numbers.shape[1]] = numbers
    return wide


def hole_arrays(study: ImportanceStudy) -> dict[str, np.ndarray]:
    """Combinations that no test input reaches, with the ids of training inputs in them or nearest to them."""
    listed = _listed(study)
    widest = max(len(group.neurons) for group in study.groups)
    each = max((len(hole.nearest) for _, hole in listed), default=0)
    numbers = np.full((len(listed), widest), 255, dtype=np.uint8)
    names = np.full((len(listed), each), "", dtype=study.training.ids.dtype)
    distance = np.full((len(listed), each), np.nan)
    for row, (_, hole) in enumerate(listed):
        numbers[row, : len(hole.combination)] = hole.combination
        names[row, : len(hole.nearest)] = study.training.ids[hole.nearest]
        distance[row, : len(hole.nearest)] = hole.distance
    return {
        "hole_combination": numbers,
        "hole_group": np.array([group.number for group, _ in listed], dtype=np.int64),
        "hole_training_inputs": np.array([hole.training for _, hole in listed], dtype=np.int64),
        "hole_nearest_id": names,
        "hole_nearest_distance": distance,
    }


def _listed(study: ImportanceStudy) -> list[tuple[Group, Hole]]:
    """The holes of all groups in turn, each group's most telling first."""
    longest = max(len(group.holes) for group in study.groups)
    return [(group, group.holes[rank]) for rank in range(longest) for group in study.groups if rank < len(group.holes)]


def figure_arrays(study: ImportanceStudy, *, seed: int) -> dict[str, np.ndarray]:
    """For figures: mean activation and relevance of every neuron, and boxes of important beside random neurons.

    The important neurons here are those over all classes. A box is the quantiles `box_levels` of the training values.
    """
    widest = max(len(group.neurons) for group in study.groups)
    order = np.argsort(-study.relevance, kind="stable")
    important, others = order[:widest], np.sort(order[widest:])
    chosen = np.random.default_rng(seed).permutation(others)[: len(important)]
    return {
        "relevance": study.relevance,
        "activation": study.training.means(),
        "box_levels": np.array(LEVELS),
        "box_important_neuron": important,
        "box_important": _boxes(study.training, important),
        "box_random_neuron": chosen,
        "box_random": _boxes(study.training, chosen),
    }


def _boxes(training: Traces, neurons: np.ndarray) -> np.ndarray:
    """Quantiles of each neuron's training values: shape (neurons, levels)."""
    return np.asarray(np.quantile(training.columns(neurons), LEVELS, axis=0).T)


def pictures(study: ImportanceStudy, examples: Finding, names: Sequence[str] | None) -> dict[str, Picture]:
    """The training inputs in or nearest to the first holes; none where no thumbnails were kept."""
    if "pixels" not in examples.arrays:
        return {}
    pixels, media = examples.arrays["pixels"], {}
    for number, (group, hole) in enumerate(_listed(study)[:PICTURES], start=1):
        shown = pixels[study.training.order[hole.nearest]]  # thumbnails and traces are in the order of the same data
        sheet = strip([enlarged(picture, 64) for picture in shown])
        media[f"hole {number}"] = Picture(png(sheet), _caption(group, hole, names))
    return media


def _caption(group: Group, hole: Hole, names: Sequence[str] | None) -> str:
    who = "No test input" if names is None else f"Class {names[group.number]}: no test input"
    where = f"{who} covers the combination of clusters {'-'.join(map(str, hole.combination.tolist()))}"
    if hole.training:
        do = "training input does" if hole.training == 1 else "training inputs do"
        return f"{where}, and {hole.training} {do}. Shown are the training inputs nearest to its centre."
    return f"{where}, and no training input does. Shown are the training inputs nearest to it."
