"""The tables of docs/papers-importance.md, made of the CSVs beside this script: `python importance_tables.py`."""

import argparse
import csv
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

NETS = ("LeNet-1", "LeNet-4", "LeNet-5", "ConvNet", "DAVE-2")
OTHERS = ("NC", "KMNC", "NBC", "SNAC", "TKNC", "DSC", "LSC")
SETS = {"original": "U_O", "S": "+ S", "noise": "+ noise everywhere", "T": "+ training images", "fgsm": "+ FGSM"}
SETS |= {"bim": "+ BIM", "jsma": "+ JSMA", "carlini_wagner": "+ C&W"}
PUBLISHED: dict[str, dict[str, tuple[float, float, float]]] = {
    "LeNet-1": {
        "IDC 6": (34.6, 38.0, 38.8), "IDC 8": (14.1, 16.5, 17.5), "IDC 10": (5.5, 6.6, 7.0), "IDC 12": (2.1, 2.6, 2.9),
        "NC": (17.3, 20.7, 20.5), "KMNC": (35.1, 51.3, 48.2), "NBC": (16.7, 22.5, 21.5), "SNAC": (10.9, 14.6, 13.8),
        "TKNC": (100.0, 100.0, 100.0), "DSC": (86.3, 91.7, 92.3), "LSC": (2.8, 3.3, 3.2),
    },
    "LeNet-4": {
        "IDC 6": (58.8, 64.2, 65.8), "IDC 8": (26.9, 31.8, 32.9), "IDC 10": (13.5, 16.9, 18.1),
        "IDC 12": (4.5, 6.3, 6.9), "NC": (37.9, 44.1, 43.4), "KMNC": (34.9, 54.4, 50.8), "NBC": (9.3, 12.3, 11.7),
        "SNAC": (12.0, 15.0, 14.3), "TKNC": (91.3, 91.7, 91.6), "DSC": (60.2, 66.8, 66.7), "LSC": (14.6, 16.7, 16.5),
    },
    "LeNet-5": {
        "IDC 6": (47.0, 51.1, 52.1), "IDC 8": (28.0, 33.7, 34.5), "IDC 10": (9.5, 12.2, 13.1),
        "IDC 12": (4.4, 6.2, 6.8), "NC": (44.2, 51.7, 50.6), "KMNC": (32.5, 52.0, 48.4), "NBC": (9.3, 12.1, 11.5),
        "SNAC": (14.4, 18.1, 17.3),
        "TKNC": (88.8, 89.2, 89.1), "DSC": (54.9, 60.9, 61.4), "LSC": (13.8, 16.5, 16.8),
    },
    "ConvNet": {
        "IDC 6": (29.4, 37.9, 39.0), "IDC 8": (11.1, 15.5, 16.6), "IDC 10": (5.1, 7.4, 8.1), "IDC 12": (2.0, 3.2, 3.7),
        "NC": (20.2, 35.2, 34.5), "KMNC": (36.8, 43.5, 41.5), "NBC": (9.4, 9.5, 9.5), "SNAC": (8.8, 8.9, 8.9),
        "TKNC": (15.2, 17.0, 16.6),
    },
    "DAVE-2": {
        "IDC 6": (19.1, 26.0, 28.5), "IDC 8": (7.8, 10.0, 11.6), "IDC 10": (3.3, 4.2, 4.9), "IDC 12": (1.4, 2.0, 2.3),
        "NC": (51.6, 66.7, 64.7), "KMNC": (30.2, 50.9, 46.6), "NBC": (0.8, 24.7, 21.4), "SNAC": (1.5, 46.9, 41.0),
        "TKNC": (40.8, 52.1, 50.0), "LSC": (4.2, 4.6, 4.7),
    },
}  # fmt: skip
"""Table 3: U_O, U_O+S, U_O+DI; DSC and LSC of the ConvNet ran out of time there."""
TABLE_4_COLUMNS = ("IDC 6", "IDC 8", "NC", "KMNC", "NBC", "SNAC", "TKNC", "LSC", "DSC")
TABLE_4 = {
    "LeNet-1": {
        "original": (34.6, 14.1, 23.8, 62.7, 15.1, 18.6, 100, 2.6, 86.2),
        "noise": (36.3, 16.1, 23.8, 70.8, 25.0, 18.6, 100, 4.0, 87.6),
        "fgsm": (42.3, 20.9, 23.8, 81.1, 46.5, 55.8, 100, 13.7, 85.3),
        "bim": (43.2, 20.8, 23.8, 71.6, 45.3, 53.4, 100, 9.6, 86.8),
        "jsma": (41.0, 19.0, 23.8, 80.5, 31.3, 37.2, 100, 13.9, 86.9),
        "carlini_wagner": (37.9, 17.0, 23.8, 64.9, 16.6, 19.0, 100, 5.2, 86.2),
    },
    "LeNet-4": {
        "original": (58.8, 27.0, 63.7, 69.2, 7.9, 12.3, 91.3, 14.4, 61.5),
        "noise": (62.0, 29.1, 64.4, 72.6, 10.8, 12.3, 91.3, 10.9, 67.0),
        "fgsm": (65.6, 33.4, 64.4, 79.4, 38.8, 65.4, 93.4, 39.3, 83.7),
        "bim": (66.5, 33.4, 79.3, 74.2, 41.0, 69.7, 92.7, 45.1, 78.8),
        "jsma": (64.7, 32.2, 63.7, 76.8, 14.3, 20.8, 91.3, 64.4, 88.8),
        "carlini_wagner": (62.8, 31.0, 63.7, 70.5, 7.9, 12.3, 91.3, 14.4, 60.1),
    },
    "LeNet-5": {
        "original": (47.0, 28.0, 75.3, 69.2, 7.6, 13.8, 88.8, 13.8, 54.9),
        "noise": (48.1, 29.1, 75.3, 71.5, 10.0, 13.8, 88.8, 10.8, 57.3),
        "fgsm": (51.6, 32.3, 75.3, 79.6, 40.7, 71.3, 89.1, 40.4, 83.5),
        "bim": (51.6, 32.3, 84.7, 76.1, 46.2, 83.2, 89.1, 42.4, 74.3),
        "jsma": (49.8, 32.3, 75.3, 74.3, 12.8, 21.1, 89.1, 61.0, 85.7),
        "carlini_wagner": (49.8, 31.8, 75.3, 70.6, 7.6, 13.8, 88.8, 15.2, 61.2),
    },
}
"""The published table, in the order of the columns."""
Key = tuple[str, str, str, str, str, str]


