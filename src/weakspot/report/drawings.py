"""The figures of the report, each drawn from what a Finding is given to hold; `weakspot.report.recipes` says when."""

from collections.abc import Callable
from typing import Any

import numpy as np

from weakspot.report.axes import Wording
from weakspot.report.figures import curve, curves, histogram, scatter
from weakspot.report.given import Given
from weakspot.report.row_figures import bars, boxes, dendrogram, matrix, strip
from weakspot.report.wording import label, percent

_BINS = 20
_MOST_PANELS = 6
_WHISKERS = (0.05, 0.25, 0.5, 0.75, 0.95)


def saturation(given: Given) -> str:
    lines = {label(f"{name}coverage"): values for name, values in given.like("curve_*coverage").items()}
    told: dict[str, Any] = {"x_label": "number of inputs (logarithmic)", "y_label": "share covered"}
    if len(lines) == 1:
        return curve(given["curve_size"], given["curve_coverage"], log_x=True, y_text=percent, **told)
    return curves(given["curve_size"], lines, log_x=True, y_text=percent, **told)


def patterns(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "number of inputs (logarithmic)", "y_label": "distinct patterns"}
    return curve(given["curve_size"], given["curve_patterns"], log_x=True, **told)


def relevance(given: Given) -> str:
    x, y = given["activation"], given["relevance"]
    marked = np.isin(np.arange(len(x)), given["box_important_neuron"])
    told: dict[str, Any] = {
        "x_label": "mean activation",
        "y_label": "relevance",
        "names": ("important", "other neurons"),
    }
    return scatter(x, y, marked=marked, **told)


def important(given: Given) -> str:
    kinds = ("important", "random")
    labels = [f"{kind} {neuron}" for kind in kinds for neuron in given.words(f"box_{kind}_neuron")]
    quantiles = np.concatenate([given[f"box_{kind}"] for kind in kinds])
    marked = np.arange(len(labels)) < len(given["box_important"])
    return boxes(labels, quantiles, x_label="activation over the inputs", marked=marked)


def rankings(given: Given) -> str:
    lines = {label(name): values for name, values in given.like("found_*").items()}
    told: dict[str, Any] = {"x_label": "inputs looked at", "y_label": "share of the errors found"}
    return curves(given["inspected"], lines, y_text=percent, **told)


def gained(given: Given) -> str:
    lines = {label(name): values for name, values in given.like("gained_*").items()}
    lines = {name: values / values[-1] for name, values in lines.items() if values.ndim == 1 and values[-1:].all()}
    told: dict[str, Any] = {"x_label": "inputs added (logarithmic)", "y_label": "share of all there is to gain"}
    return curves(given["brings_size"], lines, log_x=True, y_text=percent, **told)


def agreement(given: Given) -> str:
    return matrix([label(name) for name in given.words("table.measure")], given["spearman_subsets"], signed=True)


def surprise(given: Given) -> str:
    return _spread(given["table.surprise"], x_label="surprise")


def confidence(given: Given) -> str:
    right, sure = given["table.right"].astype(bool), given["table.max_softmax"]
    kinds = {name: sure[which] for name, which in (("right answers", right), ("wrong answers", ~right)) if which.any()}
    quantiles = np.array([np.quantile(values, _WHISKERS) for values in kinds.values()])
    return boxes(list(kinds), quantiles, x_label="highest probability", marked=np.array([k[0] == "w" for k in kinds]))


def neighbours(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "neighbour accuracy", "names": ("weak", "strong")}
    return _spread(given["table.accuracy"], marked=given["table.weak"].astype(bool), **told)


def class_strips(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "neighbour accuracy", "wording": percent}
    return strip(given.words("table.class"), given["counts"], low=0, high=1, **told)


def weak_classes(given: Given) -> str:
    ends: dict[str, Any] = {"low": given["table.weak_low"], "high": given["table.weak_high"]}
    told = "share of the inputs that are weak"
    return bars(given.words("table.class"), given["table.weak_share"], x_label=told, wording=percent, **ends)


def places(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "first direction", "y_label": "second direction", "names": ("weak", "strong")}
    weak = given["table.weak"].astype(bool)
    return scatter(given["table.x"], given["table.y"], marked=weak, **told)


