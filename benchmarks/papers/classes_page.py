"""Tables of docs/papers-classes.md as lines, made of the CSVs beside this script; prose.py writes them."""

import statistics
from collections.abc import Sequence

from page_tables import HEAD, Rows, ends, interval, rows, table

Line = tuple[str, str, str, str]
KINDS = {"ResN": "ResNet-32", "WideResN": "WRN-28-2", "Vgg16Half": "VGG-16, half"}
DATA = {"cifar10": "CIFAR-10", "fashion_mnist": "Fashion-MNIST", "svhn": "SVHN"}
TRAINED = {
    ("robust small", ""): ("robust, small", " (published 4 / 6)", " (80)", " (0.86)"),
    ("robust large", ""): ("robust, large", " (published 3 / 4)", " (60)", ""),
    ("signs", ""): ("traffic signs", "", "", ""),
    ("canvases", "trained with, tested with company"): ("canvases, company in both", "", "", ""),
    ("canvases", "trained with, tested without company"): ("company in training alone", "", "", ""),
    ("canvases", "trained without, tested without company"): ("company in neither", "", "", ""),
}
"""Nets trained here: their name, and what is published of them."""


def spread(found: Rows, name: str, scale: float = 1, digits: int = 1) -> str:
    values = [scale * float(row[name]) for row in found]
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def oracles() -> list[str]:
    """Tables III and IV."""
    names = {"coco": "COCO", "cifar100": "CIFAR-100"}
    short = {
        "as published, with labels": "with labels",
        "without labels": "without",
        "without labels, near by pairs": "without, near by pairs",
        "predicted together": "*predicted together*",
    }
    lines = []
    for row in rows("classes_oracles"):
        if row["found"]:
            alone = row["score"] not in ("distance", "as published, with labels")
            found = row["found"] if alone or row["found"] != row["published"] else f"**{row['found']}**"
            known = "–" if alone else row["published"]
            sign = "−" if row["score"] == "distance" else ""
            rho = f"{sign}{float(row['correlation']):.2f}"
            rho_known = "–" if alone or not row["published_correlation"] else row["published_correlation"]
            cells = [f"{names[row['data']]}, {row['errors']}", short.get(row["score"], row["score"]), known, found]
            lines.append([*cells, f"{float(row['gain']):.0%}".replace("%", " %"), rho_known, rho])
    return table(["", "score", "published", "here", "gain", "ρ, published", "ρ, here"], lines)


def nets() -> list[str]:
    """What is found of confusion and bias, by the distance and by the outputs alone."""
    head = ["", "accuracy, %", "confused: true / false", "recall, %", "ρ", "gain, %", "gain of outputs alone, %"]
    lines = [["*published, ten settings*", "", "", "*17 to 100*", "", "*62 to 86*", "–", "*37 to 76*", "–"]]
    for data, title in DATA.items():
        for net, name in KINDS.items():
            own = rows("classes", net=net, data=data, tap="all outputs")
            lines.append([f"{name}, {title}", *figures(own, ("", "", ""))])
    for (net, setting), (name, *published) in TRAINED.items():
        lines.append([name, *figures(trained(net, setting), published)])
    return table([*head, "bias: gain, %", "of outputs alone, %"], lines)


def trained(net: str, setting: str = "", tap: str = "all outputs") -> Rows:
    return [row for row in rows("classes_trained", net=net, tap=tap) if not setting or row["setting"] == setting]


def figures(own: Rows, published: Sequence[str]) -> list[str]:
    hits = "confusion_true_positives", "confusion_false_positives"
    counts, recall, rho = published
    many = len(own) > 1
    digits = 1 if many else 0
    kind = " (mAP)" if own[0]["net"] == "canvases" else ""
    pairs = " / ".join(f"{statistics.mean(float(row[name]) for row in own):.{digits}f}" for name in hits)
    gains = [spread(own, name, 100, 0) for name in ("confusion_gain", "outputs_confusion_gain")]
    biases = [spread(own, name, 100, 0) for name in ("bias_gain", "outputs_bias_gain")]
    return [
        spread(own, "figure", 100) + kind,
        pairs + counts,
        spread(own, "confusion_recall", 100, 0) + recall,
        spread(own, "confusion_correlation", 1, 2) + rho,
        *better(gains),
        *better(biases),
    ]


