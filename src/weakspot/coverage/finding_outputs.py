"""What each Finding of this room holds: numbers, columns, arrays, figures and sentences. Torch-free."""

from collections.abc import Sequence

from weakspot.core.figures import Boxes, Curves, Figure, Histogram, Matrix, Scatter, SplitBoxes
from weakspot.core.outputs import (
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    correct,
    count,
    interval_end,
    number,
    sample_id,
    share,
    text,
)

_INPUTS = count("samples examined")
_LAYER_COLUMNS = {
    "layer": text("the layer"),
    "neurons": count("its neurons"),
    "coverage": share("share of the layer's targets that are covered"),
}
_CURVE = {
    "curve_size": ArraySpec("sizes of random subsets of the inputs", ("subset",)),
    "curve_coverage": ArraySpec("mean coverage of subsets of that size", ("subset",)),
}


def _coverage(of: str) -> dict[str, ValueSpec]:
    return {
        "coverage": share(f"share of the {of} that at least one input covers"),
        "coverage_of_half": share("share that a random half of the inputs covers, averaged over all halves"),
        "unseen": share(f"share of the {of} that more inputs of the same kind would still cover (Chao2 estimate)"),
    }


_REACHED = {
    **_coverage("targets"),
    "targets": count("targets that can be covered"),
    "inputs": _INPUTS,
}
_OF_CLASS = {"coverage, predicted *": share("coverage by the inputs predicted as one class", optional=True)}
_CLASS_ARRAYS = {
    "class_counts": ArraySpec("inputs of each class that cover each target", optional=True),
    "class_inputs": ArraySpec("inputs predicted as each class", ("class",), optional=True),
}
_SATURATION = Curves(
    x="curve_size", lines="curve_*coverage", prefix="curve_", log_x=True, y_format="percent",
    x_label="number of inputs (logarithmic)", y_label="share covered",
    caption="Saturation: the mean coverage of random subsets of the inputs, by their size.",
)  # fmt: skip
_NO_VERDICT = "Coverage alone cannot say. The test inputs cover {coverage} of what {finding} counts"


def _headlines(rank: int) -> tuple[Headline, ...]:
    """Three forms of one sentence; which one is told depends on the numbers that are there."""
    more = "more inputs of the same kind would cover another {unseen}."
    return (
        Headline(f"{_NO_VERDICT}; as many training inputs cover {{coverage_of_training}}; {more}", rank),
        Headline(f"{_NO_VERDICT}; {more}", rank + 10),
        Headline(f"{_NO_VERDICT}.", rank + 20),
    )


def _criterion(
    rank: int,
    *,
    summary: dict[str, ValueSpec] | None = None,
    columns: dict[str, ValueSpec] | None = None,
    arrays: dict[str, ArraySpec] | None = None,
    figures: Sequence[Figure] = (),
) -> Outputs:
    """A coverage criterion over the neurons of layers, with what it adds."""
    training = share("share that as many training inputs, drawn at random, cover on average", optional=True)
    return Outputs(
        summary={**_REACHED, "*coverage_of_training": training, **_OF_CLASS, **(summary or {})},
        columns={**_LAYER_COLUMNS, **_OF_CLASS, **(columns or {})},
        arrays={"counts": ArraySpec("how many inputs cover each target"), **_CURVE, **_CLASS_ARRAYS, **(arrays or {})},
        figures=(_SATURATION, *figures),
        headlines=_headlines(rank),
    )


NEURON_COVERAGE = _criterion(3)
ACTIVATION_RANGES = Outputs(
    summary={
        "inputs": _INPUTS,
        "neurons": count("neurons whose range was recorded"),
        "constant": count("neurons with the same value for every input"),
    },
    columns={
        "layer": text("the layer"),
        "neurons": count("its neurons"),
        "constant": count("its neurons with the same value for every input"),
    },
    arrays={
        "low": ArraySpec("smallest value of each neuron", ("neuron",)),
        "high": ArraySpec("largest value of each neuron", ("neuron",)),
    },
)


