"""The result of an attack for each sample: whether it succeeded, and how large the change is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from weakspot.core.finding import Estimate, Finding
from weakspot.estimates import interval_estimate, share_of
from weakspot.statistics import bootstrap_interval
from weakspot.statistics.intervals import too_few_to_resample

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "attack_"
"""Of the columns that an attacked set adds to the metadata."""
_CONFIDENCE = 0.95


def distortion(originals: Tensor, changed: Tensor) -> dict[str, Tensor]:
    """How far each sample was changed: L0 = numbers that differ, L2 = √Σ d², Linf = max |d|; float64, (samples,).

    >>> import torch
    >>> distortion(torch.zeros(1, 3), torch.tensor([[0.0, 3.0, -4.0]]))["l2"].item()
    5.0
    """
    difference = (changed.double() - originals.double()).flatten(1)
    return {
        "l0": (difference != 0).sum(1).double(),
        "l2": difference.square().sum(1).sqrt(),
        "linf": difference.abs().amax(1),
    }


@dataclass(frozen=True)
class Outcome:
    """One row per sample of an attacked set, in its order.

    columns: `l0`, `l2`, `linf`; for classes and labels `before` (the prediction was as the attack wants without it) and
        `success` (it is now); for numbers and maps `loss_before` and `loss_after`.
    """

    ids: Sequence[str]
    columns: Mapping[str, np.ndarray]

    @property
    def metadata(self) -> dict[str, np.ndarray]:
        """The columns as an attacked source hands them to an examination: `attack_success`, `attack_l2` …"""
        return {PREFIX + name: column for name, column in self.columns.items()}

    def summary(self) -> dict[str, Estimate]:
        """Success rates with Wilson's interval, and the mean distortion of the successes with a bootstrap over them."""
        if "success" not in self.columns:
            rises = [("loss before", "loss_before"), ("loss after", "loss_after")]
            return {name: _mean(self.columns[column], name) for name, column in rises} | self._distances(slice(None))
        success, before = self.columns["success"], self.columns["before"]
        turned = success & ~before
        return {
            "success": _share(success, "samples predicted as the attack wants"),
            "success before": _share(before, "of them without an attack"),
            "turned": _share(turned[~before], "of the others, those that the attack turned"),
            **self._distances(turned),
        }

    def table(self) -> "pa.Table":
        """The same as a table, with the ids."""
        import pyarrow as pa

        return pa.table({"id": list(self.ids), **self.columns})

    def finding(self, name: str = "attack", about: str = "") -> Finding:
        """The outcome as a Finding, to be kept in a Run beside the examinations of the set."""
        return Finding(name=name, about=about, summary=self.summary(), table=self.table())

    def _distances(self, rows: "np.ndarray | slice") -> dict[str, Estimate]:
        kind = "mean distortion of the turned samples" if "success" in self.columns else "mean distortion"
        return {name: _mean(self.columns[name][rows], kind) for name in ("l0", "l2", "linf")}


def _share(rows: np.ndarray, about: str) -> Estimate:
    return share_of(rows, about, confidence=_CONFIDENCE)


def _mean(values: np.ndarray, about: str) -> Estimate:
    if not len(values):
        return Estimate(None, about=about)
    few = too_few_to_resample(len(values), "samples")
    if few:
        return Estimate(float(values.mean()), about=f"{about}; {few}")
    interval = bootstrap_interval(lambda drawn: values[drawn].mean(), len(values), seed=0, confidence=_CONFIDENCE)
    return interval_estimate(values.mean(), interval, about, confidence=_CONFIDENCE)
