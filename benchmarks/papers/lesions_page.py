"""Tables of docs/papers-lesions.md as lines, made of the CSVs beside this script; prose.py writes them."""

from collections.abc import Mapping

from page_tables import HEAD, points, rows, table

Row = Mapping[str, str]
Line = tuple[str, str, str, str]
MS = {"learnt_from": "unseen brains"}
LGG = {"learnt_from": "all folds"}
NAMES = {
    "gcn_classification": "graph network, classification", "gcn_regression": "graph network, regression",
    "entropy_mean": "entropy, mean", "entropy_logsum": "entropy, log-sum", "variance_mean": "variance, mean",
    "variance_logsum": "variance, log-sum", "pcs_mean": "PCS, mean", "pcs_logsum": "PCS, log-sum", "size": "size",
    "metaseg_classification": "MetaSeg, classification", "metaseg_regression": "MetaSeg, regression",
    "no_edges": "*the same network without edges*", "node_means": "*logistic regression on node means*",
}  # fmt: skip
PUBLISHED = {
    "gcn_classification": ("87.32", "−0.78"), "gcn_regression": ("87.10", "−0.77"), "entropy_mean": ("83.80", "−0.42"),
    "entropy_logsum": ("83.72", "−0.97"), "variance_mean": ("83.14", "−0.44"), "variance_logsum": ("82.99", "−0.99"),
    "pcs_mean": ("83.79", "−0.44"), "pcs_logsum": ("83.88", "−0.98"), "size": ("80.30", "−1.00"),
    "metaseg_classification": ("83.10", "−0.76"), "metaseg_regression": ("83.42", "−0.77"),
}  # fmt: skip


def area(row: Row, digits: int) -> str:
    """In %, with its spread over seeds where chance plays and its interval."""
    value, low, high, spread = (100 * float(row[name]) for name in ("area", "low", "high", "spread_over_seeds"))
    chance = f" ± {spread:.{digits}f}" if spread else ""
    return f"{value:.{digits}f}{chance} ({low:.{digits}f} to {high:.{digits}f})"


def by_fold(row: Row, digits: int = 1, *, start: str = "area_fold_") -> str:
    return " / ".join(f"{100 * float(value):.{digits}f}" for name, value in row.items() if name.startswith(start))


def table_2() -> list[str]:
    """All methods in both data sets."""
    lines = []
    for method, name in NAMES.items():
        [ms], [lgg] = rows("lesions_ms", method=method, **MS), rows("lesions_lgg", method=method, **LGG)
        rho = [f"{float(row['spearman_with_size']):.2f}" for row in (ms, lgg)]
        published = PUBLISHED.get(method, ("", ""))
        lines.append([name, area(ms, 1), by_fold(ms), rho[0], area(lgg, 2), rho[1], *published])
    return table(["method", "multiple sclerosis", "by brain", "ρ", "glioma", "ρ", "published", "ρ"], lines)


def apart(row: Row, digits: int) -> str:
    """A difference in points with its spread over seeds and its interval."""
    value, low, high = (points(row[name], digits) for name in ("difference", "low", "high"))
    spread = float(row["spread_over_seeds"])
    return f"{value}{f' ± {100 * spread:.{digits}f}' if spread else ''} ({low} to {high})"


def differences() -> list[str]:
    """Graph networks less baselines."""
    lines = []
    for title, csv, known, digits in (("multiple sclerosis", "lesions_ms", MS, 1), ("glioma", "lesions_lgg", LGG, 2)):
        for graph, published in (("gcn_classification", "+3.4"), ("gcn_regression", "+3.2")):
            cells = [f"{title}: {graph.removeprefix('gcn_')}"]
            for chosen in ("best on test", "best on validation", "size"):
                [row] = rows(f"{csv}_differences", graph=graph, chosen=chosen, **known)
                told = apart(row, digits)
                told = f"**{told}**" if chosen == "best on test" else told
                cells.append(told if chosen == "size" else f"{told}, {NAMES[row['baseline']]}")
            lines.append([*cells, published])
    head = [
        "",
        "less the best baseline on test",
        "less the best on validation",
        "less size",
        "published, best baseline",
    ]
    return table(head, lines)


