"""The result of an attack for each sample: whether it succeeded, and how large the change is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from weakspot.core.finding import Estimate, Finding
from weakspot.core.groups import Groups
from weakspot.estimates import interval_estimate, share_of
from weakspot.statistics import bootstrap_interval
from weakspot.statistics.clustered import grouped_mean_interval
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
    groups: Groups | None = None
    """What the samples belong to, where some belong together: intervals then go by group."""

    @property
    def metadata(self) -> dict[str, np.ndarray]:
        """The columns as an attacked source hands them to an examination: `attack_success`, `attack_l2` …"""
        return {PREFIX + name: column for name, column in self.columns.items()}

    def summary(self) -> dict[str, Estimate]:
        """Success rates with Wilson's interval, and the mean distortion of the successes with a bootstrap over them."""
        if "success" not in self.columns:
            rises = [("loss before", "loss_before"), ("loss after", "loss_after")]
            everything = np.ones(len(self.ids), dtype=bool)
            losses = {name: self._mean(column, everything, name) for name, column in rises}
            return losses | self._distances(everything)
        success, before = self.columns["success"], self.columns["before"]
        turned, everything = success & ~before, np.ones(len(success), dtype=bool)
        return {
            "success": self._share(success, everything, "samples predicted as the attack wants"),
            "success before": self._share(before, everything, "of them without an attack"),
            "turned": self._share(turned, ~before, "of the others, those that the attack turned"),
            **self._distances(turned),
        }

    def table(self) -> "pa.Table":
        """The same as a table, with the ids."""
        import pyarrow as pa

        return pa.table({"id": list(self.ids), **self.columns})

    def finding(self, name: str = "attack", about: str = "") -> Finding:
        """The outcome as a Finding, to be kept in a Run beside the examinations of the set."""
        return Finding(name=name, about=about, summary=self.summary(), table=self.table())

    def _share(self, flags: np.ndarray, among: np.ndarray, about: str) -> Estimate:
        return share_of(flags[among], about, groups=self._belongs(among), confidence=_CONFIDENCE)

    def _mean(self, column: str, among: np.ndarray, about: str) -> Estimate:
        return _mean(self.columns[column][among], about, self._belongs(among))

    def _belongs(self, among: np.ndarray) -> np.ndarray | None:
        return None if self.groups is None else self.groups.names[among]

    def _distances(self, rows: np.ndarray) -> dict[str, Estimate]:
        kind = "mean distortion of the turned samples" if "success" in self.columns else "mean distortion"
        return {name: self._mean(name, rows, kind) for name in ("l0", "l2", "linf")}


def _mean(values: np.ndarray, about: str, groups: np.ndarray | None) -> Estimate:
    if not len(values):
        return Estimate(None, about=about)
    few = too_few_to_resample(len(values), "samples")
    if few:
        return Estimate(float(values.mean()), about=f"{about}; {few}")
    if groups is not None:
        interval = grouped_mean_interval(values, groups, confidence=_CONFIDENCE)
        return interval_estimate(values.mean(), interval, about, confidence=_CONFIDENCE)
    interval = bootstrap_interval(lambda drawn: values[drawn].mean(), len(values), seed=0, confidence=_CONFIDENCE)
    return interval_estimate(values.mean(), interval, about, confidence=_CONFIDENCE)
