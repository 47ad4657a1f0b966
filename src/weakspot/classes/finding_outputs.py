"""What the Findings of the classes room hold. Torch-free."""

from weakspot.core.figures import Bars, Boxes, Curves, Dendrogram, Distributions, Matrix
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    count,
    flag,
    interval,
    number,
    optional,
    prediction,
    sample_id,
    share,
    text,
)


def _ranking(what: str, prefix: str = "") -> dict[str, ValueSpec]:
    """How well a report of pairs does against labels."""
    specs = {
        "true_positives": count(f"reported pairs that the labels confirm ({what})"),
        "false_positives": count(f"reported pairs that the labels do not confirm ({what})", better="lower"),
        "missed": count(f"pairs with true {what} that are not reported", better="lower"),
        "precision": share("share of the reported pairs that the labels confirm", better="higher"),
        "recall": share("share of the truly affected pairs that are reported", better="higher"),
        "chance": number("true positives of a random report of that length"),
        "top_precision": share("precision of the top 1 % of the pairs", better="higher"),
        "correlation": number(f"Spearman's correlation of score and true {what}", better="higher"),
        "gain": number("area under the cost-effectiveness curve, relative to random order", better="higher"),
        "order": text(f"how the order of the pairs does at true {what}, where it is worse than a random one"),
        "shortfall": number("share of the best possible area that is missing", better="lower"),
    }
    return optional({f"{prefix}{what}_{name}": spec for name, spec in specs.items()})


_PAIRS = {
    "confused": count("pairs suspected of confusion", better="lower"),
    "biased": count("pairs suspected of unequal treatment", better="lower", optional=True),
    "pairs": count("pairs of ranked classes"),
    "no_pairs": text("why no pair of classes is compared", optional=True),
    "classes": count("classes with enough predicted images to be ranked"),
    "not_ranked": count("classes left out, with too few predicted images"),
    **_ranking("confusion"),
    **_ranking("bias"),
}
_PAIR_COLUMNS = {
    "first": text("one class"),
    "second": text("the other class"),
    "confused": flag("whether the pair is suspected of confusion", better="lower"),
    "biased": flag("whether the pair is suspected of unequal treatment", better="lower", optional=True),
    "soft_confusion": share("probability that images predicted as one class give to the other", optional=True),
    "soft_confusion_bias": number("average bias, from soft confusion", optional=True),
    "first_taken_for_second": share("share of the first class predicted as the second", better="lower", optional=True),
    "second_taken_for_first": share("share of the second class predicted as the first", better="lower", optional=True),
    "truly_confused": flag("whether the labels show confusion", better="lower", optional=True),
    "disparity": number("difference of the two classes' confusions with third classes", better="lower", optional=True),
    "truly_biased": flag("whether the labels show unequal treatment", better="lower", optional=True),
    "images_first": count("images predicted as the first class"),
    "images_second": count("images predicted as the second class"),
    "first_like_second": text("the image predicted as the first class that is most like the second"),
    "second_like_first": text("the image predicted as the second class that is most like the first"),
}
_MATRIX = ("class", "class")
_PAIR_ARRAYS = {
    "classes": ArraySpec("the ranked classes", ("class",)),
    "confusion": ArraySpec("share of the row's class predicted as the column's, by labels", _MATRIX, optional=True),
    "disparity": ArraySpec("difference of confusions with third classes, by labels", _MATRIX, optional=True),
    "tree_order": ArraySpec("an order that puts like classes side by side", ("class",), optional=True),
    "soft_confusion": ArraySpec("probability given to the column's class", _MATRIX, optional=True),
    "soft_confusion_bias": ArraySpec("average bias, from soft confusion", _MATRIX, optional=True),
    "images_per_class": ArraySpec("images predicted as each class", ("class",)),
    "*_cost": ArraySpec("share of the pairs looked at", ("point",), optional=True),
    "*_found": ArraySpec("share of the truly affected pairs found", ("point",), optional=True),
    "*_optimal": ArraySpec("the same in the best possible order", ("point",), optional=True),
}
_SOFT = Matrix(
    values="soft_confusion", classes="classes", order="tree_order", format="tenths",
    caption="Soft confusion: the probability, in percent, that images predicted as the row's class give the column's.",
)  # fmt: skip
_TRUE = Matrix(
    values="confusion", classes="classes", order="tree_order", format="hundredths",
    caption="True confusion: how often, in percent, the row's class is predicted as the column's or, where an input "
    "may have several labels, the column's is predicted beside it.",
)  # fmt: skip


