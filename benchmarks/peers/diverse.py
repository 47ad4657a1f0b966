"""Unsure and diverse against unsure alone: errors and kinds of errors found per label, on the nine shared nets.

    python benchmarks/peers/diverse.py [--data DATA] [--cache FOLDER] [--nets ResN-svhn …]

A pool is 2,000 test images, drawn five times; as they are ("single"), or as a film would show them: 400 images, each
five times ("frames"; the same values, so a lower bound of how alike frames are). diverse.csv holds, by net, pool,
ranking and budget, the mean number of errors found, of different images among them, and of kinds of errors: a class
taken for another. The rule was settled on the three ResN, the other six nets were seen only here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import machine, write_rows
from net_outputs import every, parser

from weakspot.coverage import diverse_order
from weakspot.coverage.metrics_confidence import SURE, confidence_scores
from weakspot.coverage.metrics_ranking import score_order

BUDGETS, POOL, DRAWS, FRAMES = (50, 100, 200), 2000, 5, 5


def measured(net: str, kept: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    logits, labels = kept["test_logits"], kept["labels"]
    scores = confidence_scores(torch.from_numpy(logits).double().softmax(1))
    unsure = {name: (1 - score if name in SURE else score).numpy() for name, score in scores.items()}
    kind = np.where(logits.argmax(1) != labels, labels * logits.shape[1] + logits.argmax(1), -1)
    for pool in ("single", "frames"):
        found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for draw in range(DRAWS):
            rng = np.random.default_rng(draw)
            chosen = rng.permutation(len(labels))[: POOL if pool == "single" else POOL // FRAMES]
            rows = np.sort(np.tile(chosen, 1 if pool == "single" else FRAMES))
            orders = {name: score_order(score[rows], rank=np.arange(len(rows))) for name, score in unsure.items()}
            orders["random"] = rng.permutation(len(rows))
            for budget in BUDGETS:
                orders["diverse"] = diverse_order(unsure["deep_gini"][rows], kept["test_features"][rows], budget=budget)
                for name, order in orders.items():
                    first = rows[order[:budget]]
                    wrong = first[kind[first] >= 0]
                    counted = len(wrong), len(np.unique(wrong)), len(np.unique(kind[wrong]))
                    found.setdefault((name, budget), []).append(counted)
        for (name, budget), counts in found.items():
            errors, images, kinds = np.mean(counts, 0).round(2).tolist()
            yield {"net": net, "use": "settled" if net.startswith("ResN") else "judged", "pool": pool, "ranking": name,
                   "budget": budget, "errors": errors, "different_images": images, "kinds": kinds}  # fmt: skip


def main() -> None:
    options = parser(__doc__).parse_args()
    where = {"machine": machine("cpu")}
    rows = [{**row, **where} for net, kept in every(options) for row in measured(net, kept)]
    write_rows(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
