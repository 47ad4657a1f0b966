"""Draws the figures that Findings declare (`weakspot.core.figures`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from weakspot.core import figures as declared
from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.formatting import label, number, percent
from weakspot.report.figures import curve, curves, histogram, scatter
from weakspot.report.finding_view import FindingView
from weakspot.report.row_figures import bars, boxes, dendrogram, matrix, strip
from weakspot.statistics.intervals import wilson_interval

_BINS = 20
_MOST_PANELS = 6
_WHISKERS = (0.05, 0.25, 0.5, 0.75, 0.95)
_DIAGONAL = "perfectly calibrated"


@dataclass(frozen=True)
class DrawnFigure:
    """A figure as SVG with its caption; a figure that could not be drawn says why instead."""

    svg: str
    caption: str
    problem: str = ""

    @property
    def drawings(self) -> list[str]:
        """Its drawings one by one: a figure may have several panels."""
        return [f"{part}</svg>" for part in self.svg.split("</svg>") if part]


def figures(finding: Finding, classes: list[str]) -> list[DrawnFigure]:
    """Every declared figure whose arrays and columns the Finding has; those without anything to draw are left out."""
    view = FindingView(finding, classes)
    drawn = [_drawn(one, view) for one in finding.outputs.figures if all(map(view.has, one.inputs()))]
    return [figure for figure in drawn if figure.svg or figure.problem]


def _drawn(figure: declared.Figure, view: FindingView) -> DrawnFigure:
    try:
        return DrawnFigure(draw(figure, view), figure.caption)
    except (RunError, TypeError, ValueError, IndexError, KeyError) as error:
        return DrawnFigure("", figure.caption, f"This figure cannot be drawn from the Finding's arrays: {error}.")


@singledispatch
def draw(figure: declared.Figure, view: FindingView) -> str:
    """A figure as SVG; empty where there is nothing to draw."""
    raise TypeError(f"there is no drawing for {type(figure).__name__}")


@draw.register
def _curves(figure: declared.Curves, view: FindingView) -> str:
    lines = _lines(figure, view)
    if figure.relative:
        lines = {name: values / values[-1] for name, values in lines.items() if values.ndim == 1 and values[-1:].all()}
    labels: dict[str, Any] = {"x_label": figure.x_label, "y_label": figure.y_label, "log_x": figure.log_x}
    formats: dict[str, Any] = {"x_text": _FORMATS[figure.x_format], "y_text": _FORMATS[figure.y_format]}
    if len(lines) == 1 and not figure.rows and isinstance(figure.lines, str) and not figure.relative:
        return curve(view[figure.x], next(iter(lines.values())), **labels, **formats)
    return curves(view[figure.x], lines, **labels, **formats)


def _lines(figure: declared.Curves, view: FindingView) -> dict[str, np.ndarray]:
    if not isinstance(figure.lines, str):
        return {name: view[array] for name, array in figure.lines.items() if view.has(array)}
    if figure.rows:
        rows = np.atleast_2d(view[figure.lines])
        names = [str(name) if figure.verbatim else label(name) for name in view.words(figure.rows)]
        return dict(zip(names, rows, strict=True))
    return {label(name.removeprefix(figure.prefix)): view[name] for name in view.matching(figure.lines)}


@draw.register
def _panels(figure: declared.CurvePanels, view: FindingView) -> str:
    groups = np.asarray(view.words(figure.by))
    names = list(dict.fromkeys(groups.tolist()))[:_MOST_PANELS]
    return "".join(_panel(figure, view, name, groups == name) for name in names)


def _panel(figure: declared.CurvePanels, view: FindingView, name: str, rows: np.ndarray) -> str:
    unit = str(view[figure.unit][rows][0])
    return curve(
        (view[figure.start][rows] + view[figure.end][rows]) / 2,
        view[figure.value][rows],
        band=(view[figure.low][rows], view[figure.high][rows]),
        x_label=f"{name} ({unit})" if unit else name,
        y_label=figure.y_label,
        y_text=_FORMATS[figure.y_format],
    )


@draw.register
def _distributions(figure: declared.Distributions, view: FindingView) -> str:
    counts = {label(name.removeprefix(figure.prefix)): view[name] for name in view.matching(figure.counts)}
    wide = {name: values.reshape(_BINS, -1).sum(1) for name, values in counts.items() if len(values) % _BINS == 0}
    middles = (np.arange(_BINS) + 0.5) / _BINS
    return curves(middles, wide, x_label=figure.x_label, y_label=figure.y_label, x_text=percent)


@draw.register
def _reliability(figure: declared.ReliabilityCurve, view: FindingView) -> str:
    labels: dict[str, Any] = {"x_label": "predicted probability", "y_label": "observed frequency"}
    formats: dict[str, Any] = {"x_text": percent, "y_text": percent}
    if not figure.curves:
        return _reliability_rows(*(view[name] for name in (figure.predicted, figure.observed, figure.counts)))
    tenths = np.linspace(0, 1, 11)
    lines = {}
    for name, (x, y, count) in view.like(figure.curves).items():
        filled = count > 0
        if filled.sum() > 1:
            lines[label(name)] = np.interp(tenths, x[filled], y[filled], left=np.nan, right=np.nan)
    return curves(tenths, {**lines, _DIAGONAL: tenths}, **labels, **formats) if lines else ""


def _reliability_rows(predicted: np.ndarray, observed: np.ndarray, counts: np.ndarray) -> str:
    """A bar per bin that holds something, with its count: a line would give one input as much weight as a hundred."""
    said, shares, numbers = (values[counts > 0] for values in (predicted, observed, counts))
    low, high = wilson_interval(np.rint(shares * numbers), numbers)
    return bars(
        [f"{percent(round(float(p), 2))} (n = {int(n):,})" for p, n in zip(said, numbers, strict=True)],
        shares,
        low=low,
        high=high,
        marked=(said < low) | (said > high),
        x_label="observed frequency",
        wording=percent,
    )


@draw.register
def _scatter(figure: declared.Scatter, view: FindingView) -> str:
    x = view[figure.x]
    there = figure.marked and (not figure.mark_known or view.has(figure.marked))
    marked = view[figure.marked].astype(bool) if there else None
    if figure.marked_rows:
        marked = np.isin(np.arange(len(x)), view[figure.marked_rows])
    named: dict[str, Any] = {} if marked is None else {"marked": marked, "names": tuple(figure.names)}
    named |= {"x_label": figure.x_label, "y_label": figure.y_label, "log_x": figure.log_x}
    return scatter(x, view[figure.y], **named)


@draw.register
def _histogram(figure: declared.Histogram, view: FindingView) -> str:
    values = view[figure.values].astype(np.float64)
    finite = np.isfinite(values)
    if not finite.any():
        return ""
    counts, edges = np.histogram(values[finite], bins=_BINS)
    marked = np.histogram(values[finite & view[figure.marked].astype(bool)], bins=edges)[0] if figure.marked else None
    first, second = figure.names
    return histogram(counts, edges, x_label=figure.x_label, marked=marked, names=(first, second))


@draw.register
def _split_boxes(figure: declared.SplitBoxes, view: FindingView) -> str:
    values, by = view[figure.values], view[figure.by].astype(bool)
    parts = [(name, values[rows]) for name, rows in zip(figure.names, (by, ~by), strict=True) if rows.any()]
    quantiles = np.array([np.quantile(part, _WHISKERS) for _, part in parts])
    marked = np.array([name == figure.names[1] for name, _ in parts])
    return boxes([name for name, _ in parts], quantiles, x_label=figure.x_label, marked=marked)


@draw.register
def _boxes(figure: declared.Boxes, view: FindingView) -> str:
    wording = _FORMATS[figure.format]
    if not figure.stacked:
        quantiles = np.column_stack([view[name] for name in figure.quantiles])
        return boxes(view.words(str(figure.labels)), quantiles, x_label=figure.x_label, wording=wording)
    groups = zip(figure.stacked, figure.labels, strict=True)
    names = [f"{group} {name}" for group, labels in groups for name in view.words(labels)]
    marked = np.arange(len(names)) < len(view[figure.quantiles[0]])
    stacked = np.concatenate([view[name] for name in figure.quantiles])
    return boxes(names, stacked, x_label=figure.x_label, marked=marked, wording=wording)


@draw.register
def _bars(figure: declared.Bars, view: FindingView) -> str:
    chosen = _chosen(figure.where, view, len(view[figure.values]))[: figure.most or None]
    names = [_bar_label(figure, words) for words in zip(*(view.words(name) for name in figure.labels), strict=True)]
    ends: dict[str, Any] = {
        end: view[name][chosen] for end, name in (("low", figure.low), ("high", figure.high)) if name
    }
    if figure.marked == "interval":
        ends["marked"] = (ends["low"] > 0) | (ends["high"] < 0)
    elif figure.marked:
        ends["marked"] = view[figure.marked].astype(bool)[chosen]
    shown = [names[row] for row in chosen]
    return bars(shown, view[figure.values][chosen], x_label=figure.x_label, wording=_FORMATS[figure.format], **ends)


def _chosen(where: Mapping[str, str | None], view: FindingView, rows: int) -> np.ndarray:
    """The rows that hold these values; None stands for that of the first row."""
    keep = np.ones(rows, dtype=bool)
    for name, value in where.items():
        words = np.asarray(view.words(name))
        keep &= words == (words[0] if value is None and len(words) else value)
    return np.flatnonzero(keep)


def _bar_label(figure: declared.Bars, words: tuple[str, ...]) -> str:
    text = figure.label_text
    for word in words:
        text = text.replace("{}", label(word) if figure.readable else word, 1)
    return text


@draw.register
def _matrix(figure: declared.Matrix, view: FindingView) -> str:
    values = np.clip(view[figure.values], 0, 1) if figure.clip else view[figure.values]
    names = _row_names(figure, view, len(values))
    if figure.order:
        order = view[figure.order].astype(int)
        names, values = [names[row] for row in order], values[np.ix_(order, order)]
    columns = [name.replace("_", " ") for name in view.words(figure.columns)] if figure.columns else None
    wording = _FORMATS[figure.format]
    return matrix(names, values, columns=columns, wording=wording, signed=figure.signed, darkest=figure.darkest)


def _row_names(figure: declared.Matrix, view: FindingView, rows: int) -> list[str]:
    if figure.classes:
        return view.class_names(view[figure.classes])
    if figure.rows:
        return [label(name) for name in view.words(figure.rows)]
    return [figure.row_text.replace("{}", str(row)) for row in range(1, rows + 1)]


@draw.register
def _dendrogram(figure: declared.Dendrogram, view: FindingView) -> str:
    names = view.class_names(view[figure.classes])
    return dendrogram(names, view[figure.tree], view[figure.order], x_label=figure.x_label)


@draw.register
def _strip(figure: declared.Strip, view: FindingView) -> str:
    labels: dict[str, Any] = {"x_label": figure.x_label, "wording": _FORMATS[figure.format]}
    return strip(view.words(figure.labels), view[figure.counts], low=0, high=1, **labels)


def _hundredths(value: float) -> str:
    return f"{100 * value:.2g}" if 0 < value < 0.095 else f"{100 * value:.0f}"


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "number": number,
    "percent": percent,
    "hundredths": _hundredths,
    "tenths": lambda value: f"{100 * value:.1f}",
    "decimal": lambda value: f"{value:.1f}",
}
