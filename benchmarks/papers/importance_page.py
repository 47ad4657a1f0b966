"""Tables of docs/papers-importance.md as lines, made of the CSVs beside this script; prose.py writes them."""

import statistics
from pathlib import Path

from importance_tables import (
    NETS,
    OTHERS,
    PUBLISHED,
    TABLE_4,
    TABLE_4_COLUMNS,
    correlations,
    key_of,
    paired,
    read,
    spread,
    whole_table_4,
)
from page_tables import rows, table

FOLDER = Path(__file__).resolve().parent
LAYERS = {"LeNet-1": "4", "LeNet-4": "4", "LeNet-5": "6", "ConvNet": "6"}
"""How many neurons Table 5 takes."""
TABLE_5 = {
    "LeNet-1": {"Conv1": (35.3, 3.0), "Conv2": (76.2, 4.6)},
    "LeNet-4": {"Conv1": (33.9, 2.0), "Conv2": (81.6, 2.4), "FC1": (86.0, 4.0)},
    "LeNet-5": {"Conv1": (12.5, 3.1), "Conv2": (31.0, 5.6), "FC1": (37.0, 7.2), "FC2": (35.8, 7.6)},
}
"""Coverage of U_O, and what U_O+DI adds."""


def table_2() -> list[str]:
    """Distances of the neurons' values: mean (standard deviation) [published]."""
    asked = (("relevant", "important"), ("relevant", "random"), ("relevant", "most active"), ("random", "important"))
    lines = []
    for net in NETS:
        cells = [net]
        for pixels, neurons in asked:
            own = rows("importance_neurons", network=net, pixels=pixels, neurons=neurons)
            mean, deviation = (statistics.mean(float(row[name]) for row in own) for name in ("mean", "std"))
            known = f" [{own[0]['published']}]" if own[0]["published"] and pixels == "relevant" else ""
            cells.append(f"{mean:.2f} ({deviation:.2f}){known}")
        lines.append(cells)
    return table(["", "important", "random", "most active in training", "important, random pixels overwritten"], lines)


def table_3() -> list[str]:
    """U_O+DI − U_O+S in points."""
    found = read(FOLDER)
    asked = [(f"IDC {m}", classes, "subject") for classes in ("apart", "together") for m in (6, 8, 10, 12)]
    asked += [(name, "", "subject" if name in ("DSC", "LSC") else "all") for name in OTHERS]
    lines = []
    for criterion, classes, layers in asked:
        m = criterion.removeprefix("IDC ")
        first = criterion == "IDC 6" and classes == "apart"
        cells = [f"IDC, {m} neurons, apart" if first else f"{m}, {classes}" if classes else criterion]
        for net in NETS:
            own, known = paired(found, net, criterion, classes, layers), PUBLISHED[net].get(criterion)
            cells.append(spread(own, 2, "+") + (beside(net, classes, known) if own else ""))
        lines.append(cells)
    return table(["", *NETS], lines)


def beside(net: str, classes: str, known: tuple[float, float, float] | None) -> str:
    """The published difference; of importance-driven coverage where classes are as they may have been."""
    if known is None:
        return "" if classes else " (time-out)"
    told = f"{known[2] - known[1]:+.1f}".replace("+0.0", "0.0").replace("-", "−")
    return "" if classes == "together" and net != "DAVE-2" else f" ({told})"


def levels() -> list[str]:
    """Coverage in percent, beside what as many further training images reach."""
    found, lines = read(FOLDER), []
    asked = {net: [("IDC 6", "apart"), ("IDC 8", "apart")] for net in NETS[:3]}
    asked["LeNet-5"] += [("KMNC", ""), ("DSC", "")]
    asked |= {"ConvNet": [("IDC 8", "apart"), ("DSC", ""), ("LSC", "")], "DAVE-2": [("IDC 8", "together")]}
    for net, criteria in asked.items():
        for place, (criterion, classes) in enumerate(criteria):
            layers = "all" if criterion == "KMNC" else "subject"
            keys = (key_of(net, name, criterion, classes, layers) for name in ("original", "T", "S", "DI"))
            own = [spread(list(found.get(key, {}).values())) for key in keys]
            known = PUBLISHED[net].get(criterion)
            name = f"{criterion}, {classes}" if classes else criterion
            lines.append(
                ["" if place else net, name, *own, ", ".join(f"{each:.1f}" for each in known) if known else "time-out"]
            )
    return table(["", "", "U_O", "+ training images", "U_O+S", "U_O+DI", "published"], lines)


def every_level() -> list[str]:
    """Table 3 whole: each set, and the published levels."""
    found, lines = read(FOLDER), []
    for net in NETS:
        criteria = [(f"IDC {m}", "apart" if net != "DAVE-2" else "together", "subject") for m in (6, 8, 10, 12)]
        criteria += [(name, "", layers) for name in OTHERS for layers in ("all", "subject")]
        for criterion, classes, layers in criteria:
            keys = (key_of(net, name, criterion, classes, layers) for name in ("original", "S", "DI"))
            own = [spread(list(found.get(key, {}).values())) for key in keys]
            known = PUBLISHED[net].get(criterion)
            if own[0] != "–":
                published = ", ".join(f"{each:.1f}" for each in known) if known else "–"
                lines.append([net, f"{criterion}, {classes or layers}", *own, published])
    return table(["", "", "U_O", "U_O+S", "U_O+DI", "published"], lines)


def published_twice() -> list[str]:
    """U_O as the paper's Tables 3 and 4 have it, and ours of the subject layer and of all layers."""
    found, lines = read(FOLDER), []
    for net in NETS[:3]:
        cells = [net]
        for name in OTHERS:
            first = PUBLISHED[net][name][0]
            second = TABLE_4[net]["original"][TABLE_4_COLUMNS.index(name)]
            ours = found[key_of(net, "original", name, "")][0]
            cells.append(f"{first:g}, {second:g}; {ours:.1f}")
        lines.append(cells)
    return table(["Table 3, Table 4; ours", *OTHERS], lines)


def table_4() -> list[str]:
    return whole_table_4(read(FOLDER))


def table_5() -> list[str]:
    """Coverage by layer, classes apart."""
    found, lines = read(FOLDER), []
    for net, neurons in LAYERS.items():
        keys = [key for key in found if key[:3] == (net, "original", "IDC") and key[3] != "subject"]
        for place, key in enumerate(key for key in keys if key[4:] == (neurons, "apart")):
            known = TABLE_5.get(net, {}).get(key[3].removeprefix("subject: "))
            level = found[key][0]
            more = [value - level for value in found[net, "DI", *key[2:]].values()]
            pairs = paired(found, net, f"IDC {neurons}", "apart", key[3])
            told = [f"{level:.1f}" + (f" ({known[0]})" if known else "")]
            told += [spread(more, 1, "+") + (f" (+{known[1]})" if known else ""), spread(pairs, 1, "+")]
            lines.append(["" if place else net, key[3], *told])
    return table(["", "layer", "U_O", "U_O+DI − U_O", "U_O+DI − U_O+S"], lines)


def correlation() -> list[str]:
    """Spearman's ρ with importance-driven coverage over six sets."""
    found = correlations(read(FOLDER))
    order = ("NC", "KMNC", "NBC", "SNAC", "TKNC", "DSC", "LSC")
    lines = [[net, *(found[name, net] for name in order)] for net in NETS[:4]]
    return table(["", *order], lines)