_BOUNDARY = _coverage("regions below and above the neurons' training ranges (NBC)")
_STRONG = _coverage("regions above the neurons' training ranges (SNAC)")
K_MULTISECTION = _criterion(
    2,
    summary={
        **{f"boundary_{name}": spec for name, spec in _BOUNDARY.items()},
        **{f"strong_{name}": spec for name, spec in _STRONG.items()},
        "constant": count("neurons with a single value in training: they can cover one section at most"),
    },
    columns={
        "boundary_coverage": share("share of the layer's regions outside the training range that are covered"),
        "strong_coverage": share("share of the layer's regions above the training range that are covered"),
    },
    arrays={
        "beyond": ArraySpec("inputs below and above each neuron's training range", ("neuron", "side")),
        "curve_boundary_coverage": ArraySpec("mean boundary coverage of subsets of that size", ("subset",)),
        "curve_strong_coverage": ArraySpec("mean strong activation coverage of subsets of that size", ("subset",)),
    },
)
TOP_NEURONS = _criterion(
    4,
    summary={
        "patterns": count("distinct patterns of top neurons (TKNP)"),
        "patterns_of_half": number("patterns of a random half of the inputs, on average"),
        "patterns_unseen": number("patterns that more inputs of the same kind would add, at least (Chao2 estimate)"),
    },
    arrays={
        "inputs_per_pattern": ArraySpec("inputs that show each pattern", ("pattern",)),
        "curve_patterns": ArraySpec("mean number of patterns of subsets of that size", ("subset",)),
    },
    figures=(
        Curves(
            x="curve_size", lines="curve_patterns", prefix="curve_", log_x=True,
            x_label="number of inputs (logarithmic)", y_label="distinct patterns",
            caption="Saturation of patterns: how many distinct ones random subsets of the inputs show, on average.",
        ),
    ),
)  # fmt: skip
LAYER_TRACES = Outputs(
    summary={"neurons": count("values kept per input"), "inputs": _INPUTS},
    columns={
        "id": sample_id(),
        "prediction": ValueSpec("the predicted class", "count", role="prediction", optional=True),
        "target": ValueSpec("the label", "count", role="target", optional=True),
    },
    arrays={"trace": ArraySpec("activations of each input", ("input", "neuron"))},
)
NEURON_IMPORTANCE = Outputs(
    summary={
        "held_by_a_tenth": share("share of all relevance that the most relevant tenth of the neurons holds"),
        "neurons": count("neurons of the layer"),
        "inputs": count("inputs whose relevance was summed"),
        "relevance_problem": text("what is wrong with the relevance, and what to use instead", optional=True),
    },
    columns={
        "layer": text("the layer"),
        "channel": ValueSpec("the neuron", "count", role="code"),
        "relevance": number("summed relevance"),
    },
    arrays={
        "relevance": ArraySpec("summed relevance of each neuron", ("neuron",)),
        "order": ArraySpec("the neurons, most relevant first", ("neuron",)),
        "class_relevance": ArraySpec("relevance by predicted class", ("class", "neuron"), optional=True),
        "class_inputs": ArraySpec("inputs predicted as each class", ("class",), optional=True),
    },
)
IMPORTANCE_DRIVEN_COVERAGE = Outputs(
    summary={
        "coverage": share("share of the combinations of clusters that at least one input covers"),
        "coverage_of_half": share("share that a random half of the inputs covers, averaged over all halves"),
        "coverage_of_training": share(
            "share that as many training inputs, drawn at random, cover on average", optional=True
        ),
        "unseen": share("share of the combinations that more inputs of the same kind would add (Chao2 estimate)"),
        "targets": count("combinations that can be covered"),
        "inputs": _INPUTS,
        "neurons": count("important neurons that are combined"),
        "clusters": text("number of clusters of each important neuron, most important first"),
        "coverage, *": share("coverage of the inputs of one class", optional=True),
        "relevance_problem": text("what is wrong with the relevance, and what to use instead", optional=True),
    },
    columns={
        "id": sample_id(),
        "combination": ValueSpec("the combination that the input covers", "count", role="code"),
        "class": text("the class whose neurons are combined", optional=True),
        "inputs_alike": count("inputs that cover the same combination"),
    },
    arrays={
        "counts": ArraySpec("inputs that cover each combination", ("combination",)),
        "combinations": ArraySpec("the clusters of each covered combination", ("combination", "neuron")),
        "combination_group": ArraySpec("the class or group of each combination", ("combination",)),
        **_CURVE,
        "important": ArraySpec("the important neurons", ("group", "neuron")),
        "centres": ArraySpec("cluster centres of each neuron", ("group", "neuron", "cluster")),
        "borders": ArraySpec("borders between clusters", ("group", "neuron", "border")),
        "coverage_by_group": ArraySpec("coverage of each class or group", ("group",)),
        "hole_combination": ArraySpec("combinations that no test input covers", ("hole", "neuron"), optional=True),
        "hole_group": ArraySpec("the class or group of each hole", ("hole",), optional=True),
        "hole_training_inputs": ArraySpec("training inputs that cover the hole", ("hole",), optional=True),
        "hole_nearest_id": ArraySpec("training inputs nearest to the hole", ("hole", "rank"), optional=True),
        "hole_nearest_distance": ArraySpec("their distance", ("hole", "rank"), optional=True),
        "relevance": ArraySpec("relevance of each neuron", ("neuron",)),
        "activation": ArraySpec("mean activation of each neuron", ("neuron",)),
        "box_levels": ArraySpec("levels of the quantiles", ("quantile",)),
        "box_*_neuron": ArraySpec("the neurons of the boxes", ("neuron",)),
        "box_important": ArraySpec("quantiles of the important neurons' values", ("neuron", "quantile")),
        "box_random": ArraySpec("quantiles of as many random neurons' values", ("neuron", "quantile")),
    },
    pictures="training inputs nearest to each hole",
    figures=(
        _SATURATION,
        Scatter(
            x="activation", y="relevance", marked_rows="box_important_neuron", names=("important", "other neurons"),
            x_label="mean activation", y_label="relevance",
            caption="Mean activation and relevance of each neuron: are the most active ones the most relevant?",
        ),
        Boxes(
            labels=("box_important_neuron", "box_random_neuron"), quantiles=("box_important", "box_random"),
            stacked=("important", "random"), x_label="activation over the inputs",
            caption="Activations of the important neurons and of as many random ones: quartiles, median, 5 % to 95 %.",
        ),
    ),
    headlines=(
        Headline("The important neurons may be the wrong ones: {relevance_problem}.", further=True), *_headlines(1),
    ),
)  # fmt: skip
_SURPRISE_SUMMARY = {
    **_REACHED,
    **_OF_CLASS,
    "coverage_of_training": share("share that as many training inputs cover on average", optional=True),
    "median_surprise": number("half of the inputs have less"),
    "beyond": count("inputs above the upper bound"),
    "below": count("inputs at or below 0"),
}
_SURPRISE_COLUMNS = {
    "id": sample_id(),
    "prediction": ValueSpec("the predicted class", "count", role="prediction", optional=True),
    "surprise": number("how surprising the input is, compared with the training data"),
    "bucket": ValueSpec("the bucket of surprise it falls into", "count", role="code"),
}
_SURPRISE_ARRAYS = {
    "counts": ArraySpec("inputs in each bucket", ("bucket",)),
    **_CURVE,
    "class_coverage": ArraySpec("coverage of each predicted class", ("class",), optional=True),
    "class_inputs": ArraySpec("inputs predicted as each class", ("class",), optional=True),
}
_SURPRISE_FIGURES = (
    _SATURATION,
    Histogram(
        values="table.surprise",
        x_label="surprise",
        caption="How surprising the inputs are, compared with the training data.",
    ),
)
LIKELIHOOD_SURPRISE_COVERAGE = Outputs(
    summary={
        **_SURPRISE_SUMMARY,
        "neurons": count("neurons that vary enough to be used"),
        "singular": count("densities estimated only in the directions that vary"),
        "without_density": count("classes whose training inputs do not differ: their surprise is infinite"),
        "unknown_class": count("inputs of classes that no training input is predicted as", optional=True),
    },
    columns=_SURPRISE_COLUMNS,
    arrays={
        **_SURPRISE_ARRAYS,
        "density_class": ArraySpec("the class of each density", ("density",)),
        "density_inputs": ArraySpec("training inputs of each density", ("density",)),
        "density_directions": ArraySpec("directions that vary", ("density",)),
    },
    figures=_SURPRISE_FIGURES,
    headlines=_headlines(5),
)
DISTANCE_SURPRISE_COVERAGE = Outputs(
    summary={
        **_SURPRISE_SUMMARY,
        "unknown_class": count("inputs of classes that no training input is predicted as: their surprise is infinite"),
    },
    columns=_SURPRISE_COLUMNS,
    arrays=_SURPRISE_ARRAYS,
    figures=_SURPRISE_FIGURES,
    headlines=_headlines(5),
)
_SCORES = {
    "max_softmax": number("highest softmax probability", optional=True),
    "margin": number("highest less second highest probability", optional=True),
    "entropy": number("entropy of the softmax", optional=True),
    "deep_gini": number("1 − Σp² of the softmax (DeepGini)", optional=True),
}
CONFIDENCE = Outputs(
    summary={
        **{f"mean_{name}": number("mean of the score", mean_of=name, optional=True) for name in _SCORES},
        "errors": count("samples predicted incorrectly", better="lower", optional=True),
        "auroc_*": number(
            "chance that an incorrect prediction is less confident than a correct one by this score; ½ is chance",
            better="higher",
            optional=True,
        ),
        "inputs": _INPUTS,
    },
    columns={
        "id": sample_id(),
        "prediction": ValueSpec("the predicted class", "count", role="prediction"),
        **_SCORES,
        "correct": correct(optional=True),
    },
    figures=(
        SplitBoxes(
            values="table.max_softmax", by="table.correct", names=("correct predictions", "incorrect predictions"),
            x_label="highest probability",
            caption="Confidence of correct and of incorrect predictions: quartiles, median, 5 % to 95 %.",
        ),
    ),
)  # fmt: skip
NEXT_INPUTS = Outputs(
    summary={
        "adding_*": count("inputs that together give all the coverage that can be gained"),
        "errors": count("inputs predicted incorrectly", better="lower", optional=True),
        "apfd_*": number(
            "how early the errors come in this order (APFD): 1 if first, ½ in random order", optional=True
        ),
        "kinds_*": count("kinds of errors among the first inputs of this ranking", better="higher", optional=True),
        "inputs": count("samples ranked"),
    },
    columns={
        "id": sample_id(),
        "place_*": ValueSpec("place in this ranking", "count", role="rank"),
        "new_*": count("targets that the input adds to those before it"),
        **_SCORES,
        "correct": correct(optional=True),
    },
    arrays={
        "inspected": ArraySpec("numbers of inputs looked at", ("point",), optional=True),
        "found_*": ArraySpec("share of the errors among them", ("point",), optional=True),
        "brings_size": ArraySpec("numbers of inputs added", ("point",)),
        "gained_*": ArraySpec("targets gained with them", ("point",)),
    },
    figures=(
        Curves(
            x="inspected", lines="found_*", prefix="found_", y_format="percent",
            x_label="inputs looked at", y_label="share of the errors found",
            caption="Which ranking finds the errors first: share of the errors among the first inputs of each ranking.",
        ),
        Curves(
            x="brings_size", lines="gained_*", prefix="gained_", relative=True, log_x=True, y_format="percent",
            x_label="inputs added (logarithmic)", y_label="share of what can be gained",
            caption="Coverage gained by adding inputs, the most useful first: share of the targets that can be gained.",
        ),
    ),
)  # fmt: skip
CRITERIA_AGREEMENT = Outputs(
    summary={
        "errors": count("inputs predicted incorrectly", better="lower", optional=True),
        "*_with_errors": number(
            "Spearman's correlation of the criterion and the errors in random subsets", optional=True
        ),
        "*_by_input": number(
            "chance that an incorrectly predicted input has more of it than a correct one (AUROC)", optional=True
        ),
        "subsets": count("random subsets of equal size"),
        "inputs": _INPUTS,
    },
    columns={
        "measure": text("the criterion or baseline"),
        "mean": number("its mean over the subsets"),
        "low": interval_end("5 % of the subsets have less"),
        "high": interval_end("95 % of the subsets have less"),
        "with_*": number("Spearman's correlation with this measure", optional=True),
    },
    arrays={
        "spearman_subsets": ArraySpec("correlation over subsets", ("measure", "measure")),
        "spearman_inputs": ArraySpec("correlation over inputs", ("measure", "measure")),
    },
    figures=(
        Matrix(
            values="spearman_subsets", rows="table.measure", signed=True,
            caption="Do the criteria agree? Spearman's correlation over random subsets of equal size; blue: positive.",
        ),
    ),
)  # fmt: skip
