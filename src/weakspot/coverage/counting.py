"""From counts of inputs per target to coverage: the number, its growth with more inputs, and what is still unseen.

Coverage is not a verdict on a test set: published work disputes that it measures quality. So it comes with its curve
and with an estimate of what more inputs of the same kind would add.
"""

from typing import Any

import numpy as np

from weakspot.core.finding import Estimate
from weakspot.core.taps import Layout
from weakspot.statistics.rarefaction import UnseenTargets, expected_coverage, unseen_targets


def saturation_sizes(inputs: int, points: int = 64) -> np.ndarray:
    """Sizes from 1 to all inputs at which the curve is given, closer together where it rises fastest."""
    return np.unique(np.round(np.geomspace(1, inputs, min(points, inputs))).astype(np.int64))


def coverage_summary(counts: np.ndarray, inputs: int) -> dict[str, Estimate]:
    """Covered share, the share that a random half of the inputs covers, and Chao2's estimate of the unseen."""
    half = max(1, inputs // 2)
    return {
        "coverage": Estimate(float((counts > 0).mean()), about="share of the targets that at least one input reaches"),
        "coverage_of_half": Estimate(
            float(expected_coverage(counts, inputs, np.array([half]))[0]),
            about="share that a random half of the inputs reaches, on average over all halves",
        ),
        "unseen": _unseen_share(unseen_targets(counts, inputs), counts.size),
        "targets": Estimate(int(counts.size), about="what could be reached"),
        "inputs": Estimate(inputs, about="samples examined"),
    }


def _unseen_share(unseen: UnseenTargets, targets: int) -> Estimate:
    """As a share; without an interval where the estimate is 0, since its variance is then no measure of doubt."""
    about = "share of the targets that more inputs of the same kind would still reach (Chao2)"
    if not unseen.variance:
        return Estimate(unseen.unseen / targets, about=about)
    return Estimate(unseen.unseen / targets, unseen.low / targets, unseen.high / targets, unseen.confidence, about)


def coverage_arrays(counts: np.ndarray, inputs: int) -> dict[str, np.ndarray]:
    """The counts, and the exact saturation curve: mean coverage of random subsets of each size."""
    sizes = saturation_sizes(inputs)
    return {"counts": counts, "curve_size": sizes, "curve_coverage": expected_coverage(counts, inputs, sizes)}


def layer_columns(covered: np.ndarray, layout: Layout) -> dict[str, Any]:
    """Coverage layer by layer, from each neuron's covered share."""
    layers = np.arange(len(layout.points))
    shares = [float(covered[layout.layer_of == layer].mean()) for layer in layers]
    return {"layer": layout.labels, "neurons": layout.widths, "coverage": shares}
