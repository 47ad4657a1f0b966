"""Figures of the papers' pages as SVG under docs/images, from the CSVs beside this script: `python figures.py`."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

from page_tables import rows
from pictures import COLOURS, beside
from robustness_page import DATA, KINDS

from weakspot.formatting import percent
from weakspot.report.axes import linear_axis
from weakspot.report.figures import curves, scatter
from weakspot.report.svg import WIDTH, canvas, draw_up, line, shape, text, written

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


def values(found: "list[dict[str, str]]", name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in found])


def line_of(table: str, **equal: str) -> tuple[np.ndarray, np.ndarray]:
    """The points of one line of a figure."""
    found = [dict(row) for row in rows(table, **equal)]
    return values(found, "at"), values(found, "value")


def robustness_queries() -> str:
    """Figure 6: ρ of neighbour accuracy and λ, by the number of neighbours."""
    panels = {}
    for data, title in DATA.items():
        lines, at = {}, np.array([])
        for kind, name in KINDS.items():
            own = [dict(row) for row in rows("robustness_study", table_="Figure 6", net=f"{kind}-{data}")]
            at = np.array([float(row["quantity"].removeprefix("m = ")) for row in own])
            lines[name] = values(own, "value")
        panels[title] = curves(at, lines, x_label="neighbours asked", y_label="Spearman's ρ")
    return beside(panels)


def robustness_roc() -> str:
    """Figure 7: ROC curves of λ, three ResNet-32 at 0.75."""
    panels = {}
    for data, title in DATA.items():
        lines, at = {}, np.array([])
        for truth in ("all 50", "the other 35"):
            at, lines[f"truth of {truth}"] = line_of("robustness_curves", figure="Figure 7", data=data, line=truth)
        lines["chance"] = at
        told = {"x_label": "false alarms", "y_label": "weak images found"}
        panels[title] = curves(at, lines, x_text=percent, y_text=percent, **told)
    return beside(panels)


def robustness_bins() -> str:
    """Figure 9: images per bin of neighbour accuracy, training and test."""
    panels = {}
    for data, title in DATA.items():
        for kind, name in KINDS.items():
            lines, at = {}, np.array([])
            for split in ("train", "test"):
                every = [dict(row) for row in rows("robustness_study", table_="Figure 9", net=f"{kind}-{data}")]
                own = [row for row in every if row["quantity"].startswith(f"{split}, accuracy")]
                at = np.array([float(row["quantity"].split()[-1]) for row in own])
                lines["training" if split == "train" else split] = values(own, "value")
            told = {"x_label": "neighbour accuracy, up to", "y_label": "share of images"}
            panels[f"{name}, {title}"] = curves(at, lines, y_text=percent, **told)
    return beside(panels)


def robustness_changes() -> str:
    """Figure 10: how neighbour accuracy changes from VGG to ResNet-32, image by image."""
    lines, at = {}, np.array([])
    for data, title in DATA.items():
        at, lines[title] = line_of("robustness_curves", figure="Figure 10", data=data)
    told = {"x_label": "neighbour accuracy, ResNet-32 less VGG", "y_label": "share of images"}
    return beside({"Test images, in bins of 0.1": curves(at + 0.05, lines, y_text=percent, **told)})


def importance_distances() -> str:
    """Figure 4: distances of neurons when relevant pixels are overwritten, as boxes."""
    found = [dict(row) for row in rows("importance_neurons", pixels="relevant")]
    panels = {}
    for net in dict.fromkeys(row["network"] for row in found):
        boxes = {}
        for neurons in ("important", "random", "most active"):
            own = [row for row in found if (row["network"], row["neurons"]) == (net, neurons)]
            boxes[neurons] = np.array([values(own, name).mean() for name in ("q5", "q25", "q50", "q75", "q95")])
        panels[net] = box_plot(boxes, "distance of activations")
    return beside(panels)


def box_plot(boxes: Mapping[str, np.ndarray], label: str) -> str:
    """Each by its 5th, 25th, 50th, 75th and 95th percentile."""
    bottom, left = 212.0, 60.0
    svg = canvas("; ".join(f"{name}: median {box[2]:.2f}" for name, box in boxes.items()), 250)
    up = linear_axis(np.append(np.concatenate(list(boxes.values())), 0.0), bottom, 34.0)
    draw_up(svg, up, lambda value: f"{value:g}", left)
    text(svg, 8, 20, label)
    step = (WIDTH - left - 20) / len(boxes)
    for number, (name, box) in enumerate(boxes.items()):
        draw_box(svg, left + step * (number + 0.5), min(22, 0.35 * step), [up.at(value) for value in box], number)
        text(svg, left + step * (number + 0.5), bottom + 22, name, anchor="middle")
    return written(svg)


def draw_box(svg: ET.Element, middle: float, half: float, heights: list[float], number: int) -> None:
    least, low, centre, high, most = heights
    style = {"class_": f"s{number % len(COLOURS)}", "stroke_width": "2"}
    line(svg, middle, least, middle, low, **style)
    line(svg, middle, high, middle, most, **style)
    shape(svg, "rect", x=middle - half, y=high, width=2 * half, height=low - high, fill="none", **style)
    line(svg, middle - half, centre, middle + half, centre, **{**style, "stroke_width": "4"})


QUARTILES = ("lower_quartile", "median", "upper_quartile")
NAMES = {"coco": "COCO", "cifar100": "CIFAR-100"}


def classes_coverage() -> str:
    """Figures 4 and 5: neuron coverage by class, and what each class covers of its own ranges."""
    found = [dict(row) for row in rows("classes_coverage")]
    names = [row["class"][:4] for row in found]
    quartiles = (np.array([values([row], name)[0] for name in QUARTILES]) for row in found)
    boxes = {name: np.append(np.insert(box, 0, box[0]), box[2]) for name, box in zip(names, quartiles, strict=True)}
    places = np.arange(len(found), dtype=float)
    criteria = ("k_multisection", "boundary", "strong_activation", "top_neurons")
    lines = {name.replace("_", " "): values(found, name) for name in criteria}
    told = {"x_label": "class, in the order of Figure 4", "y_label": "covered", "y_text": percent}
    panels = {
        "Figure 4: neuron coverage of an image, quartiles": box_plot(boxes, "share of the neurons"),
        "Figure 5: criteria by class": curves(places, lines, **told),
    }
    return beside(panels, across=2)


def classes_distances() -> str:
    """Figure 3: how distances are spread, over all pairs and over truly confused ones."""
    panels = {}
    for data, title in NAMES.items():
        lines, at = {}, np.array([])
        for name in ("all pairs", "truly confused"):
            at, counts = line_of("classes_curves", figure="Figure 3", data=data, line=name)
            lines[name] = counts / counts.sum()
        panels[title] = curves(at, lines, x_label="distance", y_label="share of the pairs", y_text=percent)
    return beside(panels)


def classes_correlations() -> str:
    """Figures 6 and 10: one pair of classes in eight."""
    panels = {}
    for figure, told in (
        ("Figure 6", {"x_label": "distance", "y_label": "confusion"}),
        ("Figure 10", {"x_label": "bias by the distance", "y_label": "confusion disparity"}),
    ):
        for data, title in NAMES.items():
            at, height = line_of("classes_curves", figure=figure, data=data)
            panels[f"{figure}: {title}"] = scatter(at, height, **told)
    return beside(panels, across=2)


def classes_found() -> str:
    """Figures 7 and 11: the share of the true errors found by the share of the pairs looked at."""
    panels = {}
    for figure, what in (("Figure 7", "confusion"), ("Figure 11", "bias")):
        for data, title in NAMES.items():
            named = dict.fromkeys(row["line"] for row in rows("classes_curves", figure=figure, data=data))
            lines, at = {}, np.array([])
            for name in named:
                at, lines[name] = line_of("classes_curves", figure=figure, data=data, line=name)
            lines["a random order"] = at
            told = {"x_label": "pairs looked at", "y_label": "true errors found"}
            panels[f"{figure}: {what}, {title}"] = curves(at, lines, x_text=percent, y_text=percent, **told)
    return beside(panels, across=2)


def drawings() -> Iterator[tuple[str, str]]:
    """Every figure that is drawn from the CSVs, with its file's name."""
    for draw in (
        robustness_queries, robustness_roc, robustness_bins, robustness_changes, importance_distances,
        classes_coverage, classes_distances, classes_correlations, classes_found,
    ):  # fmt: skip
        yield f"papers-{draw.__name__.replace('_', '-')}.svg", draw()


def main() -> None:
    for name, svg in drawings():
        (IMAGES / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
