"""What the cases of HUDD share: a case, its Table 1 row, its RQ2 rows, and how small nets are trained.

The cases are in causes_eyes.py, causes_signs.py and causes_faces.py; causes_retraining.py runs them.
"""

import csv
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import adjusted_rand_score
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine, read_rows

from weakspot import Execution, Finding, Run, Subject, examine
from weakspot.causes.room import steps
from weakspot.core.plan import Plan
from weakspot.core.source import Source, Subset
from weakspot.repair import Answers, Kept, Labelled, Recipe, RetrainingData, proved

METHODS = ("random images", "failing images", "random images repeated", "training set alone")
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A net, its data (train, test, fresh test, improvement) and how root causes are asked for.

    `planted` says which kind an image is of, where that is known. Root causes are found in the test set; the fresh test
    set plays no part in choosing anything.
    """

    name: str
    subject: Subject
    data: Mapping[str, Source]
    budgets: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    planted: Callable[[str], str] | None = None

    @property
    def device(self) -> str:
        return str(self.subject.device)


def fitted(
    net: nn.Module,
    source: Source,
    *,
    device: str,
    epochs: int,
    seed: int = 0,
    shift: int = 0,
    loss: Loss = F.cross_entropy,
    rate: float = 2e-3,
    weights: Path | None = None,
) -> nn.Module:
    """The net after Adam with a rate that falls to nothing; images moved by up to `shift` pixels.

    weights: a file; a net that is there is not trained again.
    """
    if weights is not None and weights.exists():
        net.load_state_dict(load_file(weights))
        return net.to(device).eval()
    torch.manual_seed(seed)
    net, batch = net.to(device), source.read(np.arange(len(source.ids))).to(torch.device(device))
    optimiser = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(batch)).split(64):
            moved = batch.inputs[rows.to(device)]
            if shift:
                moved = moved.roll(tuple(torch.randint(-shift, shift + 1, (2,)).tolist()), (2, 3))
            optimiser.zero_grad()
            loss(net(moved), batch.known_targets[rows.to(device)]).backward()
            optimiser.step()
        schedule.step()
    if weights is not None:
        save_file({name: value.cpu() for name, value in net.state_dict().items()}, weights)
    return net.eval()


def kept(data: Mapping[str, Source], device: str) -> dict[str, Source]:
    """Every split read once, and kept where it is trained on."""
    return {name: Kept(source, device=device) for name, source in data.items()}


def chosen(case: Case, budget: int, folder: Path) -> tuple[Finding, Finding, float | None]:
    """Root causes of the test set, the unsafe set of the improvement set, and which keypoint errors are wrong."""
    asked = steps({**case.options, "select": {"budget": budget}})
    run = Run.open(folder) if folder.exists() else Run.create(folder)
    errors, causes, unsafe = Plan.of(asked).run(case.subject, case.data, run, execution=Execution(batch_size=128))
    limit = errors.summary.get("threshold")
    return causes, unsafe, None if limit is None else float(limit.value)


def figure(subject: Subject, source: Source) -> float:
    """Accuracy, or the mean error of each sample's worst keypoint."""
    told = examine(subject, source, [Answers()], execution=Execution(batch_size=512))[0].summary
    return round(float(told["accuracy" if "accuracy" in told else "error"].value), 4)


def failing(case: Case, source: Source, threshold: float | None) -> float:
    """The share of the samples that the net fails on."""
    table = examine(case.subject, source, [Answers()], execution=Execution(batch_size=512))[0].table
    assert table is not None
    if threshold is None:
        return round(1 - float(np.mean(table["right"].to_numpy(zero_copy_only=False))), 4)
    return round(float(np.mean(table["error"].to_numpy() > threshold)), 4)


