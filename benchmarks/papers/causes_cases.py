"""What the cases of HUDD share: a case, its Table 1 row, and how small nets are trained.

The cases are in causes_eyes.py, causes_signs.py and causes_faces.py; causes_retraining.py runs them, causes_repeats.py
retrains.
"""

import csv
import sys
import tempfile
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

from weakspot import ExecutionOptions, Finding, Run, Subject, examine
from weakspot.causes.room import steps
from weakspot.core.plan import Plan
from weakspot.core.source import Source, Subset
from weakspot.repair import CachedSource, Predictions

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """A net, its data (train, test, fresh test, pool) and how root causes are asked for.

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


def name_of(kind: str, seed: int) -> str:
    """What a case is called: nets of other seeds than 0 are further nets of a kind."""
    return f"{kind}, net {seed}" if seed else kind


def weights_of(folder: Path, name: str, seed: int) -> Path:
    """Where the weights of a case's net are, or will be."""
    return folder / f"causes_{name}{f'_{seed}' if seed else ''}.safetensors"


def kept(data: Mapping[str, Source], device: str) -> dict[str, Source]:
    """Every split read once, and kept where it is trained on."""
    return {name: CachedSource(source, device=device) for name, source in data.items()}


def chosen(case: Case, budget: int) -> tuple[Finding, Finding, float | None]:
    """Root causes of the test set, the unsafe set of the pool, and which keypoint errors are wrong."""
    asked = steps({**case.options, "slices": False, "select": {"from": "pool", "budget": budget}})
    with tempfile.TemporaryDirectory() as folder:
        run, how = Run.create(Path(folder) / "run"), ExecutionOptions(batch_size=128)
        errors, causes, unsafe = Plan.of(asked).run(case.subject, case.data, run, execution=how)
    limit = errors.summary.get("threshold")
    return causes, unsafe, None if limit is None else float(limit.value)


def figure(subject: Subject, source: Source) -> float:
    """Accuracy, or the mean error of each sample's worst keypoint."""
    told = examine(subject, source, [Predictions()], execution=ExecutionOptions(batch_size=512))[0].summary
    return round(float(told["accuracy" if "accuracy" in told else "error"].value), 4)


def failing(case: Case, source: Source, threshold: float | None) -> float:
    """The share of the samples that the net fails on."""
    table = examine(case.subject, source, [Predictions()], execution=ExecutionOptions(batch_size=512))[0].table
    assert table is not None
    if threshold is None:
        return round(1 - float(np.mean(table["correct"].to_numpy(zero_copy_only=False))), 4)
    return round(float(np.mean(table["error"].to_numpy() > threshold)), 4)


def table_row(case: Case) -> dict[str, Any]:
    """Table 1 and RQ1: errors, clusters, how few images to look at, how many clusters share a parameter."""
    causes, unsafe, limit = chosen(case, case.budgets[0])
    told, pool = causes.summary, case.data["pool"]
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
        "failing_pool": failing(case, pool, limit),
        "machine": machine(case.device),
    }


def _interval(told: Any) -> str:
    if told.value is None:
        return ""
    return f"{told.value:.3f} ({told.low:.3f} to {told.high:.3f})" if told.low is not None else f"{told.value:.3f}"


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to a CSV, and print them."""
    there = read_rows(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows([*there, *rows])
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