def better(gains: Sequence[str]) -> list[str]:
    """The higher of two figures stands out where it is that of the outputs alone, or of the distance."""
    values = [float(each.split(" ")[0]) for each in gains]
    return [f"**{each}**" if value == max(values) else each for each, value in zip(gains, values, strict=True)]


def coverage() -> list[str]:
    """RQ1: how alike classes are by neuron coverage."""
    alike = ("k_multisection_alike", "boundary_alike", "strong_activation_alike", "top_neurons_alike")
    nine = rows("classes", tap="all outputs")
    shares = [float(row["coverage_negligible"]) + float(row["coverage_small"]) for row in nine]
    lines = [
        ["*published*", "*COCO 79 %, CIFAR-100 58 %*", "*COCO: 52 of 80 labels, 40 with boundary coverage 0*"],
        ["the nine nets (ten classes)", f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"],
    ]
    lines[1].append(", ".join(f"{min(v)}–{max(v)}" for v in ([int(float(r[n])) for r in nine] for n in alike)))
    for name, (net, setting) in {
        "robust, small": ("robust small", ""),
        "robust, large": ("robust large", ""),
        "traffic signs (43)": ("signs", ""),
        "canvases with company (20)": ("canvases", "trained with, tested with company"),
    }.items():
        own = trained(net, setting)
        few = statistics.mean(float(row["coverage_negligible"]) + float(row["coverage_small"]) for row in own)
        told = ", ".join(f"{statistics.mean(float(row[each]) for row in own):.1f}" for each in alike)
        lines.append([name, f"{100 * few:.0f} %", told])
    title = "most classes with the same k-multisection, boundary, strong activation, top-neuron coverage"
    return table(["", "differences negligible or small, of all pairs", title], lines)


def examples() -> list[str]:
    """The pairs that are reported, the nearest first, with how often one is taken for the other."""
    lines = []
    for row in rows("classes_examples"):
        counts = f"{row['first_taken_for_second']}, {row['second_taken_for_first']}"
        true = "yes" if row["truly_confused"] == "True" else "no"
        lines.append([f"{row['first']}, {row['second']}", counts, true])
    return table(["reported pair", "first taken for second, second for first, of 1,000 each", "truly confused"], lines)


NAMES_OF = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}


def repaired() -> list[str]:
    """What labelling images of confusing pairs brings, over seeds, and less as many random ones."""
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows("classes_repair")):
        by_method = {
            method: rows("classes_repair", data=data, method=method)
            for method in dict.fromkeys(row["method"] for row in rows("classes_repair", data=data))
        }
        lines.append([f"before, {NAMES_OF[data]}", *[""] * 2, spread(by_method["random images"], "before", 100, 2), ""])
        for method, own in by_method.items():
            wrong = "–" if own[0]["labelled"] == "0" else f"{spread(own, 'wrong_among_labelled', 100, 0)} %"
            pairs = zip(own, by_method["random images"], strict=True)
            apart = [100 * (float(row["after"]) - float(other["after"])) for row, other in pairs]
            less = "–" if method == "random images" else interval(apart, 2)
            lines.append([method, own[0]["labelled"], wrong, spread(own, "after", 100, 2), less])
    return table(["", "labelled", "wrong among them", "accuracy, %", "less random images, points"], lines)


BELOW = {"tables": "[below](#tables-iii-and-iv-from-the-authors-own-matrices)", "nets": "[below](#rq2-and-rq3)"}
BELOW |= {"coverage": "[below](#rq1-does-coverage-tell-classes-apart)", "pictures": "[below](#error-examples)"}