def table_row(case: Case, folder: Path) -> dict[str, Any]:
    """Table 1 and RQ1: errors, clusters, how few images to look at, how many clusters share a parameter."""
    causes, unsafe, limit = chosen(case, case.budgets[0], folder)
    told, pool = causes.summary, case.data["improvement"]
    ids, numbers = causes.arrays["image_id"].tolist(), np.asarray(causes.arrays["image_cluster"])
    truth = None if case.planted is None else [case.planted(name) for name in ids]
    return {
        "case": case.name,
        **{f"{name} images": len(source.ids) for name, source in case.data.items()},
        **{f"{name} figure": figure(case.subject, source) for name, source in case.data.items()},
        **{name: told[name].value for name in ("errors", "clusters", "stable_clusters", "layer", "images_to_inspect")},
        "share_to_inspect": round(told["share_to_inspect"].value, 4),
        **{name: _interval(told[name]) for name in ("reduced_clusters", "explained_clusters") if name in told},
        "ari_with_planted": "" if truth is None else round(float(adjusted_rand_score(truth, numbers)), 3),
        "chosen": unsafe.table.num_rows,
        "failing_chosen": failing(case, Subset.named(pool, unsafe.table["id"].to_pylist()), limit),
        "failing_improvement": failing(case, pool, limit),
        "machine": machine(case.device),
    }


def _interval(told: Any) -> str:
    if told.value is None:
        return ""
    return f"{told.value:.3f} ({told.low:.3f} to {told.high:.3f})" if told.low is not None else f"{told.value:.3f}"


def retraining_data(case: Case, causes: Finding, unsafe: Finding, test: str, limit: float | None) -> RetrainingData:
    """The unsafe set labelled with the truth, and the test images' clusters."""
    pool = case.data["improvement"]
    clusters = dict(zip(unsafe.table["id"].to_pylist(), unsafe.table["cluster"].to_pylist(), strict=True))
    places = [place for place, name in enumerate(pool.ids) if name in clusters]
    truth = pool.read(np.array(places)).known_targets.cpu().tolist()
    labels = {pool.ids[place]: target for place, target in zip(places, truth, strict=True)}
    members = zip(causes.arrays["image_id"].tolist(), causes.arrays["image_cluster"].tolist(), strict=True)
    own = dict(members) if test == "test" else {}
    return RetrainingData(Labelled(pool, labels), clusters, case.data[test], case.data["train"], pool, own, limit)


def retraining_rows(case: Case, budget: int, folder: Path, repeats: int) -> list[dict[str, Any]]:
    """RQ2: each method's figure after `repeats` trainings, on the test set and on the fresh one."""
    causes, unsafe, limit = chosen(case, budget, folder)
    rows = []
    for test in ("test", "fresh test"):
        made = proved(
            case.subject,
            retraining_data(case, causes, unsafe, test, limit),
            recipe=Recipe(),
            repeats=repeats,
            methods=METHODS,
            validation=0.0,
            checkpoints=folder / "trainings",  # the second test set finds the same models trained
        )
        rows += rows_of(made.finding, case=case.name, budget=unsafe.table.num_rows, asked=budget, test=test)
    return [{**row, "machine": machine(case.device)} for row in rows]


def rows_of(finding: Finding, **known: Any) -> list[dict[str, Any]]:
    """One row per method: the figure before and after, its spread, and the difference of the unsafe set to it."""
    told, rows = finding.summary, []
    added = dict(part.rsplit(" ", 1) for part in str(told["added"].value).split(", "))
    for method in dict.fromkeys(finding.table["method"].to_pylist()):
        key = "" if method == "unsafe set" else method.replace(" ", "_")
        scores = finding.arrays[f"after-{key or 'unsafe_set'}"].mean(1)
        over = told[f"over_{key}" if key else "difference"]
        rows.append(
            {
                **known,
                "method": method,
                "repeats": len(scores),
                "added": added[method],
                "before": round(told["before"].value, 4),
                "after": round(float(scores.mean()), 4),
                "standard_deviation": round(float(scores.std(ddof=1)), 4) if len(scores) > 1 else "",
                "unsafe_set_less": method if key else "before",
                "difference": round(over.value, 4),
                "low": round(over.low, 4),
                "high": round(over.high, 4),
                "verdict": told[f"verdict_{key}" if key else "verdict"].value,
            }
        )
    return rows


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to a CSV, and print them."""
    there = read_rows(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows([*there, *rows])
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
