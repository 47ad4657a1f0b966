from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from weakspot.core.figures import Curves
from weakspot.core.finding import Finding
from weakspot.formatting import percent
from weakspot.report.axes import Axis, linear_axis, log_axis
from weakspot.report.drawings import draw
from weakspot.report.figures import HEIGHT, curve
from weakspot.report.finding_view import FindingView
from weakspot.report.svg import WIDTH


def drawn(x: object, y: object, **options: object) -> ET.Element:
    text = curve(np.asarray(x), np.asarray(y), x_label="inputs", y_label="covered", **options)  # type: ignore[arg-type]
    return ET.fromstring(text)


def line(svg: ET.Element) -> list[tuple[float, float]]:
    (path,) = svg.iter("polyline")
    return [(float(x), float(y)) for x, y in (point.split(",") for point in path.attrib["points"].split())]


def words(svg: ET.Element) -> list[str]:
    return [node.text or "" for node in svg.iter("text")]


def test_equal_factors_are_equal_distances_on_a_logarithmic_axis() -> None:
    xs = [x for x, _ in line(drawn([1, 10, 100], [0.1, 0.2, 0.3], log_x=True))]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.11)


def test_equal_steps_are_equal_distances_on_a_linear_axis_and_up_is_more() -> None:
    (x0, y0), (x1, y1), (x2, y2) = line(drawn([0, 5, 10], [0, 1, 2]))
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert y2 < y0


def test_the_height_is_measured_from_zero() -> None:
    (_, low), (_, high) = line(drawn([1, 2], [0.5, 1.0]))
    (bottom,) = line(drawn([1], [0.0]))[0][1:]
    assert bottom - low == pytest.approx((bottom - high) / 2, abs=0.11)


def test_axes_and_the_last_value_are_labelled() -> None:
    svg = drawn([1, 599], [0.05, 0.3033], log_x=True, y_text=percent)
    told = words(svg)
    assert {"inputs", "covered", "1", "10", "100", "599", "0\u00a0%", "40\u00a0%"} <= set(told)
    assert told[-1] == "30.33\u00a0%"
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == "covered by inputs: 5\u00a0% at 1, 30.33\u00a0% at 599"


def test_labels_are_text_and_never_markup() -> None:
    hostile = '<script>"&'
    text = curve(np.array([1.0]), np.array([1.0]), x_label=hostile, y_label=hostile)
    assert "<script" not in text
    assert hostile in words(ET.fromstring(text))


def test_points_are_sorted_and_those_without_a_place_left_out() -> None:
    svg = drawn([100, 1, 0, 10, 50], [0.3, 0.1, 0.9, 0.2, np.nan], log_x=True)
    xs = [x for x, _ in line(svg)]
    assert len(xs) == 3 and xs == sorted(xs)
    assert words(svg)[-1] == "0.3"


def test_a_single_point_is_drawn() -> None:
    assert len(line(drawn([1], [0.25], log_x=True))) == 1
    assert len(line(drawn([3], [-2]))) == 1


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([0, -1], [0.1, 0.2]),
        ([1, 2], [np.nan, np.inf]),
        ([1, 2, 3], [0.1, 0.2]),
        ([[1, 2]], [[0.1, 0.2]]),
        (["a"], ["b"]),
    ],
)
def test_what_cannot_be_drawn_gives_no_figure(x: list[object], y: list[object]) -> None:
    assert curve(np.array(x), np.array(y), x_label="x", y_label="y", log_x=True) == ""


@pytest.mark.parametrize("most", [1, 7, 999, 60_000, 10**6, 10**9])
@pytest.mark.parametrize("share", [1e-6, 0.017, 0.5, 1.0])
def test_everything_stays_on_the_canvas_and_labels_apart(most: int, share: float) -> None:
    svg = drawn([1, most], [0, share], log_x=True, y_text=percent)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line(svg))
    spans = [span(node) for node in svg.iter("text")]
    assert all(left >= 0 and right <= WIDTH for left, right, _ in spans)
    for (left, _, height), (_, right, same) in pairwise(spans):
        assert height != same or right < left
    assert f"{most:,}" in words(svg)


def span(node: ET.Element) -> tuple[float, float, float]:
    """From where to where a text reaches, taking a letter for 7 wide, and its height."""
    width, x = 7 * len(node.text or ""), float(node.attrib["x"])
    left = x - {"start": 0, "middle": width / 2, "end": width}[node.attrib["text-anchor"]]
    return left, left + width, float(node.attrib["y"])


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 0.82], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([0.0, 0.0], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([-3.0, 9.0], (-5, -2.5, 0, 2.5, 5, 7.5, 10)),
        ([0.0, 3e-9], (0, 1e-9, 2e-9, 3e-9)),
    ],
)
def test_linear_ticks_are_round_and_enclose_the_values(values: list[float], ticks: tuple[float, ...]) -> None:
    axis = linear_axis(np.array(values), 0, 1)
    assert axis.ticks == ticks
    assert axis.low <= min(values) and max(values) <= axis.high


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(1, 1000, (1, 10, 100, 1000)), (3, 110, (10, 100, 110)), (0.02, 0.5, (0.1, 0.5)), (2, 2, (2,)), (1, 1, (1,))],
)
def test_a_logarithmic_axis_marks_powers_of_ten_and_its_end(low: float, high: float, ticks: tuple[float, ...]) -> None:
    assert log_axis(np.array([low, high]), 0, 1).ticks == ticks


def test_an_axis_without_extent_draws_in_the_middle() -> None:
    assert Axis(2, 2, 10, 20, (2,)).at(2) == 15


def test_names_of_layers_are_printed_as_they_are_and_names_of_methods_as_words() -> None:
    finding = Finding("f", arrays={"x": np.arange(2.0), "score": np.eye(2), "names": np.array(["conv1", "node_mean"])})
    figure = Curves(x="x", lines="score", rows="names", x_label="x", y_label="y", caption="")
    as_words, verbatim = (draw(one, FindingView(finding, ())) for one in (figure, replace(figure, verbatim=True)))
    assert "Node mean" in as_words and "conv1" not in as_words
    assert "conv1" in verbatim and "node_mean" in verbatim