def contents() -> list[str]:
    """Every table and figure of the paper, where ours is, and whether its claim holds."""
    return table(HEAD, [*distance_lines(), *confusion_lines(), *bias_lines()])


def nine(name: str) -> str:
    """A figure of the nine nets in %, from the least to the greatest."""
    return ends((100 * float(row[name]) for row in rows("classes", tap="all outputs")), 0)


def oracle(errors: str, score: str) -> str:
    """The gain on both of the authors' matrices."""
    found = rows("classes_oracles", errors=errors, score=score)
    return " and ".join(f"{100 * float(row['gain']):.0f}" for row in found)


def distance_lines() -> list[Line]:
    [coincidence] = [row for row in rows("classes_oracles") if "RQ1c" in row["errors"]]
    small = spread(trained("robust small"), "confusion_correlation", 1, 2)
    return [
        ("Table I, Figures 1 and 2: examples, the method", "not drawn", "no claim", "–"),
        ("Table II: ten nets", "[below](#what-could-not-be-had)", "two by their matrices, others in their place", "–"),
        ("Figure 3: confused pairs lie near", BELOW["tables"], "COCO and CIFAR-100", "**yes**"),
        ("Figures 4 and 5: coverage says little of a class", BELOW["coverage"], "on other nets", "**partly**"),
        (
            "RQ1c: distance and coincidence of labels correlate by 0.96",
            BELOW["coverage"],
            f"{float(coincidence['correlation']):.2f} on COCO's released labels",
            "**no**",
        ),
        (
            "Figure 6: ρ of distance and confusion −0.55 (COCO), −0.86 (small robust net)",
            BELOW["tables"],
            f"−0.55, and −{small} on a net trained anew",
            "**yes**",
        ),
    ]


def confusion_lines() -> list[Line]:
    return [
        (
            "Table III: confused pairs are found",
            BELOW["tables"],
            "COCO and CIFAR-100 to the last pair; more nets",
            "**yes**",
        ),
        (
            "Figure 7: gain over a random order 61.6 to 85.7 %",
            BELOW["nets"],
            f"{oracle('confusion', 'distance')} % by matrices; nine nets {nine('confusion_gain')} %, least on SVHN",
            "**where there are errors enough**",
        ),
        ("Figures 8 and 9: examples of confusion", BELOW["pictures"], "CIFAR-10 for COCO and ImageNet", "**yes**"),
        (
            "*not asked there:* do the net's outputs say more?",
            BELOW["nets"],
            f"gain of soft confusion on the nine nets {nine('outputs_confusion_gain')} %",
            "**they do, nearly everywhere**",
        ),
    ]


def repair_gain() -> str:
    """Accuracy with images of confusing pairs less that with random ones."""
    own, other = (rows("classes_repair", method=method) for method in ("confusing pairs", "random images"))
    return interval([100 * (float(a["after"]) - float(b["after"])) for a, b in zip(own, other, strict=True)], 2)


def bias_lines() -> list[Line]:
    return [
        ("Figure 10: ρ of bias and disparity 0.76 and 0.62", BELOW["tables"], "0.76 and 0.62", "**yes**, with labels"),
        ("Table IV: biased pairs are found", BELOW["tables"], "to one pair", "**yes**, with labels"),
        (
            "Figure 11: gain 37 to 76 %",
            BELOW["nets"],
            f"without labels {oracle('bias', 'without labels')} % by matrices; nine nets {nine('bias_gain')} %",
            "**partly**",
        ),
        ("Figures 12 and 13: women taken for men", "not drawn", "images not obtainable", "not run"),
        (
            "*not asked there:* does labelling what the pairs name help?",
            "[below](#repair-by-confusing-pairs)",
            f"{repair_gain()} points over as many random images, one small net; least confident images as much",
            "**a little**",
        ),
    ]
