"""Tables of docs/papers-robustness.md as lines, made of the CSVs beside this script; prose.py writes them."""

from page_tables import Rows, mean, rows, table
from robustness_tables import by_seed, sampling_table, spread

DATA = {"cifar10": "CIFAR-10", "fashion_mnist": "Fashion-MNIST", "svhn": "SVHN"}
KINDS = {"ResN": "ResNet-32", "WideResN": "WideResNet", "Vgg16Half": "VGG"}
NETS = {f"{kind}-{data}": f"{KINDS[kind]}, {DATA[data]}" for data in DATA for kind in KINDS}
CUTOFFS = ("0.75", "0.5")
TABLE_4 = {
    "ResN-cifar10": ((0.79, 3844, 764), (0.581, 1290, 664)),
    "WideResN-cifar10": ((0.747, 2901, 906), (0.56, 947, 610)),
    "Vgg16Half-cifar10": ((0.654, 2222, 938), (0.493, 747, 543)),
    "ResN-svhn": ((0.755, 6814, 2530), (0.577, 1414, 674)),
    "WideResN-svhn": ((0.709, 5062, 2143), (0.582, 1404, 1055)),
    "Vgg16Half-svhn": ((0.595, 5214, 3367), (0.498, 1272, 911)),
    "ResN-fashion_mnist": ((0.914, 6034, 873), (0.791, 2144, 556)),
    "WideResN-fashion_mnist": ((0.896, 5743, 652), (0.76, 2033, 641)),
    "Vgg16Half-fashion_mnist": ((0.864, None, 1231), (0.654, 1895, 1082)),
}
"""W: F1, true and false positives at 0.75 and at 0.5; one number is not legible."""
TOP1 = {
    "ResN-cifar10": (0.376, 0.182), "WideResN-cifar10": (0.35, 0.183), "Vgg16Half-cifar10": (0.439, 0.266),
    "ResN-svhn": (0.315, 0.267), "WideResN-svhn": (0.292, 0.203), "Vgg16Half-svhn": (0.172, 0.139),
    "ResN-fashion_mnist": (0.124, 0.039), "WideResN-fashion_mnist": (0.144, 0.045),
    "Vgg16Half-fashion_mnist": (0.104, 0.028),
}  # fmt: skip
TABLE_2 = {
    "ResN-cifar10": ((0.915, 0.609, 1.368), (0.778, 0.588, 0.786)),
    "WideResN-cifar10": ((0.955, 0.584, 1.736), (0.796, 0.558, 1.040)),
    "Vgg16Half-cifar10": ((1.004, 0.975, 1.163), (0.992, 0.973, 0.749)),
    "ResN-svhn": ((1.046, 0.294, 2.077), (0.604, 0.260, 0.860)),
    "WideResN-svhn": ((1.103, 0.309, 2.428), (0.671, 0.274, 1.111)),
    "Vgg16Half-svhn": ((0.997, 0.977, 1.420), (0.983, 0.977, 0.401)),
    "ResN-fashion_mnist": ((0.746, 0.297, 1.426), (0.516, 0.253, 0.749)),
    "WideResN-fashion_mnist": ((0.734, 0.293, 1.312), (0.496, 0.257, 0.642)),
    "Vgg16Half-fashion_mnist": ((0.976, 0.930, 1.332), (0.953, 0.918, 0.937)),
}
"""r_w, r_s and Cohen's d at 0.5 and at 0.75."""


def nine() -> list[str]:
    """Mean F1 over nine networks, with average precision and AUROC."""
    lines: list[list[str]] = [["*truth from all 50 neighbours, as published:*", "", ""]]
    lines += [
        told("B, λ of the same 50, threshold as in the authors' code", "shared", "black_box"),
        told("B, threshold as in the text of the paper", "shared", "black_box_paper_rule", ranked=False),
        ["published", "0.965", "0.729"],
        ["B, λ of 15 of these 50: the paper's own text", *(text_figure(cutoff) for cutoff in CUTOFFS)],
        told("W of ours, all training images", "shared", "white_box_all"),
        ["published", "0.769", "0.611"],
        ["*score from 15 neighbours, truth from the other 35:*", "", ""],
    ]
    for name, method in (
        ("**B**", "black_box"),
        ("B, threshold of best F1 in training", "black_box_best_f1"),
        ("labelled oracle: accuracy over the same 15", "oracle"),
        ("W of ours, all training images", "white_box_all"),
        ("W of ours, 15,000 training images", "white_box"),
        ("network on the probabilities of the 15 answers", "queries"),
        ("both together: network on features and these probabilities", "together"),
        ("highest probability of the original, threshold tuned in training", "max_softmax"),
        ("highest probability of the original below 0.75 or 0.5", "top1"),
        ("at random, as many as both together call weak", "random"),
        ("everything called weak", "flag_all"),
    ):
        plain = method in ("black_box_best_f1", "top1", "random", "flag_all")
        lines.append(told(name, "fresh", method, ranked=not plain))
    return table(["", "weak at 0.75", "weak at 0.5"], lines)


