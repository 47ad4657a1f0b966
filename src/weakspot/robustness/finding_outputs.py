"""What each Finding of this room holds: numbers, columns, arrays, figures and sentences. Torch-free."""

from dataclasses import replace

from weakspot.core.figures import Bars, CurvePanels, Curves, Histogram, Scatter, Strip
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    correct,
    count,
    flag,
    interval,
    interval_end,
    number,
    optional,
    prediction,
    sample_id,
    share,
    target,
    text,
)

INPUTS = count("samples examined")
_WEAK = flag(
    "whether the neighbour accuracy is below the threshold; with weak_if: at_or_below, also at it", better="lower"
)
WEAK_SHARE = "share of the inputs that are weak"
WEAK_SENTENCE = "{weak_share} of the inputs are weak: their small variations are predicted incorrectly too often."


_NEIGHBOUR_SUMMARY = {
    "weak_share": share(WEAK_SHARE, better="lower", mean_of="weak"),
    "fragile": count("weak inputs that are predicted correctly as they are", better="lower", counts="weak, correct"),
    "neighbour_accuracy": share("mean over the inputs", better="higher", mean_of="neighbour_accuracy", optional=True),
    "accuracy": share(
        "share of the inputs that are predicted correctly as they are", better="higher", mean_of="correct"
    ),
    "worst_case_accuracy": share(
        "share of the inputs that are predicted correctly in all of the first looks",
        better="higher",
        mean_of="correct_in_all",
        optional=True,
    ),
    "worst_of": count("looks that must all be correct in the worst case, the original among them", optional=True),
    "looks_per_input": number("mean number of looks"),
    "inputs": INPUTS,
}
_DISAGREEMENT = {
    "concentration": number("Simpson's λ of the predictions; 1 where all agree", better="higher"),
    "variation_ratio": share("share of the predictions that differ from the most frequent one", better="lower"),
    "entropy": number("entropy of the predictions; 0 where all agree", better="lower"),
    "consistency": share("share of the neighbours that are predicted as the original is", better="higher"),
}
_NEIGHBOUR_COLUMNS = {
    "id": sample_id(),
    "weak": _WEAK,
    "neighbour_accuracy": share("share of the looks used that are correct", better="higher"),
    **interval("the interval of neighbour accuracy", unit="share"),
    "at_least": interval_end("lowest neighbour accuracy that all looks could give", unit="share"),
    "at_most": interval_end("highest neighbour accuracy that all looks could give", unit="share"),
    "looks_used": count("looks taken, the original included"),
    "correct_looks": count("correct looks among them", better="higher"),
    "correct_in_all": flag("whether all looks of the worst case are correct", better="higher", optional=True),
    **_DISAGREEMENT,
    "correct": correct("whether the original is predicted correctly", optional=True),
}
_WORST_CASE_ARRAYS = {
    "worst_case_looks": ArraySpec("numbers of looks", ("points",), optional=True),
    "worst_case": ArraySpec("share of the inputs whose first so many looks are all correct", ("points",), True),
    "worst_case_low": ArraySpec("low end of its interval", ("points",), optional=True),
    "worst_case_high": ArraySpec("high end of its interval", ("points",), optional=True),
}


_NEIGHBOUR_FIGURES = [
    Histogram(
        values="table.neighbour_accuracy",
        marked="table.weak",
        names=("weak", "strong"),
        x_label="neighbour accuracy",
        caption="Neighbour accuracy of the weak and of the strong inputs.",
    ),
    Curves(
        x="worst_case_looks",
        lines={
            "all looks correct": "worst_case",
            "95 % interval, low": "worst_case_low",
            "95 % interval, high": "worst_case_high",
        },
        x_label="looks, the original first",
        y_label="share of the inputs",
        y_format="percent",
        caption="The worst case: the share of the inputs that are predicted correctly in all of so many looks.",
    ),
]


