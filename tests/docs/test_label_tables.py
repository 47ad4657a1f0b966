"""Tables of the pages about the guard and about accuracy from few labels are those of the CSVs beside the scripts."""

import csv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCORES = ("max_softmax", "energy", "max_logit", "mahalanobis", "knn", "black_box", "guard")
DETECTORS = ("white_box", "black_box", "queries", "together", "max_softmax", "guard")
CHANGES = ("as they are", "noise", "dark", "low contrast", "blur")
FREE = ("average_confidence", "thresholded_confidence", "confidence_difference", "accuracy of known")


def read(name):
    with (ROOT / "benchmarks/peers" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def guard_rows():
    means = {(row["net"], row["quantity"]): float(row["mean"]) for row in read("guard.csv")}
    for net in dict.fromkeys(net for net, _ in means):
        yield f"| {net} | " + " | ".join(f"{means[net, f'auroc {score}']:.3f}" for score in SCORES) + " |"


def detector_rows():
    areas = {(row["net"], row["method"]): float(row["auroc"]) for row in read("guard_detectors.csv")}
    for net in dict.fromkeys(net for net, _ in areas):
        yield f"| {net} | " + " | ".join(f"{areas[net, method]:.3f}" for method in DETECTORS) + " |"


def label_rows():
    for row in read("few_labels.csv"):
        if row["labels"] in ("100", "400"):
            shares = [f"{100 * float(row[name]):.1f} %" for name in ("plan coverage", "twice random coverage")]
            widths = [f"{100 * float(row[name]):.2f}" for name in ("plan width", "twice random width")]
            cells = (
                row["net"],
                row["labels"],
                widths[0],
                shares[0],
                widths[1],
                shares[1],
                f"{float(row['width ratio']):.2f}",
            )
            yield f"| {' | '.join(cells)} |"


def free_rows():
    rows = read("label_free.csv")
    for change in CHANGES:
        here = [row for row in rows if row["change"] == change]
        accuracy = np.mean([float(row["accuracy"]) for row in here])
        off = [np.mean([abs(float(row[name])) for row in here]) for name in FREE]
        yield f"| {change} | {accuracy:.1f} % | " + " | ".join(f"{value:.1f}" for value in off) + " |"


def cause_rows():
    rows = [row for row in read("diverse.csv") if row["net"].startswith("planted")]
    assert sum(int(row["of_causes"]) for row in rows[::36]) == 24
    for pool, words in (("frames", "five frames of each"), ("single", "all different")):
        for budget in ("50", "100", "200"):
            found = [
                sum(float(r["causes"]) for r in rows if (r["pool"], r["budget"], r["ranking"]) == (pool, budget, name))
                for name in ("diverse", "deep_gini", "margin", "max_softmax", "entropy", "random")
            ]
            yield f"| {words} | {budget} | " + " | ".join(f"{one:.1f}" for one in found) + " |"


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("guard", guard_rows),
        ("guard", detector_rows),
        ("labels", label_rows),
        ("labels", free_rows),
        ("coverage", cause_rows),
    ],
    ids=["guard", "detectors", "few labels", "no labels", "causes"],
)
def test_a_table_is_that_of_its_csv(page, rows):
    text = (ROOT / f"docs/howto-{page}.md").read_text(encoding="utf-8")
    made = list(rows())
    assert made
    assert [row for row in made if row not in text] == []


def test_what_the_page_says_of_the_guard_holds():
    means = {(row["net"], row["quantity"]): float(row["mean"]) for row in read("guard.csv")}
    nets = list(dict.fromkeys(net for net, _ in means))
    for net in nets:
        assert all(means[net, f"not fine {kind}"] == 1 for kind in ("black", "white", "noise"))
        assert abs(means[net, "coverage lac"] - 0.9) < 0.01
        assert means[net, "false_alarms at false_alarms"] < 0.055
        assert means[net, "kept risk"] == 1
        gain = means[net, "auroc guard"] - means[net, "auroc max_softmax"]
        assert gain > 0.005 if not net.endswith("cifar10") else abs(gain) < 0.005


def test_what_the_page_says_of_detectors_beside_confidence_holds():
    rows = {(row["net"], row["method"]): row for row in read("guard_detectors.csv")}
    nets = list(dict.fromkeys(net for net, _ in rows))
    assert len(nets) == 9
    area = {key: float(row["auroc"]) for key, row in rows.items()}
    best = {net: max(DETECTORS[:4], key=lambda method, net=net: area[net, method]) for net in nets}
    ahead = [net for net in nets if area[net, best[net]] > area[net, "max_softmax"]]
    assert ahead == ["WideResN-fashion_mnist", "ResN-svhn"]
    assert all(float(rows[net, "max_softmax"]["high"]) > float(rows[net, best[net]]["low"]) for net in ahead)
    assert sum(area[net, "guard"] >= area[net, "max_softmax"] for net in nets) == 7
    errors = [int(rows[net, "guard"]["errors"]) for net in nets]
    assert (min(errors), max(errors)) == (31, 54)
    assert {row["images"] for row in rows.values()} == {"700"}


def test_half_of_the_labels_do_on_as_many_nets_as_the_page_says():
    rows = read("few_labels.csv")
    done = {labels: sum(float(row["width ratio"]) <= 1 for row in rows if row["labels"] == labels) for labels in
            ("100", "200", "400", "800")}  # fmt: skip
    text = (ROOT / "docs/howto-labels.md").read_text(encoding="utf-8")
    few, more = (f"{done[a]}{told}, {done[b]} at {b}" for a, b, told in
                 (("100", "200", " of nine networks at 100 labels"), ("400", "800", " at 400")))  # fmt: skip
    told = f"{few}, {more}".replace(", 7 at 800", " and 7 at 800")
    assert told in " ".join(text.split())