def told(name: str, draws: str, method: str, *, ranked: bool = True) -> list[str]:
    """F1 with its standard deviation over seeds; in brackets average precision and AUROC."""
    cells = [name]
    for cutoff in CUTOFFS:
        own = rows("robustness", draws=draws, method=method, threshold=cutoff)
        cell = spread(by_seed(own, "f1"))
        cell = f"**{cell}**" if name.startswith("**") else cell
        more = ", ".join(f"{mean(own, each):.3f}" for each in ("average_precision", "auroc"))
        cells.append(f"{cell} ({more})" if ranked else cell)
    return cells


def text_figure(cutoff: str) -> str:
    return spread(by_seed(rows("robustness_black_box", draws="text", cutoff=cutoff), "f1"))


def each_network() -> list[str]:
    """F1 by network at both cutoffs."""
    asked = {"B, shared": ("shared", "black_box"), "B, fresh": ("fresh", "black_box")}
    asked |= {"W, fresh": ("fresh", "white_box_all"), "together": ("fresh", "together"), "oracle": ("fresh", "oracle")}
    lines = []
    for net, name in NETS.items():
        known = (rows("robustness", net=net, draws="shared", method="black_box", threshold=each) for each in CUTOFFS)
        shares = ", ".join(f"{100 * float(row[0]['weak_share']):.0f}" for row in known)
        cells = [name, f"{shares} %"]
        for draws, method in asked.values():
            own = (rows("robustness", net=net, draws=draws, method=method, threshold=cutoff) for cutoff in CUTOFFS)
            cells.append(", ".join(f"{mean(each, 'f1'):.3f}" for each in own))
        lines.append(cells)
    return table(["", "weak", *asked], lines)


def table_6() -> list[str]:
    """B by network: F1 (true, false positives), published beside."""
    lines = []
    for net, name in NETS.items():
        cells = [name]
        for cutoff in CUTOFFS:
            for draws in ("shared", "fresh"):
                own = rows("robustness_black_box", net=net, draws=draws, cutoff=cutoff, weak="below")
                cells.append(hits(*(mean(own, each) for each in ("f1", "tp", "fp"))))
                if draws == "shared":
                    cells.append(hits(*(float(own[0][f"published_{each}"]) for each in ("f1", "tp", "fp"))))
        lines.append(cells)
    head = [f"{what}, {cutoff}" for cutoff in CUTOFFS for what in ("B, shared", "published", "B, fresh")]
    return table(["", *head], lines)


def hits(f1: float, found: float | None, wrong: float) -> str:
    return f"{f1:.3f} ({'?' if found is None else f'{found:.0f}'} / {wrong:.0f})"


def table_4() -> list[str]:
    """W by network: ours and the paper's own, with true and false positives, beside the published."""
    lines = []
    for net, name in NETS.items():
        for place, cutoff in enumerate(CUTOFFS):
            ours = rows("robustness", net=net, draws="shared", method="white_box_all", threshold=cutoff)
            top1 = rows("robustness", net=net, draws="fresh", method="top1", threshold=cutoff)
            cells = [own_hits(ours), paper_hits(net, cutoff), hits(*TABLE_4[net][place])]
            cells.append(f"{mean(top1, 'f1'):.3f} ({TOP1[net][place]})")
            lines.append([name if not place else "", cutoff, *cells])
    return table(["", "weak at", "W of ours", "W of the paper, run here", "published W", "top1 (published)"], lines)


def own_hits(found: Rows) -> str:
    """From precision and recall, which the CSV has to four digits: counts may be off by one."""
    share, images = mean(found, "weak_share"), 5000 if found[0]["net"].endswith("svhn") else 10_000
    true = mean(found, "recall") * share * images
    return hits(mean(found, "f1"), true, true * (1 / mean(found, "precision") - 1))


def paper_hits(net: str, cutoff: str) -> str:
    own = rows("robustness_white_box", net=net, threshold=cutoff, products="bfloat16")
    return hits(*(mean(own, each) for each in ("f1", "tp", "fp"))) if own else "not run"