def correlation(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "neighbours asked (logarithmic)", "y_label": "Spearman's ρ"}
    return curve(given["queries"], given["correlation"], log_x=True, **told)


def reliability(given: Given) -> str:
    """Each method on a grid of its own probabilities: rows said, found and inputs."""
    tens = np.linspace(0, 1, 11)
    lines = {}
    for name, held in given.like("*_reliability").items():
        there = held[2] > 0 if held.ndim == 2 and len(held) == 3 else np.zeros(0, bool)
        if there.sum() > 1:
            lines[label(name)] = np.interp(tens, held[0][there], held[1][there], left=np.nan, right=np.nan)
    lines["as said"] = tens
    told: dict[str, Any] = {"x_label": "probability said", "y_label": "share found"}
    return curves(tens, lines, x_text=percent, y_text=percent, **told) if len(lines) > 1 else ""


def detectors(given: Given) -> str:
    ends: dict[str, Any] = {"low": given["table.f1_low"], "high": given["table.f1_high"]}
    return bars([label(name) for name in given.words("table.method")], given["table.f1"], x_label="F1", **ends)


def class_matrix(name: str, wording: Wording, darkest: str = "high") -> Callable[[Given], str]:
    def draw(given: Given) -> str:
        names, order = given.class_names(given["classes"]), given["tree_order"].astype(int)
        values = given[name]
        if values.ndim != 2 or len(values) != len(names) or len(order) != len(names):
            return ""
        return matrix([names[place] for place in order], values[np.ix_(order, order)], wording=wording, darkest=darkest)

    return draw


def hundredths(value: float) -> str:
    return f"{100 * value:.2g}" if 0 < value < 0.095 else f"{100 * value:.0f}"


def tenths(value: float) -> str:
    return f"{100 * value:.1f}"


def tree(given: Given) -> str:
    return dendrogram(given.class_names(given["classes"]), given["tree"], given["tree_order"], x_label="distance")


def cost(kind: str) -> Callable[[Given], str]:
    def draw(given: Given) -> str:
        cost = given[f"{kind}_cost"]
        lines = {"this ranking": given[f"{kind}_found"]}
        if given.has(f"outputs_{kind}_found"):
            lines["by the outputs alone"] = given[f"outputs_{kind}_found"]
        lines |= {"the best possible": given[f"{kind}_optimal"], "random": cost}
        told: dict[str, Any] = {"x_label": "share of the pairs looked at", "y_label": "share of the true ones found"}
        return curves(cost, lines, x_text=percent, y_text=percent, **told)

    return draw


def groups(given: Given) -> str:
    labels = [
        f"{one} over {other}"
        for one, other in zip(given.words("table.better"), given.words("table.worse"), strict=True)
    ]
    ends: dict[str, Any] = {
        "low": given["table.low"],
        "high": given["table.high"],
        "marked": given["table.sure"].astype(bool),
    }
    return bars(labels[:12], given["table.difference"][:12], x_label="difference in accuracy", wording=percent,
                **{name: values[:12] for name, values in ends.items()})  # fmt: skip


def class_quartiles(given: Given) -> str:
    names = ("table.lower_quartile", "table.median", "table.upper_quartile")
    quantiles = np.column_stack([given[name] for name in names])
    return boxes(given.words("table.class"), quantiles, x_label="neuron coverage of an image", wording=percent)


