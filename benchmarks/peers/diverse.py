"""Unsure and diverse against unsure alone: errors, kinds and causes of errors found per label.

    python benchmarks/peers/diverse.py [--data DATA] [--cache FOLDER] [--nets ResN-svhn …]
    python benchmarks/peers/diverse.py --planted [--seeds 2]

A pool is 2,000 test images, drawn five times; as they are ("single"), or as a film would show them: 400 images, each
five times ("frames"; the same values, so a lower bound of how alike frames are). diverse.csv holds, by net, pool,
ranking and budget, the mean number of errors found, of different images among them, and of kinds of errors: a class
taken for another. The rule was settled on the three ResN, the other six nets were seen only here.

With --planted, nets of signs and house numbers with several planted causes of errors (the scenarios of
benchmarks/causes_planted that have more than one) are trained and judged the same way, and `causes` is the mean number
of planted causes that are found: three errors or more among the first ones have it. The pool of frames has some images
of each cause, five times each. The rows of the other run stay.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import machine, read_rows, write_rows
from net_outputs import every, parser

from weakspot.coverage import diverse_order
from weakspot.coverage.metrics_confidence import SURE, confidence_scores
from weakspot.coverage.metrics_ranking import score_order

BUDGETS, POOL, DRAWS, FRAMES = (50, 100, 200), 2000, 5, 5
FEW = 3
"""Errors with a cause that somebody would have to see to name it."""
PLANTED = ("conditions", "unnoted conditions", "unseen", "two at once", "overexposed and far")
COLUMNS = ("net", "use", "pool", "ranking", "budget", "errors", "different_images", "kinds", "causes", "of_causes",
           "machine")  # fmt: skip


def measured(
    net: str, kept: dict[str, np.ndarray], causes: Mapping[str, np.ndarray] | None = None
) -> Iterator[dict[str, Any]]:
    logits, labels = kept["test_logits"], kept["labels"]
    scores = confidence_scores(torch.from_numpy(logits).double().softmax(1))
    unsure = {name: (1 - score if name in SURE else score).numpy() for name, score in scores.items()}
    kind = np.where(logits.argmax(1) != labels, labels * logits.shape[1] + logits.argmax(1), -1)
    for pool in ("single", "frames"):
        found: dict[tuple[str, int], list[tuple[int, ...]]] = {}
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
                    seen = sum(where[np.unique(wrong)].sum() >= FEW for where in (causes or {}).values())
                    counted = len(wrong), len(np.unique(wrong)), len(np.unique(kind[wrong])), int(seen)
                    found.setdefault((name, budget), []).append(counted)
        for (name, budget), counts in found.items():
            errors, images, kinds, seen = np.mean(counts, 0).round(2).tolist()
            more = {"kinds": kinds} if causes is None else {"kinds": kinds, "causes": seen, "of_causes": len(causes)}
            yield {"net": net, "use": "settled" if net.startswith("ResN") else "judged", "pool": pool, "ranking": name,
                   "budget": budget, "errors": errors, "different_images": images, **more}  # fmt: skip


def planted(seeds: int) -> Iterator[dict[str, Any]]:
    """Nets of every scenario with several causes."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "causes_planted"))
    import scenarios

    for name in PLANTED:
        for seed in range(seeds):
            made = {**scenarios.SCENARIOS, **scenarios.ASIDE}[name](seed)
            net, (images, labels) = scenarios.trained(made, seed), made.test
            with torch.inference_mode():
                features = torch.nn.Sequential(*list(net)[:-1])(images)
                kept = {"test_logits": net[-1](features).numpy(), "test_features": features.numpy()}
            print(name, seed, file=sys.stderr, flush=True)
            yield from measured(f"planted: {name} {seed}", {**kept, "labels": labels.numpy()}, made.causes)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--planted", action="store_true")
    arguments.add_argument("--seeds", type=int, default=2)
    options, path = arguments.parse_args(), Path(__file__).with_suffix(".csv")
    where = {"machine": machine("cpu")}
    asked = planted(options.seeds) if options.planted else (
        row for net, kept in every(options) for row in measured(net, kept)
    )  # fmt: skip
    rows = [{**row, **where} for row in asked]
    others = [row for row in read_rows(path) if row["net"].startswith("planted") != options.planted]
    write_rows(path, [*others, *rows] if options.planted else [*rows, *others], columns=COLUMNS)


if __name__ == "__main__":
    main()