def tenth(net: str) -> list[str]:
    """A network on which nothing was settled."""
    asked = (
        ("B, truth from the same 50 neighbours", "shared", "black_box"), ("B", "fresh", "black_box"),
        ("W", "fresh", "white_box"), ("network on the 15 answers' probabilities", "fresh", "queries"),
        ("both together", "fresh", "together"), ("highest probability, tuned", "fresh", "max_softmax"),
        ("everything", "fresh", "flag_all"),
    )  # fmt: skip
    lines = []
    for name, draws, method in asked:
        cells = [name]
        for cutoff in CUTOFFS:
            own = rows("robustness_tenth", net=net, draws=draws, method=method, threshold=cutoff)
            more = ", ".join(f"{mean(own, each):.3f}" for each in ("average_precision", "auroc"))
            cells.append(spread(float(row["f1"]) for row in own) + ("" if name == "everything" else f" ({more})"))
        lines.append(cells)
    return table([{"LeNet5-mnist": "LeNet-5, MNIST"}.get(net, "ConvNet, CIFAR-10"), *headed()], lines)


def headed() -> list[str]:
    return [f"weak at {cutoff}" for cutoff in CUTOFFS]


def lenet() -> list[str]:
    return tenth("LeNet5-mnist")


def convnet() -> list[str]:
    return tenth("ConvNet-cifar10")


def steering() -> list[str]:
    """Table 7."""
    names = {"dave2": ("DAVE-2", "0.541", "0.41"), "epoch": ("Epoch", "0.789", "0.682")}
    names |= {"chauffeur": ("Chauffeur", "0.42", "0.346")}
    lines = []
    for place, cutoff in enumerate(CUTOFFS):
        for net, (name, *published) in names.items():
            known = {"net": net, "threshold": cutoff, "tolerance": "3.0", "learns_from": "train"}
            own = {
                method: rows("robustness_steering", method=method, **known)
                for method in ("white_box", "random", "flag_all")
            }
            found = own["white_box"]
            cells = [name, cutoff, f"{100 * mean(found, 'weak_share'):.0f} %"]
            cells += [spread(float(row[each]) for row in found) for each in ("f1", "auroc")]
            cells += [f"{mean(own[each], 'f1'):.3f}" for each in ("random", "flag_all")]
            lines.append([*cells, published[place]])
    return table(["", "threshold", "weak", "W: F1", "AUROC", "random", "everything", "published W"], lines)


def study(net: str, quantity: str) -> str:
    [row] = rows("robustness_study", net=net, quantity=quantity)
    return row["value"]


def by_kind(cell: "dict[str, str]") -> list[str]:
    """A column for each data set, a line for each kind of network."""
    lines = [[name, *(cell[f"{kind}-{data}"] for data in DATA)] for kind, name in KINDS.items()]
    return table(["", *DATA.values()], lines)


def table_1() -> list[str]:
    cells = {}
    for net in NETS:
        found = {row["quantity"]: row for row in rows("robustness_study", net=net, table="Table 1")}
        both = (found[f"{kind} accuracy"] for kind in ("natural", "robust"))
        cells[net] = ", ".join(f"{float(row['value']):.1f} ({row['published']})" for row in both)
    return by_kind(cells)


def table_2() -> list[str]:
    """r of weak and strong images and Cohen's d, published in brackets."""
    lines = []
    for net, name in NETS.items():
        cells = [name]
        for cutoff, published in zip(("0.5", "0.75"), TABLE_2[net], strict=True):
            named = (f"r of weak at {cutoff}", f"r of strong at {cutoff}", f"Cohen's d at {cutoff}")
            pairs = zip(named, published, strict=True)
            cells += [f"{float(study(net, each)):.2f} ({known:.2f})" for each, known in pairs]
        lines.append(cells)
    return table(["", *(f"{what}, {cutoff}" for cutoff in ("0.5", "0.75") for what in ("r_w", "r_s", "d"))], lines)


def table_3() -> list[str]:
    found = {row["net"]: row for row in rows("robustness_study", table="Table 3")}
    return by_kind({net: f"{float(row['value']):.3f} ({float(row['published']):.3f})" for net, row in found.items()})


