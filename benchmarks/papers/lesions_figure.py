"""Figure 2 of Lambert et al. 2022 from lesions_ms_curves.csv and lesions_lgg_curves.csv, as SVG under docs/images.

python benchmarks/papers/lesions_figure.py
"""

import csv
from pathlib import Path

import numpy as np

from weakspot.lesions.model import METHODS
from weakspot.report.figures import curves
from weakspot.report.wording import percent

HERE = Path(__file__).resolve().parent
IMAGES = HERE.parents[1] / "docs" / "images"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of Okabe and Ito 2008, told apart by colour-blind eyes."""


def drawn(rows: list[dict[str, str]]) -> str:
    """All methods, the graph networks first."""
    at = np.array([float(row["false_positives"]) for row in rows])
    lines = {method.replace("_", " "): np.array([float(row[method]) for row in rows]) for method in METHODS}
    told = {"x_label": "share of the false positives kept", "y_label": "share of the true ones kept"}
    svg = curves(at, lines, x_text=percent, y_text=percent, **told)
    style = "".join(f".s{number}{{stroke:{colour}}}" for number, colour in enumerate(COLOURS))
    head, rest = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).split(">", 1)
    head = head.replace('font-family="inherit"', 'font-family="sans-serif" width="630"')
    return f'{head}><style>{style}</style><rect width="100%" height="100%" fill="white" stroke="none"/>{rest}\n'


def main() -> None:
    for study, kept in (("ms", {"net_seed": "0", "learnt_from": "unseen brains"}), ("lgg", {})):
        path = HERE / f"lesions_{study}_curves.csv"
        if not path.exists():
            print(f"lesions_figure: {path.name} is not there yet; skipped")
            continue
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if all(row[key] == value for key, value in kept.items())]
        (IMAGES / f"papers-lesions-{study}.svg").write_text(drawn(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
