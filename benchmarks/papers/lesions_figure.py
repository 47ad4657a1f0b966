"""Figure 2 of Lambert et al. 2022 as SVG under docs/images, from the curves and areas of lesions_ms and lesions_lgg.

python benchmarks/papers/lesions_figure.py
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import read_rows
from pictures import standalone

from weakspot.formatting import percent
from weakspot.lesions.methods import PAPER_METHODS as METHODS
from weakspot.report.figures import curves

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parents[1] / "docs" / "images"


def named(method: str, area: str) -> str:
    """A method as a legend has room for it, with its area in %."""
    short = method.replace("classification", "classif.").replace("regression", "regr.").replace("_", " ")
    return f"{short} {100 * float(area):.1f}"


def drawn(rows: list[dict[str, str]], areas: Mapping[str, str]) -> str:
    """All methods, the graph networks first, with their areas beside their names."""
    at = np.array([float(row["false_positives"]) for row in rows])
    lines = {named(method, areas[method]): np.array([float(row[method]) for row in rows]) for method in METHODS}
    told = {"x_label": "share of the false positives kept", "y_label": "share of the true ones kept"}
    return standalone(curves(at, lines, x_text=percent, y_text=percent, **told))


def main() -> None:
    for study, kept in (
        ("ms", {"net_seed": "0", "learnt_from": "unseen brains"}),
        ("lgg", {"learnt_from": "all folds"}),
    ):
        curve, told = (
            [row for row in read_rows(HERE / f"lesions_{study}{end}.csv") if kept.items() <= row.items()]
            for end in ("_curves", "")
        )
        if not curve:
            print(f"lesions_figure: lesions_{study}_curves.csv is not there yet; skipped")
            continue
        areas = {row["method"]: row["area"] for row in told}
        (IMAGES / f"papers-lesions-{study}.svg").write_text(drawn(curve, areas), encoding="utf-8")


if __name__ == "__main__":
    main()