def contents() -> list[str]:
    """Every table and figure of the paper, where ours is, and whether its claim holds."""
    pictures, tables = "[below](#figure-2)", "[below](#table-2-which-lesions-are-real)"
    dice = [
        [float(row["dice"]) for row in rows(f"lesions_{name}_folds", **known)]
        for name, known in (("ms", MS), ("lgg", LGG))
    ]
    told = " and ".join(f"{min(each):.2f} to {max(each):.2f}" for each in dice)
    return table(
        HEAD,
        [
            ("Figure 1: the framework", "[below](#figure-1-the-framework)", "its steps on a glioma", "–"),
            ("Table 1: Dice 0.645 to 0.705", "[below](#table-1-segmentation)", f"{told}, gliomas last", "–"),
            ("Figure 2: curves", pictures, "drawn", "as Table 2"),
            headline("classification", "+3.4", tables),
            headline("regression", "+3.2", tables),
            *claims(tables),
        ],
    )  # fmt: skip


def headline(kind: str, published: str, where: str) -> Line:
    """The graph network less the best baseline on test."""
    told, verdicts = [], []
    for name, known, digits in (("ms", MS, 1), ("lgg", LGG, 2)):
        [row] = rows(f"lesions_{name}_differences", graph=f"gcn_{kind}", chosen="best on test", **known)
        by = f", by brain {signed(row)}" if name == "ms" else ""
        told.append(f"{'multiple sclerosis' if name == 'ms' else 'glioma'} {apart(row, digits)}{by}")
        verdicts.append(row["verdict"])
    what = f"Table 2: the graph network beats the best baseline by {published} points ({kind})"
    return what, where, "; ".join(told), both(verdicts)


def signed(row: Row, digits: int = 1) -> str:
    return " / ".join(points(value, digits) for name, value in row.items() if name.startswith("fold_"))


def both(verdicts: list[str]) -> str:
    first, second = verdicts
    return f"**{first}**" if first == second else f"**{first}** in multiple sclerosis, **{second}** in glioma"


CLAIMS = {
    ("classification beats regression", "gcn_classification"): "classification is better than regression, by +0.2",
    ("size is the worst", ""): "size alone is the worst",
    ("means beat log-sums", "entropy_mean"): "means are better than log-sums: entropy, +0.1",
    ("means beat log-sums", "variance_mean"): "variance, +0.2",
    ("means beat log-sums", "pcs_mean"): "PCS, −0.1",
    ("MetaSeg beats no simpler score", ""): "MetaSeg beats no simpler score",
}
"""What else the paper says of Table 2, with its own difference."""


def claims(where: str) -> list[Line]:
    """Each as the difference that is above 0 if it is so."""
    lines = []
    for (claim, method), words in CLAIMS.items():
        told, verdicts = [], []
        for name, known, digits in (("ms", MS, 1), ("lgg", LGG, 2)):
            found = [
                row for row in rows(f"lesions_{name}_claims", claim=claim, **known) if method in ("", row["method"])
            ]
            row = found[0]
            beside = "" if method else f" ({NAMES[row['method']]} less {NAMES[row['less']]})"
            told.append(f"{'multiple sclerosis' if name == 'ms' else 'glioma'} {apart(row, digits)}{beside}")
            verdicts.append(row["verdict"])
        speaks = (
            "nothing speaks against it" if "MetaSeg" in claim and "contradicted" not in verdicts else both(verdicts)
        )
        lines.append((words, where, "; ".join(told), speaks))
    return lines


BRAINS = {"0": "07", "1": "19", "2": "26"}
"""Which brain a fold holds out."""


def folds_ms() -> list[str]:
    """Table 1, multiple sclerosis."""
    own = rows("lesions_ms_folds", **MS)
    real = [rows("lesions_ms_real", patient=brain)[0] for brain in BRAINS.values()]
    found = "true_positives", "false_positives", "missed_lesions"
    lines = [
        ["Dice", *(f"{float(row['dice']):.3f}" for row in own), "0.645 to 0.705"],
        ["true positives", *(row["true_positives"] for row in own), "597 to 871"],
        ["false positives", *(row["false_positives"] for row in own), "294 to 525"],
        ["false places", *(row["false_places"] for row in own), ""],
        ["missed lesions", *(row["missed_lesions"] for row in own), ""],
        ["lesions learnt from, true / false", *(f"{row['learnt_true']} / {row['learnt_false']}" for row in own), ""],
        ["real patient: Dice", *(f"{float(row['dice']):.3f}" for row in real), ""],
        ["real patient: true / false positives, missed",
         *("{} / {}, {}".format(*(row[name] for name in found)) for row in real), ""],
    ]  # fmt: skip
    return table(["", *(f"brain {brain}" for brain in BRAINS.values()), "published, four folds"], lines)