def _neighbour_outputs(**further_columns: ValueSpec) -> Outputs:
    """What Findings about neighbour accuracy hold, of classes and of numbers."""
    return Outputs(
        summary=_NEIGHBOUR_SUMMARY,
        columns={**_NEIGHBOUR_COLUMNS, **further_columns},
        arrays=_WORST_CASE_ARRAYS,
        figures=_NEIGHBOUR_FIGURES,
        headlines=[
            Headline(
                f"{WEAK_SENTENCE} {{fragile}} of the weak inputs are predicted correctly as they are, by luck. "
                "{accuracy} of the inputs are predicted correctly as they are, {worst_case_accuracy} in every one of "
                "{worst_of} looks."
            ),
            Headline(
                f"{WEAK_SENTENCE} {{fragile}} of the weak inputs are predicted correctly as they are, by luck; the "
                "accuracy of {accuracy} does not show this.",
                rank=1,
            ),
            Headline(WEAK_SENTENCE, rank=1),
        ],
        advice=[
            Advice(
                "Collect new training inputs like the {fragile} that are predicted correctly only by luck, and train "
                "with variations of them. These {fragile} stay in the test set, held out: do not train on them. "
                "Examine the new model on the same test set, and compare.",
                "weakspot compare RUN NEW_RUN",
                rank=3,
            )
        ],
    )


NEIGHBOUR_DIVERSITY = Outputs(
    summary={
        "unanimous_share": share("share of the inputs whose looks are all predicted alike", mean_of="unanimous"),
        "consistency": share("mean over the inputs", better="higher", mean_of="consistency"),
        "concentration": number("mean over the inputs of Simpson's λ", better="higher", mean_of="concentration"),
        "entropy": number("mean over the inputs", better="lower", mean_of="entropy"),
        "looks": count("looks at each input, the original included"),
        "inputs": INPUTS,
    },
    columns={
        "id": sample_id(),
        **_DISAGREEMENT,
        "distinct_predictions": count("different predictions among the looks", better="lower"),
        "unanimous": flag("whether all looks are predicted alike", better="higher"),
        "prediction": prediction(),
    },
    figures=[
        Histogram(
            values="table.concentration",
            x_label="Simpson's λ of the predictions (1 where all agree)",
            caption="How much the predictions for an input and its variations differ.",
        )
    ],
    headlines=[
        Headline(
            "{unanimous_share} of the inputs are predicted alike in all {looks} looks; on average {consistency} of an "
            "input's small variations are predicted as the input is. Without labels this does not say which "
            "predictions are correct.",
            rank=1,
        )
    ],
    advice=[
        Advice(
            "Look at the inputs whose predictions differ most, and label these first: they change most when the input "
            "varies a little. Train on them only if they are no test inputs.",
            rank=3,
        )
    ],
)
NEIGHBOUR_ACCURACY = _neighbour_outputs(target=target(), prediction=prediction())
_OF_NUMBERS = {
    "predicted correctly as they are": "within the tolerance as they are",
    "accuracy of {accuracy}": "{accuracy} within the tolerance",
    "predicted incorrectly": "outside the tolerance",
    "predicted correctly only by luck": "within the tolerance only by luck",
}
"""A number is neither correct nor incorrect: what counts is the tolerance, and the sentences say so."""


def _of_numbers(text: str) -> str:
    for words, told in _OF_NUMBERS.items():
        text = text.replace(words, told)
    return text


def _told_of_numbers(declared: Outputs) -> Outputs:
    summary = {name: replace(spec, about=_of_numbers(spec.about)) for name, spec in declared.summary.items()}
    headlines = [replace(one, text=_of_numbers(one.text)) for one in declared.headlines]
    advice = [replace(one, text=_of_numbers(one.text)) for one in declared.advice]
    return replace(declared, summary=summary, headlines=headlines, advice=advice)


