"""Accuracy on unlabelled inputs from few labels: against as many, and twice as many, drawn at random; and from none.

    python benchmarks/peers/few_labels.py [--data DATA] [--cache FOLDER] [--nets ResN-svhn …] [--repeats 2000]

few_labels.csv, by net and number of labels: the mean width of the interval and how often it holds the true accuracy
("coverage"), over `repeats` draws of the plan, beside as many ("random") and twice as many ("twice random") labels
drawn at random; "width ratio" is against twice random, so at most 1 where half of the labels do. Strata and allocation
were settled on the three ResN ("settled"), the other six nets were seen only here ("judged").

label_free.csv: how far estimates without labels are off, in points, on 1,000 test images as they are and changed by
noise, darkness, low contrast and blur; confidence is known of 2,000 other test images.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import machine, write_rows
from net_outputs import answered, every, network, parser, pixels, tensor

from weakspot.classes import average_thresholded_confidence, difference_of_confidences
from weakspot.classes.metrics_labels import allocation, strata
from weakspot.statistics import stratified_share

LABELS = (100, 200, 400, 800)
SHIFTED, KNOWN = 1000, 2000


def softmax(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).double().softmax(1).numpy()


def intervals(net: str, kept: dict[str, np.ndarray], repeats: int) -> Iterator[dict[str, Any]]:
    ranked = np.sort(softmax(kept["test_logits"]), 1)
    uncertainty, wrong = 1 - (ranked[:, -1] - ranked[:, -2]), kept["test_logits"].argmax(1) != kept["labels"]
    truth, inputs = 1 - wrong.mean(), len(wrong)
    for labels in LABELS:
        stratum = strata(uncertainty, labels)
        taken, sizes = allocation(stratum, uncertainty, labels), np.bincount(stratum)
        right = np.bincount(stratum, ~wrong).astype(int)
        rng = np.random.default_rng(labels)
        drawn = np.stack(
            [rng.hypergeometric(r, n - r, t, repeats) for r, n, t in zip(right, sizes, taken, strict=True)], 1
        )
        found = {"plan": stratified_share(sizes, taken, drawn)}
        for name, number in (("random", labels), ("twice random", 2 * labels)):
            some = rng.hypergeometric(right.sum(), wrong.sum(), number, repeats)[:, None]
            found[name] = stratified_share([inputs], [number], some)
        told: dict[str, Any] = {"net": net, "use": "settled" if net.startswith("ResN") else "judged", "labels": labels}
        for name, (value, (low, high)) in found.items():
            told |= {f"{name} width": round(float((high - low).mean()), 4)}
            told |= {f"{name} coverage": round(float(((low <= truth) & (truth <= high)).mean()), 4)}
            told |= {
                f"{name} bias": round(float(value.mean() - truth), 5),
                f"{name} deviation": round(float(value.std()), 5),
            }
        ratio = (found["plan"][1].high - found["plan"][1].low).mean()
        ratio /= (found["twice random"][1].high - found["twice random"][1].low).mean()
        yield {**told, "width ratio": round(float(ratio), 4), "repeats": repeats}


def changed(images: torch.Tensor) -> dict[str, torch.Tensor]:
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    return {
        "as they are": images,
        "noise": (images + 0.1 * noise).clamp(0, 1),
        "dark": images * 0.5,
        "low contrast": (images - 0.5) * 0.4 + 0.5,
        "blur": torch.nn.functional.avg_pool2d(images, 3, 1, 1, count_include_pad=False),
    }


def label_free(net: str, kept: dict[str, np.ndarray], options: Any) -> Iterator[dict[str, Any]]:
    images, labels = pixels(net.split("-")[1], options.data)
    model = network(net, options.device)
    logits = kept["test_logits"][-KNOWN:]
    known, right = softmax(logits).max(1), logits.argmax(1) == labels[-KNOWN:]
    for change, inputs in changed(tensor(images[:SHIFTED])).items():
        logits = answered(model, inputs, options.device)["logits"]
        confidence, truth = softmax(logits).max(1), (logits.argmax(1) == labels[:SHIFTED]).mean()
        said = {
            "average_confidence": confidence.mean(),
            "thresholded_confidence": average_thresholded_confidence(confidence, known, right),
            "confidence_difference": difference_of_confidences(confidence, known, right),
            "accuracy of known": right.mean(),
        }
        yield {
            "net": net, "change": change, "accuracy": round(100 * float(truth), 2),
            **{name: round(100 * float(value - truth), 2) for name, value in said.items()},
        }  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=2000)
    arguments.add_argument("--only-intervals", action="store_true")
    options = arguments.parse_args()
    here, where = Path(__file__).parent, {"machine": machine(options.device)}
    nets = list(every(options))
    write_rows(
        here / "few_labels.csv",
        [{**row, **where} for net, kept in nets for row in intervals(net, kept, options.repeats)],
    )
    rows = []
    for net, kept in [] if options.only_intervals else nets:
        rows += [{**row, **where} for row in label_free(net, kept, options)]
        print(rows[-1], file=sys.stderr, flush=True)
    if rows:
        write_rows(here / "label_free.csv", rows)


if __name__ == "__main__":
    main()
