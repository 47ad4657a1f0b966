"""The tables of docs/howto-causes.md, from causes_planted.csv: `python benchmarks/causes_planted/tables.py`."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ASIDE = ("exchanged colours", "overexposed and far")
"""Kept aside for the first judging; looked at before the second."""
ASIDE_LATER = ("squeezed and streaked", "pole and glare", "tint")
"""Kept aside for the second judging."""
OWN = "ranked causes"
Rows = Sequence[Mapping[str, str]]


def read() -> list[dict[str, str]]:
    """All rows about planted causes."""
    with Path(__file__).with_name("causes_planted.csv").open() as opened:
        return [row for row in csv.DictReader(opened) if row["scenario"] != "control"]


def mean(rows: Rows, key: str) -> float:
    """Over the causes of a scenario first, then over scenarios."""
    scenarios = dict.fromkeys(row["scenario"] for row in rows)
    return float(np.mean([np.mean([float(row[key]) for row in rows if row["scenario"] == one]) for one in scenarios]))


def by_method(rows: Rows) -> list[str]:
    """Of each method, settled and judged; and of the scenarios kept aside, those looked at since, and those not."""
    lines = [
        "| | F1 | precision@10 | named | shown | F1, aside, seen since | F1, aside |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        aside = [[row for row in own if row["scenario"] in part] for part in (ASIDE, ASIDE_LATER)]
        main = [row for row in own if row["scenario"] not in (*ASIDE, *ASIDE_LATER)]
        parts = [[row for row in main if row["seed"] in seeds] for seeds in ("012", "345")]
        cells = [" / ".join(f"{mean(part, key):.2f}" for part in parts) for key in ("f1", "precision10")]
        named = [np.mean([row["named"] == "True" for row in part if row["nameable"] == "True"]) for part in parts]
        told = " / ".join(f"{share:.2f}" for share in named) if any(named) else "–"
        shown = " / ".join(f"{mean(part, 'shown'):.1f}" for part in parts)
        apart = " | ".join(f"{mean(part, 'f1'):.2f}" for part in aside)
        lines.append(f"| {method} | {cells[0]} | {cells[1]} | {told} | {shown} | {apart} |")
    return lines


def by_scenario(rows: Rows) -> list[str]:
    """Judged: the ranked causes, and the best rival of each scenario."""
    lines = ["| judged | F1 | best rival | its F1 |", "|---|---|---|---|"]
    judged = [row for row in rows if row["seed"] in "345"]
    rivals = [name for name in dict.fromkeys(row["method"] for row in judged) if not name.startswith((OWN, "traits"))]
    for scenario in dict.fromkeys(row["scenario"] for row in judged):
        own = [row for row in judged if row["scenario"] == scenario]
        scores = {name: mean([row for row in own if row["method"] == name], "f1") for name in [OWN, *rivals]}
        best = max(rivals, key=lambda name: scores[name])
        lines.append(f"| {scenario} | {scores[OWN]:.2f} | {best} | {scores[best]:.2f} |")
    return lines


if __name__ == "__main__":
    print("\n".join([*by_method(read()), "", *by_scenario(read())]))
