"""From counts of inputs per target to coverage: the number, its growth with more inputs, and what is still unseen.

Coverage is not a verdict on a test set: published work disputes that it measures quality. So it comes with its curve,
with an estimate of what more inputs of the same kind would add, and beside what as many training inputs cover.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation, Setting
from weakspot.core.taps import Layout
from weakspot.statistics.rarefaction import UnseenTargets, expected_coverage, unseen_targets


def saturation_sizes(inputs: int, points: int = 64) -> np.ndarray:
    """Sizes from 1 to all inputs at which the curve is given, closer together where it rises fastest."""
    return np.unique(np.round(np.geomspace(1, inputs, min(points, inputs))).astype(np.int64))


def coverage_summary(
    counts: np.ndarray, inputs: int, *, targets: int | None = None, baseline: Finding | None = None
) -> dict[str, Estimate]:
    """Covered share beside that of a random half and of training inputs, and Chao2's estimate of the unseen.

    targets: how many there are, where `counts` leaves out those never reached.
    baseline: the Finding of the same criterion over training inputs.
    """
    return {
        **coverage_estimates(counts, inputs, targets=targets, baseline=baseline),
        "targets": Estimate(counts.size if targets is None else targets, about="targets that can be covered"),
        "inputs": Estimate(inputs, about="samples examined"),
    }


def coverage_estimates(
    counts: np.ndarray,
    inputs: int,
    *,
    prefix: str = "",
    of: str = "targets",
    targets: int | None = None,
    baseline: Finding | None = None,
) -> dict[str, Estimate]:
    """The estimates of one criterion, their names beginning with `prefix`; `of` says in words what its targets are."""
    every, half = counts.size if targets is None else targets, max(1, inputs // 2)
    estimates = {
        "coverage": Estimate(
            int(np.count_nonzero(counts)) / every, about=f"share of the {of} that at least one input covers"
        ),
        "coverage_of_half": Estimate(
            float(expected_coverage(counts, inputs, np.array([half]), targets=targets)[0]),
            about="share that a random half of the inputs covers, averaged over all halves",
        ),
    }
    if baseline is not None:
        number = baseline.summary["inputs"].value
        about = f"share that {number} training inputs, drawn at random, cover"
        estimates["coverage_of_training"] = Estimate(baseline.summary[f"{prefix}coverage"].value, about=about)
    about = f"share of the {of} that more inputs of the same kind would add (Chao2 estimate)"
    estimates["unseen"] = unseen_estimate(unseen_targets(counts, inputs, targets=targets), about, of=every)
    return {f"{prefix}{name}": estimate for name, estimate in estimates.items()}


def unseen_estimate(unseen: UnseenTargets, about: str, *, of: int = 1) -> Estimate:
    """The unseen, or their share `of` so many; none where nothing is known of them.

    Without an interval where the estimate is 0, since its variance is then no measure of doubt.
    """
    if np.isnan(unseen.unseen):
        return Estimate(None, about=f"{about}: not known from fewer than two inputs")
    if not unseen.variance:
        return Estimate(unseen.unseen / of, about=about)
    return Estimate(unseen.unseen / of, unseen.low / of, unseen.high / of, unseen.confidence, about)


def coverage_arrays(counts: np.ndarray, inputs: int, *, targets: int | None = None) -> dict[str, np.ndarray]:
    """The counts, and the exact saturation curve: mean coverage of random subsets of each size."""
    sizes = saturation_sizes(inputs)
    curve = expected_coverage(counts, inputs, sizes, targets=targets)
    return {"counts": counts, "curve_size": sizes, "curve_coverage": curve}


def smallest_type(counts: np.ndarray) -> np.ndarray:
    """The counts in the smallest type that holds them: there may be a thousand for every neuron."""
    return counts.astype(np.min_scalar_type(int(counts.max())))


def layer_columns(covered: np.ndarray, layout: Layout) -> dict[str, Any]:
    """Coverage layer by layer, from each neuron's covered share."""
    return {"layer": layout.labels, "neurons": layout.widths, "coverage": _layer_shares(covered, layout)}


def _layer_shares(covered: np.ndarray, layout: Layout) -> list[float]:
    return [float(covered[layout.layer_of == layer].mean()) for layer in range(len(layout.points))]


def class_rows(seen: Observation, classes: Sequence[str]) -> list[Tensor]:
    """Which samples are predicted as each of the classes asked for, boolean, (samples,) each."""
    if not classes:
        return []
    setting, predicted = seen.seen.setting, seen.predicted
    if setting.task not in ("classification", "multilabel"):
        raise ConfigError(f"classes were asked for, and a {setting.task} subject has none: leave the option out")
    numbers = [_class_number(setting, name, seen.outputs.shape[1]) for name in classes]
    return [predicted == number if predicted.ndim == 1 else predicted[:, number] for number in numbers]


def _class_number(setting: Setting, name: str, outputs: int) -> int:
    names = list(setting.classes or map(str, range(outputs)))
    if str(name) not in names:
        raise ConfigError(f"no class is called {name!r}: there are {', '.join(names[:20])}")
    return names.index(str(name))


def with_classes(samples: int, rows: Sequence[Tensor]) -> Tensor:
    """The number of all samples, then of those predicted as each class asked for, int64, (1 + classes,)."""
    if not rows:
        return torch.tensor([samples])
    return torch.stack([torch.full((), samples, device=rows[0].device), *(of_class.sum() for of_class in rows)])


def class_parts(
    counts: np.ndarray, inputs: np.ndarray, classes: Sequence[str], layout: Layout
) -> tuple[dict[str, Estimate], dict[str, list[float]], dict[str, np.ndarray]]:
    """What a Finding says of the classes asked for: summary, columns by layer, arrays; nothing where none was.

    counts: (classes, neurons, …), inputs: (classes,).
    """
    if not classes:
        return {}, {}, {}
    summary = {
        f"coverage, predicted {name}": Estimate(
            float((reached_by > 0).mean()), about=f"by the {number} inputs predicted as {name} alone"
        )
        for name, reached_by, number in zip(classes, counts, inputs.tolist(), strict=True)
    }
    reached = (counts > 0).reshape(len(classes), layout.neurons, -1).mean(2)
    columns = {
        f"coverage, predicted {name}": _layer_shares(reached_by, layout)
        for name, reached_by in zip(classes, reached, strict=True)
    }
    return summary, columns, {"class_counts": counts, "class_inputs": inputs}