def gauge(given: Given) -> str:
    lines = {label(name): values for name, values in given.like("histogram_*").items()}
    wide = {name: np.asarray(values).reshape(-1, len(values) // 20).sum(1) for name, values in lines.items()
            if len(values) % 20 == 0}  # fmt: skip
    middles = (np.arange(20) + 0.5) / 20
    return curves(middles, wide, x_label="coverage of a class", y_label="classes", x_text=percent)


def cluster_sizes(given: Given) -> str:
    labels = [f"cluster {name}" for name in given.words("table.cluster")]
    return bars(labels, given["table.images"], x_label="error-inducing images")


def scores(given: Given) -> str:
    score = np.atleast_2d(given["score"])
    names = given.words("layers") if given.has("layers") else [str(row) for row in range(len(score))]
    if len(names) != len(score):
        return ""
    told: dict[str, Any] = {"x_label": "number of clusters (logarithmic)", "y_label": "score (lower is better)"}
    return curves(given["score_clusters"], dict(zip(names, score, strict=True)), log_x=True, **told)


def lesions(given: Given) -> str:
    told: dict[str, Any] = {"x_label": "voxels", "y_label": "mean entropy"}
    return scatter(given["table.voxels"], given["table.entropy"], **told)


def effects(given: Given) -> str:
    """A curve with its band for every quantity that was varied, one under the other."""
    quantity = np.asarray(given.words("table.quantity"))
    names = list(dict.fromkeys(quantity.tolist()))[:_MOST_PANELS]
    return "".join(_effect(given, name, quantity == name) for name in names)


def _effect(given: Given, quantity: str, own: np.ndarray) -> str:
    unit = str(given["table.unit"][own][0])
    return curve(
        (given["table.from"][own] + given["table.to"][own]) / 2,
        given["table.accuracy"][own],
        band=(given["table.low"][own], given["table.high"][own]),
        x_label=f"{quantity} ({unit})" if unit else quantity,
        y_label="accuracy",
        y_text=percent,
    )


def traits(given: Given) -> str:
    """Clusters by parameters; what varies more inside a cluster than outside counts as not reduced."""
    held = np.clip(given["trait_reduction"], 0, 1)
    rows = [f"cluster {number}" for number in range(1, len(held) + 1)]
    return matrix(rows, held, columns=[name.replace("_", " ") for name in given.words("parameter_names")],
                  wording=hundredths)  # fmt: skip


def retrained(given: Given) -> str:
    """The mean of the repeats over all test samples, by method."""
    every = (given["table.repeat"] == "all") & (given["table.part"] == "all")
    return _changes(given, "table.method", every)


def retrained_parts(given: Given) -> str:
    """The mean of the repeats for each part of the test set, of the first method."""
    method = given["table.method"]
    return _changes(given, "table.part", (given["table.repeat"] == "all") & (method == method[0]))


def _changes(given: Given, name: str, rows: np.ndarray) -> str:
    ends: dict[str, Any] = {end: given[f"table.{end}"][rows] for end in ("low", "high")}
    sure = (ends["low"] > 0) | (ends["high"] < 0)
    labels = [str(part) for part in given[name][rows]]
    return bars(labels, given["table.difference"][rows], x_label="after less before", marked=sure, **ends)


def areas(given: Given) -> str:
    """Area of each method with its interval."""
    ends: dict[str, Any] = {end: given[f"table.{end}"] for end in ("low", "high")}
    return bars([label(name) for name in given.words("table.method")], given["table.area"], x_label="area", **ends)


def accuracy_confidence(given: Given) -> str:
    """A curve for each method."""
    lines = dict(zip(map(label, given.words("table.method")), given["curve_true_positives"], strict=True))
    told: dict[str, Any] = {"x_label": "share of the false positives kept", "y_label": "share of the true ones kept"}
    return curves(given["curve_false_positives"], lines, x_text=percent, y_text=percent, **told)


def lesion_reliability(given: Given) -> str:
    """Said against found, beside the diagonal."""
    there = given["reliability_lesions"] > 0
    said, found = given["reliability_said"][there], given["reliability_found"][there]
    told: dict[str, Any] = {"x_label": "probability said", "y_label": "share found"}
    return curves(said, {"found": found, "as said": said}, x_text=percent, y_text=percent, **told)


def _spread(
    values: np.ndarray, *, x_label: str, marked: np.ndarray | None = None, names: tuple[str, str] = ("", "")
) -> str:
    """A histogram of values, those marked at the foot of each column."""
    if values.dtype.kind not in "biuf":
        return ""
    held = values.astype(np.float64)
    finite = np.isfinite(held)
    if not finite.any():
        return ""
    counts, edges = np.histogram(held[finite], bins=_BINS)
    own = None if marked is None else np.histogram(held[finite & marked], bins=edges)[0]
    return histogram(counts, edges, x_label=x_label, marked=own, names=names)
