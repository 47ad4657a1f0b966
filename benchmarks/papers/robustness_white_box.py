"""DeepRobust's own white box W, as the paper and its released code train it, beside weakspot's detector of weak inputs.

    python benchmarks/papers/robustness_white_box.py [--data DATA] [--cache FOLDER] [--device cuda] [--nets ResN-svhn …]
                                                     [--seeds 1] [--minutes 60] [--float32]

writes robustness_white_box.csv beside this script, one row per network, threshold and seed; rows that are there are not
made again. Layers of 1500, 1000 and 500 units with leaky ReLU (0.1) on features of unit length, two outputs,
cross-entropy; SGD with 0.001, momentum 0.9 and weight decay 2e-4, batches of 100, 200 epochs over all training images
at hand, labelled by 50 neighbours; kept is the epoch with the lowest error on the training images (the paper's own
selection), and flagged is what the network takes for weak. Test images are judged by all 50 neighbours, as published:
weak is lower than the threshold, which with 51 answers is never met exactly.

On a CPU products are in bfloat16 unless --float32 is given; weights, gradients and sums are float32 always.
"""

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine, read_rows, write_rows

from robustness import ALL, NETS, Case, argument_parser
from weakspot.robustness import MethodOutput, neighbour_accuracy, weak_inputs
from weakspot.robustness.metrics_detection import metrics_table

HIDDEN, EPOCHS, BATCH, SLOPE = (1500, 1000, 500), 200, 100, 0.1
THRESHOLDS = (0.75, 0.5)


def white_box(width: int, device: str) -> torch.nn.Sequential:
    """Weights of variance 1/units in, uniform, and no bias at first, as the released code draws them."""
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise((width, *HIDDEN, 2)):
        linear = torch.nn.Linear(before, after)
        torch.nn.init.uniform_(linear.weight, -((3 / before) ** 0.5), (3 / before) ** 0.5)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, torch.nn.LeakyReLU(SLOPE)]
    return torch.nn.Sequential(*layers[:-1]).to(device)


def optimiser_of(network: torch.nn.Module) -> torch.optim.SGD:
    """Only weights decay."""
    parts = dict(network.named_parameters())
    decays = [part for name, part in parts.items() if name.endswith("weight")]
    others = [part for name, part in parts.items() if not name.endswith("weight")]
    groups = [{"params": decays, "weight_decay": 2e-4}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=1e-3, momentum=0.9, fused=True)


def one_epoch(
    network: torch.nn.Module, optimiser: torch.optim.SGD, features: torch.Tensor, weak: torch.Tensor, half: bool
) -> float:
    """The share of training images that were taken for the other kind on the way; batches as in the released code."""
    order = torch.randperm(len(weak), device=weak.device)
    wrong, steps = torch.zeros((), device=weak.device), len(weak) // BATCH
    for rows in order[: steps * BATCH].split(BATCH):
        optimiser.zero_grad()
        with torch.autocast(weak.device.type, dtype=torch.bfloat16, enabled=half):
            outputs = network(features[rows])
        F.cross_entropy(outputs.float(), weak[rows]).backward()
        optimiser.step()
        wrong += (outputs.argmax(1) != weak[rows]).sum()
    return float(wrong / (steps * BATCH))


def trained(case: Case, threshold: float, half: bool) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """The probability that each test image is weak, by the epoch kept and by the last; how it was trained."""
    torch.manual_seed(case.seed)
    weak = torch.from_numpy(weak_of(case, "train", threshold)).long().to(case.device)
    features = torch.from_numpy(case.features["train"]).to(case.device)
    network = white_box(features.shape[1], case.device)
    optimiser, best, chosen = optimiser_of(network), 1.0, 0
    kept: dict[str, torch.Tensor] = {}
    for epoch in range(1, EPOCHS + 1):
        error = one_epoch(network, optimiser, features, weak, half)
        if error < best:
            best, chosen = error, epoch
            kept = {name: part.clone() for name, part in network.state_dict().items()}
    last = said(network, case)
    network.load_state_dict(kept)
    how = {"epochs": EPOCHS, "chosen_epoch": chosen, "training_images": len(weak), "training_error": round(best, 4)}
    return said(network, case), last, how


def said(network: torch.nn.Module, case: Case) -> np.ndarray:
    """Probabilities of being weak, in float32."""
    with torch.inference_mode():
        outputs = network(torch.from_numpy(case.features["test"]).to(case.device))
    return np.asarray(outputs.softmax(1)[:, 1].cpu().numpy().astype(np.float64))


def weak_of(case: Case, split: str, threshold: float) -> np.ndarray:
    """Lower than the threshold over the original and 50 neighbours."""
    return weak_inputs(neighbour_accuracy(case.said[split][:, ALL], case.labels[split]), threshold)


def row(case: Case, threshold: float, half: bool) -> dict[str, Any]:
    probability, last, how = trained(case, threshold, half)
    weak = weak_of(case, "test", threshold)
    found = metrics_table([MethodOutput("white_box", probability, probability > 0.5, probability=True)], weak)
    figures = {name: round(float(found[name][0]), 4) for name in ("f1", "f1_low", "f1_high", "precision", "recall")}
    ranked = {name: round(float(found[name][0]), 4) for name in ("average_precision", "auroc")}
    flagged, later = probability > 0.5, last > 0.5
    counts = {"tp": int((flagged & weak).sum()), "fp": int((flagged & ~weak).sum())}
    last_f1 = 2 * int((later & weak).sum()) / (int(later.sum()) + int(weak.sum()))
    what = {"machine": machine(case.device), "net": case.net, "threshold": threshold, "seed": case.seed}
    return {
        **what,
        "products": "bfloat16" if half else "float32",
        **how,
        "weak_share": round(float(weak.mean()), 4),
        **figures,
        **counts,
        **ranked,
        "f1_last_epoch": round(last_f1, 4),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=NETS)
    parser.add_argument("--thresholds", nargs="+", type=float, default=THRESHOLDS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--float32", action="store_true")
    options = parser.parse_args()
    until, half = time.monotonic() + 60 * options.minutes, options.device == "cpu" and not options.float32
    products = "bfloat16" if half else "float32"
    for net, threshold, seed in itertools.product(options.nets, options.thresholds, range(options.seeds)):
        found: list[dict[str, Any]] = [*read_rows(options.results)]
        known = {tuple(each[key] for key in ("net", "threshold", "seed", "products")) for each in found}
        if (net, str(threshold), str(seed), products) not in known and time.monotonic() < until:
            case = Case(net, options.data, options.cache, options.device, seed=seed)
            found.append(row(case, threshold, half))
            write_rows(options.results, sorted(found, key=lambda each: NETS.index(each["net"])))
            print(found[-1], flush=True)


if __name__ == "__main__":
    main()
