"""Do detectors of weak inputs tell wrong from correct predictions? Beside confidence and the guard, on the same images.

    python benchmarks/peers/guard_detectors.py [--data DATA] [--cache FOLDER] [--nets ResN-svhn …] [--sample 2000]

The detectors (DeepRobust-W, -B, queries, both together) learn from training images what is weak at 0.75; the guard
learns from half of the test images what is wrong. All are judged on the first images of the other half, for predictions
that are wrong. guard_detectors.csv holds the AUROC by net and method.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import SHARED, machine, write_rows
from net_outputs import answered, every, network, parser, pixels, tensor

from guard import settings, statistics

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "papers"))
import robustness as papers
from weakspot.robustness import simpson_diversity
from weakspot.robustness.detector_data import query_columns
from weakspot.robustness.detector_network import DetectorTraining
from weakspot.robustness.detectors import fit_detectors, network_features
from weakspot.robustness.guard_fitting import GuardInputs, fit_guard, scored
from weakspot.statistics import auroc, auroc_interval

QUERIES, THRESHOLD = 8, 0.75


def queried(model: torch.nn.Module, images: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """Logits of the originals and of their first queries, as the stored neighbours were made."""
    drawn = papers.neighbours().neighbour_parameters(len(images), papers.LOOKS, seed)[rows][:, :QUERIES]
    found = np.concatenate(list(papers.asked(model, images[rows], drawn, "cpu")))
    return np.concatenate([answered(model, tensor(images[rows]), "cpu")["logits"][:, None], found], 1)


def measured(net: str, kept: dict[str, np.ndarray], options: Any) -> list[dict[str, Any]]:
    data, model = net.split("-")[1], network(net, "cpu")
    (train, train_labels), (images, labels) = (pixels(data, options.data, split) for split in ("train", "test"))
    with np.load(SHARED / "models" / "neighbours" / f"{net}-predicted.npz") as stored:
        said = {split: stored[split].astype(np.int64) for split in ("train", "test")}
    rng = np.random.default_rng(0)
    learnt = np.sort(rng.permutation(len(train))[: options.sample])
    order = rng.permutation(len(images))
    half, judged = order[: len(order) // 2], np.sort(order[len(order) // 2 :][: options.sample])
    logits = queried(model, train, learnt, 20241), queried(model, images, judged, 20242 if data == "svhn" else 20240)
    taken = (
        papers.unit(answered(model, tensor(train[learnt]), "cpu")["features"]),
        papers.unit(kept["test_features"][judged]),
    )
    columns = [
        {**query_columns(papers.softmax(own)), "features": features}
        for own, features in zip(logits, taken, strict=True)
    ]
    correct = said["train"][learnt] == train_labels[learnt][:, None]
    fitted = fit_detectors(columns[0], correct, THRESHOLD, QUERIES, DetectorTraining(weak_if="at_or_below"))
    seen = network_features(columns[1])
    scores = {name: network_.network.probability(seen[name]) for name, network_ in fitted.networks.items()}
    scores["black_box"] = -simpson_diversity(said["test"][judged][:, : QUERIES + 1])
    scores |= guard_scores(images, labels, kept, half, judged)
    wrong = kept["test_logits"][judged].argmax(1) != labels[judged]
    return [row(net, name, score, wrong) for name, score in scores.items()]


def guard_scores(
    images: np.ndarray, labels: np.ndarray, kept: dict[str, np.ndarray], half: np.ndarray, judged: np.ndarray
) -> dict[str, np.ndarray]:
    described, shape = statistics(images), tuple(tensor(images[:1]).shape[1:])
    ids = np.array([f"{number:05d}" for number in range(len(labels))])
    own, other = (GuardInputs(ids[r], kept["test_logits"], described, kept["test_features"], r) for r in (half, judged))
    return scored(fit_guard(own, labels[half], settings("false_alarms", 0.05, shape, 0)).guard, other)


def row(net: str, method: str, score: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    area, errors = auroc(score, wrong), int(wrong.sum())
    low, high = (round(float(end), 4) for end in auroc_interval(area, errors, len(wrong) - errors))
    return {"net": net, "method": method, "auroc": round(area, 4), "low": low, "high": high, "images": len(wrong),
            "errors": errors, "machine": machine("cpu")}  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sample", type=int, default=2000)
    arguments.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = arguments.parse_args()
    rows = []
    for net, kept in every(options):
        rows += measured(net, kept, options)
        print(net, {one["method"]: one["auroc"] for one in rows if one["net"] == net}, file=sys.stderr, flush=True)
    write_rows(options.results, rows)


if __name__ == "__main__":
    main()