NEIGHBOUR_TOLERANCE = _told_of_numbers(
    _neighbour_outputs(squared_error=number("squared error of the original, mean over its outputs", better="lower"))
)
SQUARED_ERROR = Outputs(
    summary={
        "mean_squared_error": number("mean of (ŷ − y)² over inputs and outputs", better="lower"),
        "inputs": INPUTS,
    }
)
WEAK_PLACES = Outputs(
    summary={
        "distance_weak": number(
            "distance to the centre of the input's class ÷ that to the nearest other centre, mean of the weak inputs",
            optional=True,
        ),
        "distance_strong": number("the same distance ratio, mean of the strong inputs", optional=True),
        "distance_effect": number("Cohen's d of the distance ratio between weak and strong inputs; 0.8 is large"),
        "distance_p_value": number("Mann–Whitney test of the same difference", optional=True),
        "concentration_correlation": number(
            "Spearman's ρ of Simpson's λ and neighbour accuracy, over the inputs whose looks are not all correct"
        ),
        "inputs": INPUTS,
    },
    columns={
        "id": sample_id(),
        "weak": _WEAK,
        "neighbour_accuracy": share("share of the looks that are correct", better="higher"),
        "distance_ratio": number("distance to the centre of the input's class ÷ distance to the nearest other centre"),
        "x": number("first principal component of the features", role="coordinate"),
        "y": number("second principal component of the features", role="coordinate"),
        "target": target(),
        "prediction": prediction(),
    },
    arrays={
        "queries": ArraySpec("numbers of neighbours that λ is taken over", ("points",), optional=True),
        "correlation": ArraySpec("Spearman's ρ for each of these numbers", ("points",), optional=True),
    },
    pictures="inputs by the first two principal components of their features",
    figures=[
        Scatter(
            x="table.x",
            y="table.y",
            marked="table.weak",
            names=("weak", "strong"),
            x_label="first principal component",
            y_label="second principal component",
            caption="Weak and strong inputs by the first two principal components of their features.",
        ),
        Curves(
            x="queries",
            lines="correlation",
            x_label="number of neighbours (logarithmic)",
            y_label="Spearman's ρ",
            log_x=True,
            caption="Correlation of the predictions' Simpson's λ with neighbour accuracy, by the number of neighbours.",
        ),
    ],
)
CLASS_ROBUSTNESS = Outputs(
    summary={
        "weakest_class": text("the class with the largest share of weak inputs"),
        "weakest_share": share("share of its inputs that are weak", better="lower"),
        "strongest_share": share("share of weak inputs of the class that has the fewest", better="lower"),
        "worst_case_class": text("the class with the lowest worst-case accuracy", optional=True),
        "worst_case_accuracy": share(
            "share of its inputs that are predicted correctly in all looks", better="higher", optional=True
        ),
        "classes": count("classes compared"),
        "inputs": INPUTS,
    },
    columns={
        "class": text("the class"),
        "weak_share": share("share of its inputs that are weak", better="lower"),
        **interval("the interval of that share", "weak", unit="share"),
        "neighbour_accuracy": share("mean neighbour accuracy of its inputs", better="higher"),
        **optional(
            {
                "worst_case_accuracy": share(
                    "share of its inputs that are predicted correctly in all looks", better="higher"
                ),
                **interval("the interval of worst-case accuracy", "worst_case", unit="share"),
            }
        ),
        "quartile_1": share("lower quartile of the neighbour accuracy of its inputs", better="higher"),
        "quartile_2": share("median of the neighbour accuracy of its inputs", better="higher"),
        "quartile_3": share("upper quartile of the neighbour accuracy of its inputs", better="higher"),
        "inputs": count("its inputs"),
    },
    arrays={"counts": ArraySpec("inputs by class and number of correct looks", ("classes", "correct looks"))},
    figures=[
        Strip(
            labels="table.class",
            counts="counts",
            x_label="neighbour accuracy",
            caption="Neighbour accuracy of the inputs of each class; the stronger the colour, the more inputs.",
        ),
        Bars(
            labels=("table.class",),
            values="table.weak_share",
            low="table.weak_low",
            high="table.weak_high",
            x_label="share of the inputs that are weak",
            format="percent",
            caption="Share of weak inputs of each class, with 95 % intervals.",
        ),
        Bars(
            labels=("table.class",),
            values="table.worst_case_accuracy",
            low="table.worst_case_low",
            high="table.worst_case_high",
            x_label="share of the inputs that are correct in all looks",
            format="percent",
            caption="Worst-case accuracy of each class: the share of its inputs that are predicted correctly in the "
            "original and in all neighbours, with 95 % intervals.",
        ),
    ],
)


