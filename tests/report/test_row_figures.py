"""Figures with rows: every mark stands where its value belongs."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from weakspot.formatting import percent
from weakspot.report.figures import MOST_POINTS, curves, histogram, scatter
from weakspot.report.row_figures import MOST_ROWS, bars, boxes, dendrogram, matrix, strip
from weakspot.report.svg import WIDTH

NAMES = ["cat", "dog", "<script>alert(1)</script>"]


def drawn(text: str) -> ET.Element:
    assert text
    return ET.fromstring(text)


def words(svg: ET.Element) -> list[str]:
    return [node.text or "" for node in svg.iter("text")]


def styled(svg: ET.Element, style: str) -> list[ET.Element]:
    return [node for node in svg.iter() if node.attrib.get("class") == style]


def test_bars_are_as_long_as_their_values_and_carry_their_intervals() -> None:
    svg = drawn(bars(NAMES[:2], np.array([2.0, 4.0]), x_label="errors", low=np.array([1, 3]), high=np.array([3, 5])))
    one, other = (float(node.attrib["width"]) for node in styled(svg, "column"))
    assert other == pytest.approx(2 * one, abs=0.15)
    (left,) = {node.attrib["x"] for node in styled(svg, "column")}
    ends = [float(end) for end in re.findall(r"M([\d.]+) [\d.]+v", "".join(p.attrib.get("d", "") for p in svg.iter()))]
    assert [end - float(left) for end in ends] == pytest.approx([one / 2, 1.5 * one, 1.5 * one, 2.5 * one], abs=0.2)


def test_bars_below_zero_go_to_the_left() -> None:
    svg = drawn(bars(["a", "b"], np.array([-1.0, 1.0]), x_label="x"))
    one, other = styled(svg, "column")
    assert float(one.attrib["x"]) + float(one.attrib["width"]) == pytest.approx(float(other.attrib["x"]), abs=0.11)


def test_rows_beyond_the_most_are_counted_not_drawn() -> None:
    svg = drawn(bars([str(i) for i in range(50)], np.arange(50.0), x_label="x"))
    assert len(styled(svg, "column")) == MOST_ROWS
    assert f"and {50 - MOST_ROWS} further rows not drawn" in words(svg)


def test_a_box_reaches_from_quartile_to_quartile() -> None:
    svg = drawn(boxes(["a"], np.array([[0.0, 2.0, 3.0, 6.0, 10.0]]), x_label="value"))
    (box,) = styled(svg, "box-of")
    *_, left, right, median = [node for node in svg.iter("line") if "stroke-opacity" not in node.attrib]
    unit = (float(right.attrib["x2"]) - float(left.attrib["x1"])) / 10
    assert float(box.attrib["width"]) == pytest.approx(4 * unit, abs=0.2)
    assert float(median.attrib["x1"]) - float(box.attrib["x"]) == pytest.approx(unit, abs=0.2)


def test_three_quantiles_have_no_whiskers() -> None:
    svg = drawn(boxes(["a"], np.array([[1.0, 2.0, 3.0]]), x_label="value"))
    assert len(styled(svg, "box-of")) == 1
    assert boxes(["a"], np.array([[1.0, 2.0]]), x_label="value") == ""


def test_the_darkest_cell_of_a_matrix_is_its_highest_or_lowest_value() -> None:
    values = np.array([[9.0, 1.0, 2.0], [1.0, 9.0, 3.0], [2.0, 3.0, 9.0]])
    for darkest, columns in (("high", {1, 2}), ("low", {0, 1})):
        cells = styled(drawn(matrix(NAMES, values, darkest=darkest)), "cell")
        strongest = max(cells, key=lambda node: float(node.attrib["fill-opacity"]))
        starts = [float(x) for x in re.findall(r"M([\d.]+) ", strongest.attrib["d"])]
        every = sorted({float(x) for node in cells for x in re.findall(r"M([\d.]+) ", node.attrib["d"])})
        assert {every.index(start) for start in starts} == columns, darkest


def test_the_numbers_of_a_matrix_stand_in_the_middle_of_their_cells() -> None:
    size = 8
    values = np.arange(1.0, 1 + size * size).reshape(size, size)
    svg = drawn(matrix([str(i) for i in range(size)], values, columns=[chr(97 + i) for i in range(size)]))
    outlines = [re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", node.attrib["d"]) for node in styled(svg, "cell")]
    middles = sorted(float(x) + float(width) / 2 for some in outlines for x, _, width in some)
    texts = sorted(float(node.attrib["x"]) for node in svg.iter("text") if (node.text or "") in map(str, range(10, 65)))
    assert len(middles) == size * size - 1  # the lowest value has no colour
    for column in sorted(set(texts)):
        assert min(abs(column - middle) for middle in middles) < 1


def test_a_matrix_tells_its_extremes_and_its_values() -> None:
    values = np.array([[np.nan, 0.125, 0.25], [0.5, np.nan, 0.0], [0.0, 0.75, np.nan]])
    svg = drawn(matrix(NAMES, values, wording=percent))
    assert svg.attrib["aria-label"].startswith("3 by 3 values from 0\u00a0% to 75\u00a0%; highest at <script>")
    assert {"12.5\u00a0%", "75\u00a0%"} <= set(words(svg))


def test_a_large_matrix_stays_small_and_within_the_canvas() -> None:
    text = matrix([f"class {i}" for i in range(150)], np.random.default_rng(0).random((150, 150)))
    assert len(text) < 500_000
    assert drawn(text).attrib["aria-label"].startswith("100 by 100 values")


def test_signed_values_below_zero_have_a_colour_of_their_own() -> None:
    svg = drawn(matrix(["a", "b"], np.array([[1.0, -0.5], [-0.5, 1.0]]), signed=True))
    assert len(styled(svg, "cell below")) == 1


def test_a_dendrogram_joins_at_the_heights_of_the_tree() -> None:
    tree = linkage(np.array([[0.0], [1.0], [5.0]]), "single")
    svg = drawn(dendrogram(["a", "b", "c"], tree, np.array([0, 1, 2]), x_label="distance"))
    joints = [float(re.findall(r"H([\d.]+)V", node.attrib["d"])[0]) for node in styled(svg, "accent")]
    start = float(re.findall(r"M([\d.]+) ", styled(svg, "accent")[0].attrib["d"])[0])
    assert (joints[1] - start) / (joints[0] - start) == pytest.approx(4, abs=0.05)
    assert "nearest of all, at 1: a and b" in svg.attrib["aria-label"]
    assert words(svg)[:3] == ["a", "b", "c"]


def test_a_strip_is_darkest_where_most_lie() -> None:
    svg = drawn(strip(["a"], np.array([[0, 1, 8, 1]]), low=0, high=1, x_label="accuracy", wording=percent))
    assert svg.attrib["aria-label"].endswith("a 62.5\u00a0%")
    assert len(styled(svg, "cell")) == 2


def test_columns_of_a_histogram_are_as_high_as_their_counts() -> None:
    counts = np.array([2, 4, 0])
    svg = drawn(histogram(counts, np.arange(4), x_label="x", marked=np.array([1, 0, 0]), names=("weak", "strong")))
    heights = [float(node.attrib["height"]) for node in styled(svg, "column")]
    assert len(heights) == 2 and heights[1] == pytest.approx(2 * heights[0], abs=0.15)
    (marked,) = styled(svg, "column marked")
    assert float(marked.attrib["height"]) == pytest.approx(heights[0] / 2, abs=0.15)
    assert {"weak", "strong"} <= set(words(svg))


def test_a_scatter_has_a_dot_for_every_point_up_to_a_limit() -> None:
    x = np.arange(10_000.0)
    svg = drawn(scatter(x, x, x_label="x", y_label="y", marked=x < 100, names=("few", "many")))
    dots = sum(node.attrib["d"].count("M") for node in svg.iter("path"))
    assert MOST_POINTS / 2 < dots <= MOST_POINTS
    assert svg.attrib["aria-label"].startswith(f"{dots:,} points")


def test_a_scatter_over_powers_of_ten_has_even_steps_and_leaves_out_what_has_no_logarithm() -> None:
    x = np.array([0.0, 1, 10, 100, 1000])
    svg = drawn(scatter(x, np.arange(5.0), x_label="x", y_label="y", log_x=True))
    (path,) = [node.attrib["d"] for node in svg.iter("path") if "M" in node.attrib["d"]]
    across = [float(dot.split()[0]) for dot in path.split("M")[1:]]
    assert len(across) == 4 and np.allclose(np.diff(across), np.diff(across)[0], atol=0.2)
    assert scatter(x[1:2], x[1:2], x_label="x", y_label="y", log_x=True)


def test_curves_have_a_legend_and_lines_that_differ_by_more_than_colour() -> None:
    x = np.arange(5.0)
    svg = drawn(curves(x, {f"line {i}": x * i for i in range(9)}, x_label="x", y_label="y"))
    lines = [(node.attrib["class"], node.attrib["stroke-dasharray"]) for node in svg.iter("polyline")]
    assert len(lines) == len(set(lines)) == 9
    assert {f"line {i}" for i in range(9)} <= set(words(svg))


@pytest.mark.parametrize(
    "made",
    [
        lambda: bars(NAMES, np.arange(3.0), x_label=NAMES[2]),
        lambda: boxes(NAMES, np.ones((3, 5)), x_label=NAMES[2]),
        lambda: matrix(NAMES, np.arange(9.0).reshape(3, 3)),
        lambda: strip(NAMES, np.ones((3, 4)), low=0, high=1, x_label=NAMES[2], wording=percent),
        lambda: curves(np.arange(3), {NAMES[2]: np.arange(3)}, x_label=NAMES[2], y_label=NAMES[2]),
        lambda: scatter(np.arange(3), np.arange(3), x_label=NAMES[2], y_label=NAMES[2]),
    ],
)
def test_names_are_text_never_markup_and_nothing_leaves_the_canvas(made) -> None:
    text = made()
    assert "<script" not in text
    svg = drawn(text)
    height = float(svg.attrib["viewBox"].split()[3])
    for node in svg.iter():
        for name, most in (("x", WIDTH), ("x1", WIDTH), ("x2", WIDTH), ("y", height), ("y1", height), ("y2", height)):
            assert 0 <= float(node.attrib.get(name, 0)) <= most


@pytest.mark.parametrize(
    "text",
    [
        bars([], np.array([]), x_label="x"),
        bars(["a"], np.array([np.nan]), x_label="x"),
        bars(["a"], np.array(["b"]), x_label="x"),
        bars(["a"], np.ones(2), x_label="x"),
        boxes(["a"], np.full((1, 3), np.nan), x_label="x"),
        matrix(["a"], np.ones((1, 1))),
        matrix(["a", "b"], np.ones((2, 3))),
        dendrogram(["a"], np.empty((0, 4)), np.array([0]), x_label="x"),
        dendrogram(["a", "b"], np.full((1, 4), np.nan), np.array([0, 1]), x_label="x"),
        strip(["a"], np.ones(3), low=0, high=1, x_label="x", wording=percent),
        histogram(np.zeros(3), np.arange(4), x_label="x"),
        histogram(np.ones(3), np.arange(3), x_label="x"),
        scatter(np.ones(2), np.ones(3), x_label="x", y_label="y"),
        scatter(np.full(2, np.nan), np.ones(2), x_label="x", y_label="y"),
        curves(np.ones(2), {}, x_label="x", y_label="y"),
    ],
)
def test_what_cannot_be_drawn_gives_no_figure(text: str) -> None:
    assert text == ""