def table_9() -> list[str]:
    """Correlations of the bins between two models, published in brackets."""
    published = {
        "Vgg16Half ResN cifar10": ((0.980, 0.985, 0.938), (0.956, 0.980, 0.920)),
        "Vgg16Half WideResN cifar10": ((0.995, 0.996, 0.986), (0.977, 0.995, 0.980)),
        "ResN WideResN cifar10": ((0.991, 0.990, 0.980), (0.989, 0.986, 0.97)),
        "Vgg16Half ResN svhn": ((0.955, 0.978, 0.979), (0.995, 0.983, 0.995)),
        "Vgg16Half WideResN svhn": ((0.977, 0.979, 0.993), (0.998, 0.983, 0.99)),
        "ResN WideResN svhn": ((0.992, 0.986, 0.95), (0.998, 0.995, 0.98)),
        "Vgg16Half ResN fashion_mnist": ((0.863, 0.637, 0.969), (0.890, 0.627, 0.970)),
        "Vgg16Half WideResN fashion_mnist": ((0.877, 0.883, 0.980), (0.893, 0.874, 0.969)),
        "ResN WideResN fashion_mnist": ((0.967, 0.901, 0.965), (0.979, 0.899, 0.979)),
    }
    names = ("Spearman", "Pearson", "Pearson without the last bin")
    known = {pair: {row["quantity"]: row["value"] for row in rows("robustness_study", net=pair, table="Table 9")}
             for pair in dict.fromkeys(row["net"] for row in rows("robustness_study", table="Table 9"))}  # fmt: skip
    lines = []
    for pair, figures in published.items():
        one, other, data = pair.split(" ")
        found = known.get(f"{one} and {other}, {data}") or known[f"{other} and {one}, {data}"]
        for split, values in zip(("train", "test"), figures, strict=True):
            cells = [
                f"{float(found[f'{name}, {split}']):.3f} ({value})" for name, value in zip(names, values, strict=True)
            ]
            title = f"{KINDS[one]} and {KINDS[other]}, {DATA[data]}" if split == "train" else ""
            lines.append([title, "training" if split == "train" else split, *cells])
    return table(["", "images", *names], lines)


def ties() -> list[str]:
    """The black box on fresh neighbours, by what is called weak."""
    lines = []
    for name, weak in (("at or below the cutoff", "at or below"), ("lower than the cutoff, the paper's", "below")):
        cells = [name]
        for cutoff in CUTOFFS:
            own = rows("robustness_black_box", draws="fresh", cutoff=cutoff, weak=weak)
            cells.append(f"{100 * mean(own, 'weak_share'):.1f} % weak, F1 {spread(by_seed(own, 'f1'))}")
        lines.append(cells)
    return table(["weak is", *CUTOFFS], lines)


def table_5() -> list[str]:
    return table(["", *DATA.values()], []) + sampling_table(rows("robustness_sampling"))


def white_boxes() -> list[str]:
    """The paper's own W where it was run, beside ours and the published one."""
    lines = []
    for row in rows("robustness_white_box"):
        place = CUTOFFS.index(row["threshold"])
        ours = rows("robustness", net=row["net"], draws="shared", method="white_box_all", threshold=row["threshold"])
        cells = [NETS[row["net"]], row["threshold"], f"{int(row['training_images']):,}", row["products"]]
        told = (
            f"({float(row['precision']):.2f}, {float(row['recall']):.2f})" if float(row["f1"]) else "(nothing flagged)"
        )
        cells += [f"{float(row['f1']):.3f} {told}"]
        cells += [f"{float(row[name]):.3f}" for name in ("f1_last_epoch", "average_precision")]
        known = f"{TABLE_4[row['net']][place][0]:.3f}"
        lines.append([*cells, f"{mean(ours, 'f1'):.3f}", f"{mean(ours, 'average_precision'):.3f}", known])
    names = ("training images", "products", "paper's W: F1 (precision, recall)", "of the last epoch", "AP")
    return table(["", "weak at", *names, "ours: F1", "AP", "published F1"], lines)


def steering_nets() -> list[str]:
    """R² of the steering networks against the best constant, over five trainings."""
    lines = []
    for net, name in {"dave2": "DAVE-2", "epoch": "Epoch", "chauffeur": "Chauffeur"}.items():
        own = (rows("steering_nets", stage="final", net=net, part=part) for part in ("train", "validation", "test"))
        lines.append([name, *(spread(float(row["r2"]) for row in found) for found in own)])
    return table(["", "training blocks", "validation blocks", "test blocks"], lines)


COST = {
    "H200, batches of 100": ("NVIDIA", "100", "100"),
    "H200, batches of 512": ("NVIDIA", "512", "512"),
    "H200, one image, its 15 queries in one pass": ("NVIDIA", "1", "15"),
    "one core of a CPU, batches of 100": ("AMD", "100", "100"),
    "one core of a CPU, one image": ("AMD", "1", "15"),
}
"""Machine, images, and neighbours per pass."""


def cost() -> list[str]:
    """Milliseconds of a query."""
    lines = []
    for name, (device, images, neighbours) in COST.items():
        cells = [name]
        for data in DATA:
            found = rows("robustness_cost", net=f"ResN-{data}", images=images, neighbours_per_pass=neighbours)
            [row] = [row for row in found if row["machine"].startswith(device)]
            digits = 4 if images == "512" else 3
            cells.append(f"{float(row['milliseconds_per_query']):.{digits}f} ± {float(row['deviation']):.{digits}f}")
        lines.append(cells)
    return table(["", *DATA.values()], lines)