def _cost(what: str, of: str) -> Curves:
    return Curves(
        x=f"{what}_cost",
        lines={
            "this ranking": f"{what}_found",
            "by the outputs alone": f"outputs_{what}_found",
            "the best possible": f"{what}_optimal",
            "random": f"{what}_cost",
        },
        x_label="share of the pairs looked at",
        y_label="share of the true ones found",
        x_format="percent",
        y_format="percent",
        caption=f"Cost and effect: {of} found by looking at the pairs in this order.",
    )


_CURVES = (_cost("confusion", "true confusions"), _cost("bias", "pairs with true bias"))
_ALIKE = "{confused} of {pairs} pairs of classes look so alike to the network that it may confuse them"
_CONFIRMED = "; the labels confirm {confusion_true_positives} of these and show {confusion_missed} more."
_UNEQUAL = " Pairs suspected of unequal treatment: {biased}"
_HEADLINES = (
    Headline("No pair of classes can be compared: {no_pairs}. Examine more images, or lower least_images.", -1),
    Headline(f"{_ALIKE}{_CONFIRMED}{_UNEQUAL}; the labels confirm {{bias_true_positives}} of these and show "
             "{bias_missed} more.", 0),
    Headline(f"{_ALIKE}{_CONFIRMED}", 1),
    Headline(f"{_ALIKE}, {{surely_confused}} of them beyond chance.{_UNEQUAL}.", 2),
    Headline(f"{_ALIKE}.{_UNEQUAL}.", 3),
    Headline(f"{_ALIKE}.", 4),
    Headline("By the labels the order of these pairs is {confusion_order}: do not rely on it here.", further=True),
)  # fmt: skip
CLASS_PAIRS = Outputs(
    summary={
        **_PAIRS,
        "surely_confused": count("pairs nearer than the threshold beyond chance", better="lower", optional=True),
        "coincidence_correlation": number(
            "Spearman's correlation of distance and how often two labels appear together", optional=True
        ),
        "outputs_confused": count("pairs suspected by the outputs alone", better="lower"),
        **_ranking("confusion", "outputs_"),
        **_ranking("bias", "outputs_"),
        "* / *": number("average bias of a pair that was asked for by name", optional=True),
    },
    columns={
        **_PAIR_COLUMNS,
        "distance": number("distance of the two classes by the neurons they activate (NAPVD)"),
        "certainty": share("how surely the distance is below the threshold", optional=True),
        "corrected_distance": number("distance, corrected for the number of images", optional=True),
        **interval("the corrected distance", optional=True),
        "average_bias": number("how unequally the two are treated beside all others", better="lower", optional=True),
        "worst_beside": text("the third class with which they are treated most unequally", optional=True),
        "soft_confusion_rank": ValueSpec("place by soft confusion", "count", role="rank", optional=True),
        "outputs_confused": flag("whether the outputs alone suspect the pair", better="lower", optional=True),
        "outputs_biased": flag("whether the outputs alone suspect unequal treatment", better="lower", optional=True),
    },
    arrays={
        **_PAIR_ARRAYS,
        "distance": ArraySpec("distance of every two classes", _MATRIX),
        "average_bias": ArraySpec("average bias of every two classes", _MATRIX, optional=True),
        "tree": ArraySpec("which classes are joined first, as scipy's linkage", ("join", "entry"), optional=True),
        "neural_paths": ArraySpec("distinct activation patterns of each class", ("class",)),
    },
    pictures="images of one class that look most like another, side by side",
    figures=(
        Matrix(
            values="distance", classes="classes", order="tree_order", format="decimal", darkest="low",
            caption="Distance between classes by the neurons they activate; the stronger the colour, the nearer.",
        ),
        Dendrogram(
            tree="tree", order="tree_order", classes="classes", x_label="distance",
            caption="Which classes look alike to the network: the nearest are joined first.",
        ),
        _SOFT,
        _TRUE,
        Matrix(
            values="average_bias", classes="classes", order="tree_order", format="hundredths",
            caption="Average bias, in hundredths: how differently two classes relate to the other classes.",
        ),
        *_CURVES,
    ),
    headlines=_HEADLINES,
)  # fmt: skip
OUTPUT_PAIRS = Outputs(
    summary=_PAIRS,
    columns=_PAIR_COLUMNS,
    arrays=_PAIR_ARRAYS,
    pictures="images of one class that look most like another, side by side",
    figures=(_SOFT, _TRUE, *_CURVES),
    headlines=tuple(one for one in _HEADLINES if "surely_confused" not in one.text),
)
IMAGES_TO_LABEL = Outputs(
    summary={
        "images": count("images to look at"),
        "pairs": count("confused pairs they come from"),
        "searched": count("images searched"),
    },
    columns={
        "id": sample_id(),
        "prediction": prediction(),
        "suspected": text("the class that it may truly belong to"),
    },
    advice=(
        Advice(
            "Label, or check the labels of, {images} of {searched} images: they come from pairs that may be confused. "
            "Train on them only if they are no test inputs.",
            rank=50,
        ),
    ),
)
GROUP_FAIRNESS = Outputs(
    summary={
        "largest_difference": share("largest difference in accuracy between two groups", better="lower", optional=True),
        "sure_differences": count("differences whose interval excludes 0", better="lower", optional=True),
        "worst_accuracy": share("accuracy of the worst group", better="higher", optional=True),
        "groups": count("groups with enough images"),
        "too_few_images": count("groups left out, with too few images"),
    },
    columns=optional({
        "better": text("the group with the higher accuracy"),
        "worse": text("the group with the lower accuracy"),
        "accuracy_better": share("accuracy of the better group"),
        "accuracy_worse": share("accuracy of the worse group", better="higher"),
        "difference": share("difference in accuracy", better="lower"),
        **interval("the difference"),
        "sure": flag("whether the interval excludes 0"),
        "images_better": count("images of the better group"),
        "images_worse": count("images of the worse group"),
        "distance": number("distance of the two groups by the neurons they activate"),
        "average_bias": number("how unequally the two are treated beside other classes"),
        "worst_beside": text("the class with which they are treated most unequally"),
    }),
    figures=(
        Bars(
            labels=("table.better", "table.worse"), label_text="{} over {}", values="table.difference",
            low="table.low", high="table.high", marked="table.sure", most=12, format="percent",
            x_label="difference in accuracy",
            caption="The largest differences in accuracy between groups, with intervals. Beyond chance: marked.",
        ),
    ),
    headlines=(
        Headline(
            "The largest difference in accuracy between groups is {largest_difference}; {sure_differences} differences "
            "are beyond chance.",
            10,
        ),
    ),
)  # fmt: skip
CLASS_COVERAGE = Outputs(
    summary={
        "p_value": number("Kruskal–Wallis test: chance of such differences if there are none", optional=True),
        "epsilon_squared": number("effect size of that test, 0 to 1", optional=True),
        "*_share": share("share of the class pairs whose difference is of that size", optional=True),
    },
    columns={
        "class": text("the class"),
        "images": count("its images"),
        "lower_quartile": share("lower quartile of its images' neuron coverage"),
        "median": share("median of its images' neuron coverage"),
        "upper_quartile": share("upper quartile of its images' neuron coverage"),
    },
    arrays={"cohens_d": ArraySpec("Cohen's d of every two classes", _MATRIX)},
    figures=(
        Boxes(
            labels="table.class",
            quantiles=("table.lower_quartile", "table.median", "table.upper_quartile"),
            x_label="neuron coverage of an image",
            format="percent",
            caption="Neuron coverage of single images by class: quartiles and median.",
        ),
    ),
)
CLASS_RANGES = Outputs(
    summary={"classes": count("classes with training images")},
    columns={"class": text("the class"), "images": count("its training images")},
    arrays={
        "low": ArraySpec("smallest value of each neuron, by class", ("class", "neuron")),
        "high": ArraySpec("largest value of each neuron, by class", ("class", "neuron")),
    },
)
CLASS_CRITERIA = Outputs(
    summary={"*_alike": count("most classes that share a hundredth of this criterion")},
    columns={
        "class": text("the class"),
        "images": count("its images"),
        "k_multisection": share("k-multisection coverage by its images"),
        "boundary": share("boundary coverage by its images"),
        "strong_activation": share("strong activation coverage by its images"),
        "top_neurons": share("top-k neuron coverage by its images"),
        "patterns": number("distinct patterns of top neurons for each of its images"),
    },
    arrays={"histogram_*": ArraySpec("classes by hundredths of coverage", ("hundredth",))},
    figures=(
        Distributions(
            counts="histogram_*",
            prefix="histogram_",
            x_label="coverage of a class",
            y_label="classes",
            caption="How many classes share the same coverage, by criterion.",
        ),
    ),
)