def folds_lgg() -> list[str]:
    """Table 1, glioma, beside stored samples."""
    own, stored = rows("lesions_lgg_folds", **LGG), rows("lesions_lgg_stored")
    lines = [
        ["patients", *(row["cases"] for row in own)],
        ["Dice", *(f"{float(row['dice']):.3f}" for row in own)],
        ["true / false positives, missed",
         *(f"{row['true_positives']} / {row['false_positives']}, {row['missed_lesions']}" for row in own)],
        ["lesions learnt from, true / false", *(f"{row['learnt_true']} / {row['learnt_false']}" for row in own)],
        ["stored: Dice", *(f"{float(row['dice']):.3f}" for row in stored)],
        ["stored: true / false positives", *(f"{row['true_positives']} / {row['false_positives']}" for row in stored)],
    ]  # fmt: skip
    return table(["", *(f"fold {row['fold']}" for row in own)], lines)


def real_patients() -> list[str]:
    """Areas of the three real patients."""
    asked = ("gcn_classification", "gcn_regression", "entropy_mean", "pcs_mean", "metaseg_regression", "size")
    lines = [
        [row["patient"], *(f"{100 * float(row[method]):.1f}" for method in asked)] for row in rows("lesions_ms_real")
    ]
    heads = [NAMES[method] for method in asked]
    return table(["patient", heads[0], "regression", *heads[2:]], lines)


def graph_adds() -> list[str]:
    """Graph networks less what sees the same nodes without a graph."""
    names = {"no_edges": "the same network without edges", "node_means": "logistic regression on node means"}
    lines = []
    for other, name in names.items():
        for graph in ("gcn_classification", "gcn_regression"):
            [ms] = rows("lesions_ms_differences", graph=graph, chosen=other, **MS)
            [lgg] = rows("lesions_lgg_differences", graph=graph, chosen=other, **LGG)
            cells = [f"{graph.removeprefix('gcn_')} less {name}", f"{apart(ms, 1)}, {ms['verdict']}", signed(ms)]
            lines.append([*cells, f"± {100 * float(ms['over_folds']):.1f}", f"{apart(lgg, 2)}, {lgg['verdict']}"])
    return table(["graph network less …", "multiple sclerosis", "by brain", "over brains", "glioma"], lines)


def learnt_twice(csv: str, first: str, second: str, digits: int, titles: tuple[str, str]) -> list[str]:
    """One study learnt from two sets of lesions."""
    both = [{"learnt_from": first}, {"learnt_from": second}]
    counts = (rows(f"{csv}_folds", **known) for known in both)
    lines = [
        [
            "lesions learnt from, true / false",
            *(", ".join(f"{row['learnt_true']} / {row['learnt_false']}" for row in own) for own in counts),
        ]
    ]
    for method in ("gcn_classification", "gcn_regression", "metaseg_classification", "metaseg_regression"):
        lines.append([NAMES[method], *(area(rows(csv, method=method, **known)[0], digits) for known in both)])
    graphs = ("gcn_classification", "gcn_regression")
    found = [
        [rows(f"{csv}_differences", graph=graph, chosen="best on test", **known)[0] for known in both]
        for graph in graphs
    ]
    for graph, pair in zip(graphs, found, strict=True):
        own = [apart(row, digits) for row in pair]
        if csv == "lesions_ms":
            own[1] += f", {NAMES[pair[1]['baseline']]}"
        else:
            own = [f"{each}, {row['verdict']}" for each, row in zip(own, pair, strict=True)]
        lines.append([f"{graph.removeprefix('gcn_')} less the best baseline", *own])
    where = "by brain 07 / 19 / 26" if csv == "lesions_ms" else "by fold"
    for graph, pair in zip(graphs, found, strict=True):
        lines.append([f"{graph.removeprefix('gcn_')}, {where}", *(signed(row, digits) for row in pair)])
    return table(["", *titles], lines)


def secondary() -> list[str]:
    return learnt_twice("lesions_ms", "unseen brains", "seen brains", 1, ("learnt in unseen brains", "in seen brains"))


def own_fold() -> list[str]:
    return learnt_twice("lesions_lgg", "all folds", "own fold", 2, ("all folds", "own fold alone"))