def read(folder: Path) -> dict[Key, dict[int, float]]:
    """Coverage by network, set, criterion, layers, neurons and classes; then by seed."""
    found: dict[Key, dict[int, float]] = defaultdict(dict)
    with (folder / "importance.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            names = ("network", "set", "criterion", "layers", "neurons", "classes")
            key: Key = tuple(row[name] for name in names)  # type: ignore[assignment]
            found[key][int(row["seed"])] = float(row["coverage"])
    return found


def spread(values: Sequence[float], digits: int = 1, sign: str = "") -> str:
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{sign}.{digits}f}{deviation}"


def key_of(net: str, name: str, criterion: str, classes: str, layers: str = "subject") -> Key:
    label, _, neurons = criterion.partition(" ")
    return net, name, label, layers, neurons, classes if neurons else ""


def paired(found: dict[Key, dict[int, float]], net: str, criterion: str, classes: str, layers: str) -> list[float]:
    """U_O+DI − U_O+S in points, seed by seed."""
    random, relevant = (found.get(key_of(net, name, criterion, classes, layers), {}) for name in ("S", "DI"))
    return [relevant[seed] - random[seed] for seed in sorted(set(random) & set(relevant))]


def table_3(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Table 3: U_O+DI − U_O+S in points, mean ± standard deviation over seeds (published)\n")
    print("| | " + " | ".join(NETS) + " |\n|---|" + "---|" * len(NETS))
    asked = [(f"IDC {m}", classes, "subject") for classes in ("apart", "together") for m in (6, 8, 10, 12)]
    asked += [(name, "", layers) for name in OTHERS for layers in ("all", "subject")]
    for criterion, classes, layers in asked:
        cells = []
        for net in NETS:
            own, known = paired(found, net, criterion, classes, layers), PUBLISHED[net].get(criterion)
            beside = f" ({known[2] - known[1]:+.1f})" if known else ""
            cells.append(spread(own, 2, "+") + (beside if own else ""))
        if any(cell != "–" for cell in cells):
            print(f"| {criterion}, {classes or layers} | " + " | ".join(cells) + " |")


def levels(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Table 3, levels in percent (published)\n")
    print(
        "| | | U_O | U_O + training images | U_O+S | U_O+DI | published U_O, +S, +DI |\n|---|---|---|---|---|---|---|"
    )
    asked = [("IDC 6", "apart", "subject"), ("IDC 8", "apart", "subject"), ("IDC 8", "together", "subject")]
    asked += [(name, "", layers) for name in OTHERS for layers in ("all", "subject")]
    for net in NETS:
        for criterion, classes, layers in asked:
            own = [
                list(found.get(key_of(net, name, criterion, classes, layers), {}).values())
                for name in ("original", "T", "S", "DI")
            ]
            if own[0]:
                known = ", ".join(map(str, PUBLISHED[net].get(criterion, ())))
                print(f"| {net} | {criterion}, {classes or layers} | {' | '.join(map(spread, own))} | {known} |")


def table_4(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Table 4, first seed (published)\n")
    print("\n".join(whole_table_4(found)))


def whole_table_4(found: dict[Key, dict[int, float]]) -> list[str]:
    """Every set and criterion, of the neurons of the subject layer; the published number in brackets."""
    lines = [
        "| | | " + " | ".join(TABLE_4_COLUMNS) + " | accuracy |",
        "|---|---|" + "---|" * (len(TABLE_4_COLUMNS) + 1),
    ]
    for net in NETS[:4]:
        for name, label in SETS.items():
            own = [found.get(key_of(net, name, column, "apart"), {}).get(0) for column in TABLE_4_COLUMNS]
            known = TABLE_4.get(net, {}).get(name, (None,) * len(own))
            cells = [
                "–" if value is None else f"{value:.1f}" + ("" if beside is None else f" ({beside:g})")
                for value, beside in zip(own, known, strict=True)
            ]
            accuracy = found[net, name, "performance", "", "", ""][0]
            lines.append(f"| {net} | {label} | " + " | ".join(cells) + f" | {accuracy:.1f} |")
    return lines


def table_5(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Table 5: layers from shallow to deep\n")
    print("| | layer | classes | U_O | U_O+S | U_O+DI | DI − U_O | DI − S |\n|---|---|---|---|---|---|---|---|")
    for net, name, criterion, layers, neurons, classes in list(found):
        if criterion == "IDC" and name == "original" and layers != "subject":
            own = [list(found[net, each, criterion, layers, neurons, classes].values()) for each in ("S", "DI")]
            first = found[net, name, criterion, layers, neurons, classes][0]
            more = spread([value - first for value in own[1]], 1, "+")
            pairs = spread(paired(found, net, f"IDC {neurons}", classes, layers), 1, "+")
            cells = (
                net,
                f"{layers}, {neurons} neurons",
                classes,
                f"{first:.1f}",
                spread(own[0]),
                spread(own[1]),
                more,
                pairs,
            )
            print(f"| {' | '.join(cells)} |")


def correlation(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Question 4: Spearman's ρ with IDC 8 (apart) over the sets of Table 4\n")
    print("| | " + " | ".join(NETS[:4]) + " |\n|---|" + "---|" * 4)
    told = correlations(found)
    for criterion in OTHERS:
        print(f"| {criterion} | " + " | ".join(told[criterion, net] for net in NETS[:4]) + " |")


def correlations(found: dict[Key, dict[int, float]]) -> dict[tuple[str, str], str]:
    """By criterion and network."""
    names, told = ["original", "S", "fgsm", "bim", "jsma", "carlini_wagner"], {}
    for criterion in OTHERS:
        for net in NETS[:4]:
            layers = "subject" if criterion in ("DSC", "LSC") else "all"
            pairs = [
                (found.get(key_of(net, name, "IDC 8", "apart"), {}).get(0),
                 found.get(key_of(net, name, criterion, "", layers), {}).get(0))
                for name in names
            ]  # fmt: skip
            both = np.array([pair for pair in pairs if None not in pair], dtype=float)
            constant = len(both) < 4 or np.ptp(both[:, 1]) == 0
            told[criterion, net] = "constant" if constant else f"{spearmanr(both[:, 0], both[:, 1]).statistic:.2f}"
    return told


def sides(pairs: Sequence[tuple[float, float]]) -> str:
    """How often the first is above, equal, below."""
    signs = [(first > second) - (first < second) for first, second in pairs]
    return f"{signs.count(1)} above, {signs.count(0)} equal, {signs.count(-1)} below, of {len(signs)}"


def claims(found: dict[Key, dict[int, float]]) -> None:
    print("\n## Claims, counted\n")
    mine = [("IDC", f"IDC {m}", classes, "subject") for classes in ("apart", "together") for m in (6, 8, 10, 12)]
    rest = [(name, name, "", layers) for name in OTHERS for layers in ("all", "subject")]
    for label in ("IDC", *OTHERS):
        asked = [entry[1:] for entry in (*mine, *rest) if entry[0] == label]
        by_seed = [
            (own["DI"][seed], own["S"][seed])
            for net in NETS
            for criterion, classes, layers in asked
            for own in [{n: found.get(key_of(net, n, criterion, classes, layers), {}) for n in ("S", "DI")}]
            for seed in sorted(set(own["S"]) & set(own["DI"]))
        ]
        print(f"- {label}: DI against S, by network, setting and seed: {sides(by_seed)}")
    for first, second in [("T", "DI"), ("T", "S"), ("DI", "noise")] + [
        (attack, other) for other in ("S", "noise") for attack in ("fgsm", "bim", "jsma", "carlini_wagner")
    ]:
        pairs = []
        for net in NETS:
            for _, criterion, classes, layers in mine:
                one, other = (found.get(key_of(net, n, criterion, classes, layers), {}) for n in (first, second))
                pairs += [(one[0], other[0])] if 0 in one and 0 in other else []
        print(f"- IDC, {first} against {second}, by network and setting: {sides(pairs)}")


def table_2(folder: Path) -> None:
    print("\n## Table 2: distance of the neurons' values, mean (standard deviation over images)\n")
    path = folder / "importance_neurons.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    print("| | relevant pixels: important | most active | random | random pixels: important | most active | random |")
    print("|---|---|---|---|---|---|---|")
    for net in dict.fromkeys(row["network"] for row in rows):
        cells = []
        for pixels in ("relevant", "random"):
            for neurons in ("important", "most active", "random"):
                own = [r for r in rows if (r["network"], r["pixels"], r["neurons"]) == (net, pixels, neurons)]
                mean, deviation = (statistics.mean(float(r[name]) for r in own) for name in ("mean", "std"))
                cells.append(
                    f"{mean:.2f} ({deviation:.2f})" + (f" [{own[0]['published']}]" if own[0]["published"] else "")
                )
        print(f"| {net} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().folder
    found = read(folder)
    table_2(folder)
    for tell in (table_3, levels, table_4, table_5, correlation, claims):
        tell(found)


if __name__ == "__main__":
    main()
