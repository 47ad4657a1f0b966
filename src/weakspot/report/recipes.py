"""Which arrays and columns become which figure: the one place that knows both.

A recipe names what it needs (arrays, or columns of the table as `table.name`; a star stands for any part of a name) and
the kind of figure; a Finding that has all of it gets the figure, whoever made it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from weakspot.core.finding import Finding
from weakspot.report import drawings as draw
from weakspot.report.given import Given


@dataclass(frozen=True)
class Figure:
    """A drawing with the sentence that belongs under it."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Recipe:
    """What a figure needs, how it is drawn, and what it shows in a sentence."""

    needs: tuple[str, ...]
    draw: Callable[[Given], str]
    caption: str


def figures(finding: Finding, classes: list[str]) -> list[Figure]:
    """Every figure that a Finding's arrays and table give."""
    given = Given(finding, classes)
    drawn = [Figure(_drawn(recipe, given), recipe.caption) for recipe in RECIPES if all(map(given.has, recipe.needs))]
    return [figure for figure in drawn if figure.svg]


def _drawn(recipe: Recipe, given: Given) -> str:
    """The figure; nothing where arrays of these names are there that mean something else."""
    try:
        return recipe.draw(given)
    except (TypeError, ValueError, IndexError):
        return ""


_OF_CLASSES = ("classes", "tree_order")
_OF_RETRAINING = ("table.method", "table.part", "table.repeat", "table.difference", "table.low", "table.high")
RECIPES = (
    Recipe(("curve_size", "curve_coverage"), draw.saturation,
           "Saturation: the mean coverage of random subsets of the inputs, by their size."),
    Recipe(("curve_size", "curve_patterns"), draw.patterns,
           "Saturation of patterns: how many distinct ones random subsets of the inputs show, on average."),
    Recipe(("relevance", "activation", "box_important_neuron"), draw.relevance,
           "Activation against relevance of the same neurons: do those that fire most also decide?"),
    Recipe(("box_important", "box_random", "box_important_neuron", "box_random_neuron"), draw.important,
           "Values of the important neurons, and of as many drawn at random: quartiles, median, 5 % to 95 %."),
    Recipe(("inspected", "found_*"), draw.rankings,
           "Which ranking finds the model's errors first: share of the errors among the first inputs of each."),
    Recipe(("brings_size", "gained_*"), draw.gained,
           "What inputs bring, the most useful first: share of the targets that could be reached anew."),
    Recipe(("spearman_subsets", "table.measure"), draw.agreement,
           "Do the criteria agree? Spearman's correlation over random subsets of equal size; blue is positive."),
    Recipe(("table.surprise",), draw.surprise, "How surprising the inputs are, against the training data."),
    Recipe(("table.max_softmax", "table.right"), draw.confidence,
           "How sure the model is where it is right and where it is wrong: quartiles, median, 5 % to 95 %."),
    Recipe(("table.accuracy", "table.weak", "table.looks_used"), draw.neighbours,
           "Neighbour accuracy of the inputs; those at or below the cutoff are weak."),
    Recipe(("counts", "table.class", "table.weak_share"), draw.class_strips,
           "Where the neighbour accuracies of each class lie; the stronger the colour, the more."),
    Recipe(("table.class", "table.weak_share", "table.weak_low", "table.weak_high"), draw.weak_classes,
           "Share of weak inputs of each class, with 95 % intervals."),
    Recipe(("table.x", "table.y", "table.weak"), draw.places,
           "Weak and strong inputs by the two main directions of their features."),
    Recipe(("queries", "correlation"), draw.correlation,
           "How well the diversity of answers tells neighbour accuracy, by the number of neighbours asked."),
    Recipe(("table.method", "table.f1", "table.f1_low", "table.f1_high"), draw.detectors,
           "F1 of every detector and baseline, with 95 % intervals. It follows the share of weak inputs: compare with "
           "flagging every input."),
    Recipe(("*_reliability",), draw.reliability,
           "Reliability: how often what was said with each probability turned out to be so."),
    Recipe((*_OF_CLASSES, "distance"), draw.class_matrix("distance", "{:.1f}".format, "low"),
           "Distance between classes by the neurons they activate; the stronger the colour, the nearer."),
    Recipe((*_OF_CLASSES, "tree"), draw.tree, "Which classes look alike to the network: the nearest are joined first."),
    Recipe((*_OF_CLASSES, "leaning"), draw.class_matrix("leaning", draw.tenths),
           "Leaning: the probability, in percent, that images predicted as the class of the row give to the column's."),
    Recipe((*_OF_CLASSES, "confusion"), draw.class_matrix("confusion", draw.hundredths),
           "True confusion: how often, in percent, the class of the row is taken for that of the column or, where an "
           "input may have several, the column's is predicted beside it."),
    Recipe((*_OF_CLASSES, "average_bias"), draw.class_matrix("average_bias", draw.hundredths),
           "Average bias, in hundredths: how unequally two classes are treated beside all the others."),
    Recipe(("confusion_cost", "confusion_found", "confusion_optimal"), draw.cost("confusion"),
           "Cost and effect: true confusions found by looking at the pairs in this order."),
    Recipe(("bias_cost", "bias_found", "bias_optimal"), draw.cost("bias"),
           "Cost and effect: truly biased pairs found by looking at the pairs in this order."),
    Recipe(("table.better", "table.worse", "table.difference", "table.low", "table.high", "table.sure"), draw.groups,
           "The largest differences in accuracy between groups, with intervals; sure ones stand out."),
    Recipe(("table.class", "table.lower_quartile", "table.median", "table.upper_quartile"), draw.class_quartiles,
           "Neuron coverage of single images by class: quartiles and median."),
    Recipe(("histogram_*",), draw.gauge, "How many classes share the same coverage, by criterion."),
    Recipe(("table.cluster", "table.images"), draw.cluster_sizes, "How many error-inducing images each cluster holds."),
    Recipe(("score_clusters", "score"), draw.scores,
           "Score over the number of clusters, by layer; the number is chosen where the curve bends."),
    Recipe(("trait_reduction", "parameter_names"), draw.traits,
           "By how many percent a parameter varies less inside a cluster than over all inputs: what members share."),
    Recipe(_OF_RETRAINING, draw.retrained,
           "What retraining changes, by what was labelled for it, with intervals; sure changes stand out."),
    Recipe(_OF_RETRAINING, draw.retrained_parts,
           "What retraining changes for each root cause, with intervals; sure changes stand out."),
    Recipe(("table.quantity", "table.unit", "table.from", "table.to", "table.accuracy", "table.low", "table.high"),
           draw.effects,
           "Accuracy over the range of each quantity that was varied, everything else at random, with intervals."),
    Recipe(("table.method", "table.area", "table.low", "table.high"), draw.areas,
           "How well each method tells false positives from true lesions: area with interval; ½ is chance."),
    Recipe(("curve_false_positives", "curve_true_positives", "table.method"), draw.accuracy_confidence,
           "Which share of the true and of the false lesions is kept as more uncertain ones are."),
    Recipe(("reliability_said", "reliability_found", "reliability_lesions"), draw.lesion_reliability,
           "Reliability: how often what was said with each probability turned out to be so."),
    Recipe(("table.lesion", "table.voxels", "table.entropy"), draw.lesions,
           "Size and uncertainty of each lesion."),
)  # fmt: skip
"""Every figure of the report."""