def _effects(of: str, counted: str) -> Outputs:
    """Of what varied quantities change: a share of looks."""
    return Outputs(
        summary={
            "hurts_most": text(f"the quantity with the largest effect on the {of}", optional=True),
            "effect_*": share(f"{of} in the best bin of a quantity less that in its worst", better="lower"),
            "worst_kind": text(f"the kind of variation with the lowest {of}", optional=True),
            "under_*": share(f"{of} under one kind of variation", better="higher", optional=True),
        },
        columns={
            "quantity": text("what is varied"),
            "unit": text("its unit"),
            "from": number("where the bin begins"),
            "to": number("where the bin ends"),
            "accuracy": share(f"share of the looks in the bin {counted}", better="higher"),
            **interval("the interval of accuracy", unit="share"),
            "looks": count("looks in the bin"),
        },
        figures=[
            CurvePanels(
                by="table.quantity",
                unit="table.unit",
                start="table.from",
                end="table.to",
                value="table.accuracy",
                low="table.low",
                high="table.high",
                y_label=of,
                y_format="percent",
                caption=f"{of.capitalize()} over the range of each varied quantity, others at random, with intervals.",
            )
        ],
        advice=[
            Advice(
                "Vary {hurts_most} of the training inputs when training (data augmentation): over its range the "
                f"{of} differs by {{effect_1}}.",
                rank=2,
            )
        ],
    )


VARIATION_EFFECTS = _effects("accuracy", "that are correct")
TOLERANCE_EFFECTS = _effects("share within tolerance", "whose error is within the tolerance")
WEAK_STRIPS = Outputs(
    summary={"inputs": count("weak inputs shown, all predicted correctly as they are")},
    columns={
        "id": sample_id(),
        "predictions": text("the predictions for the original and the neighbours shown, in order"),
        "correct_looks": count("correct looks among these", better="higher"),
        **optional(
            {
                "looks": count("looks shown, the original among them"),
                "neighbour_accuracy": share("share of the looks used that are correct", better="higher"),
                "looks_used": count("looks until it was clear that the input is weak: neighbour accuracy is of these"),
            }
        ),
    },
    pictures="an input and its neighbours; the frame is blue where the prediction is correct, else orange",
)
COMPARED_NEIGHBOURS = Outputs(
    summary={
        "verdict": text("better or worse where the interval of the difference shows it"),
        "difference": number("share of weak inputs after less that before, paired", better="lower"),
        "weak_before": share("share of weak inputs before"),
        "weak_after": share("share of weak inputs after", better="lower"),
        "became_strong": count("inputs that are weak before only", better="higher"),
        "became_weak": count("inputs that are weak after only", better="lower"),
        "neighbour_accuracy_change": number(
            "mean change of neighbour accuracy, paired", better="higher", optional=True
        ),
        "alike": share("share of the inputs whose neighbour accuracy changes by less than 0.2", optional=True),
        "inputs": INPUTS,
    },
    columns={
        "id": sample_id(),
        "change": text("whether the input became weak or strong"),
        "before": share("neighbour accuracy before", better="higher"),
        "after": share("neighbour accuracy after", better="higher"),
    },
)
