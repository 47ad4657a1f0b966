"""The tables of docs/papers-robustness.md, made of the CSVs beside this script: `python robustness_tables.py`."""

import argparse
import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, str]]
METHODS = (
    ("shared", "black_box"), ("shared", "black_box_paper_rule"), ("shared", "white_box_all"), ("fresh", "oracle"),
    ("fresh", "black_box"), ("fresh", "black_box_best_f1"), ("fresh", "white_box_all"), ("fresh", "white_box"),
    ("fresh", "queries"), ("fresh", "together"), ("fresh", "max_softmax"), ("fresh", "top1"), ("fresh", "random"),
    ("fresh", "flag_all"),
)  # fmt: skip


def read(path: Path) -> Rows:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def chosen(rows: Rows, **wanted: Any) -> list[Mapping[str, str]]:
    return [row for row in rows if all(row[name] == str(value) for name, value in wanted.items())]


def spread(values: Iterable[float], digits: int = 3) -> str:
    found = [value for value in values if not math.isnan(value)]
    if not found:
        return "–"
    deviation = f" ± {statistics.stdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.{digits}f}{deviation}"


def by_seed(rows: Rows, figure: str) -> list[float]:
    """The mean over the networks, seed by seed; seeds that not all networks have are left out."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row["seed"]].append(float(row[figure]))
    most = max(map(len, found.values()), default=0)
    return [statistics.mean(values) for values in found.values() if len(values) == most]


def detectors(rows: Rows, title: str) -> None:
    print(f"\n## {title}: F1, average precision, AUROC (networks × seeds)\n")
    print("| draws | method | 0.75: F1 | AP | AUROC | 0.5: F1 | AP | AUROC | rows |\n" + "|---" * 9 + "|")
    for draws, method in METHODS:
        cells, count = [], 0
        for threshold in (0.75, 0.5):
            own = chosen(rows, draws=draws, method=method, threshold=threshold)
            count += len(own)
            cells += [spread(by_seed(own, figure)) for figure in ("f1", "average_precision", "auroc")]
        if count:
            print(f"| {draws} | {method} | " + " | ".join(cells) + f" | {count} |")
    for draws in ("shared", "fresh"):
        shares = [
            spread(by_seed(chosen(rows, draws=draws, threshold=threshold, method="black_box"), "weak_share"))
            for threshold in (0.75, 0.5)
        ]
        print(f"\nweak share, {draws}: {' and '.join(shares)}")


def each_net(rows: Rows) -> None:
    print("\n## Tables 4 and 6, network by network: F1 at 0.75 | 0.5\n")
    names = ("black_box", "white_box_all", "oracle", "black_box ", "white_box_all ", "together")
    print("| | weak | B shared | W shared | oracle | B fresh | W fresh | together |\n|---|---|---|---|---|---|---|---|")
    asked = dict(zip(names, ("shared", "shared", "fresh", "fresh", "fresh", "fresh"), strict=True))
    for net in dict.fromkeys(row["net"] for row in rows):
        shares = [
            chosen(rows, net=net, threshold=c, draws="shared", method="black_box")[0]["weak_share"] for c in (0.75, 0.5)
        ]
        cells = [" \\| ".join(f"{100 * float(share):.0f} %" for share in shares)]
        for name, draws in asked.items():
            own = [chosen(rows, net=net, threshold=c, draws=draws, method=name.strip()) for c in (0.75, 0.5)]
            cells.append(" \\| ".join(spread((float(row["f1"]) for row in each), 3) for each in own))
        print(f"| {net} | " + " | ".join(cells) + " |")


def above(rows: Rows) -> None:
    """On how many networks, thresholds and seeds is together above the others?"""
    print("\n## Together against the others, by network, threshold and seed\n")
    for other in ("black_box", "white_box", "white_box_all", "queries", "oracle"):
        wins = total = 0
        for row in chosen(rows, draws="fresh", method="together"):
            same = {name: row[name] for name in ("net", "threshold", "seed")}
            for beside in chosen(rows, draws="fresh", method=other, **same):
                wins, total = wins + (float(row["f1"]) > float(beside["f1"])), total + 1
        if total:
            print(f"above {other}: {wins} of {total}")


def study(rows: Rows) -> None:
    print("\n## What is found of weak inputs\n")
    for table in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == table and "accuracy 0" not in row["quantity"]]
        print(f"\n{table}")
        for quantity in dict.fromkeys(row["quantity"] for row in own):
            cells = [
                f"{row['net']} {row['value']}" + (f" ({row['published']})" if row["published"] else "")
                for row in own
                if row["quantity"] == quantity
            ]
            print(f"- {quantity}: " + "; ".join(cells))


def sampling(rows: Rows) -> None:
    print("\n## Table 5, ResN at 0.5: precision, recall, F1 (published)\n")
    for line in sampling_table(rows):
        print(line)
    for net in dict.fromkeys(row["net"] for row in rows):
        own = [chosen(rows, net=net, varied=varied, setting=setting) for varied, setting in settings(rows)]
        deviations = [statistics.stdev(float(row["f1"]) for row in each) for each in own if len(each) > 1]
        print(f"{net}: at least {min(map(len, own))} seeds, F1 ± {max(deviations, default=0):.4f} at most")


def settings(rows: Rows) -> list[tuple[str, str]]:
    found = dict.fromkeys((row["varied"], row["setting"]) for row in rows)
    return sorted(found, key=lambda each: (each[0] == "neighbours", int(each[1])))


def sampling_table(rows: Rows) -> list[str]:
    """The lines of Table 5: a row per setting, a column per network."""
    lines, nets = [], dict.fromkeys(row["net"] for row in rows)
    for varied, setting in settings(rows):
        name = f"{varied} {setting}" if varied == "weak emphasis" else f"{setting} {varied}"
        cells = [sampling_cell(chosen(rows, net=net, varied=varied, setting=setting)) for net in nets]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def sampling_cell(rows: Rows) -> str:
    """Precision, recall and F1 of one setting, the mean over the seeds, with the published F1."""
    if not rows:
        return "not asked"
    means = (statistics.mean(float(row[name]) for row in rows) for name in ("precision", "recall", "f1"))
    return ", ".join(f"{mean:.3f}" for mean in means) + f" ({rows[0]['published_f1'] or 'not legible'})"


def steering(rows: Rows) -> None:
    print("\n## Table 7\n")
    for learns in ("train", "validation"):
        for threshold in ("0.75", "0.5"):
            for net in dict.fromkeys(row["net"] for row in rows):
                own = chosen(rows, learns_from=learns, threshold=threshold, net=net, tolerance="3.0")
                cells = []
                for method in ("white_box", "random", "flag_all"):
                    cells.append(f"{method} {spread(float(row['f1']) for row in own if row['method'] == method)}")
                one = [row for row in own if row["method"] == "white_box"]
                more = (
                    f"{name} {spread(float(row[name]) for row in one)}"
                    for name in ("weak_share", "auroc", "right", "right_weak")
                )
                print(f"| {learns} | {threshold} | {net} | {' | '.join([*cells, *more])} | {len(one)} |")
    for row in chosen(rows, seed=0, method="white_box", learns_from="train"):
        print(
            row["net"], "threshold", row["threshold"], "λ", row["tolerance"], "weak", row["weak_share"], "F1", row["f1"]
        )


def cost(rows: Rows) -> None:
    print("\n## Cost of a query, milliseconds\n")
    for row in rows:
        figures = f"{row['milliseconds_per_query']} ± {row['deviation']}, median {row['median']}"
        passes = f"{row['images']} images, {row['neighbours_per_pass']} neighbours per pass"
        print(f"- {row['net']}, {passes}: {figures}, making {row['of_which_making']} ({row['machine']})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().folder
    nine, tenth = read(folder / "robustness.csv"), read(folder / "robustness_tenth.csv")
    detectors(nine, "Nine networks")
    each_net(nine)
    above(nine)
    for net in dict.fromkeys(row["net"] for row in tenth):
        detectors(chosen(tenth, net=net), net)
        above(chosen(tenth, net=net))
    study(read(folder / "robustness_study.csv"))
    sampling(read(folder / "robustness_sampling.csv"))
    cost(read(folder / "robustness_cost.csv"))
    steering(read(folder / "robustness_steering.csv"))


if __name__ == "__main__":
    main()
