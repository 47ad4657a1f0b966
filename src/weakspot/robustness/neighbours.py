"""Neighbour accuracy: which inputs are answered rightly only by luck? (Zhong et al. 2021, DeepRobust)"""

from collections.abc import Sequence

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.looks.variations import Neighbour, Rotate, Shift, Variation
from weakspot.statistics.intervals import wilson_interval


class NeighbourAccuracy(Probe):
    """Share of an input's variations, itself included, that the model answers rightly; weak at or below a cutoff.

    neighbour accuracy = (rightly answered among the original and m neighbours) / (m + 1). An input is released as soon
    as the remaining looks cannot change its verdict; `at_least` and `at_most` then bound its accuracy over all looks.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    release: whether to stop looking at an input once its verdict is settled; without it accuracy is exact.
    seed: of the draws; with it and the input's id any neighbour can be made again.
    """

    tasks = ("classification",)

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    cutoff: float = 0.75
    release: bool = True
    seed: int = 0

    tally = Rows()

    def __post_init__(self) -> None:
        if self.looks < 1 or not 0 <= self.cutoff < 1:
            raise ConfigError(f"expected looks ≥ 1 and 0 ≤ cutoff < 1, got {self.looks} and {self.cutoff}")

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})

    def observe(self, seen: Observation) -> Sequence[str] | None:
        """Count the right answers; release those whose verdict is settled."""
        if seen.number == 0:
            self._begin(seen)
        rows = np.array([self._row[name] for name in seen.ids])
        self._right[rows] += (seen.predicted == seen.targets).cpu().numpy()
        self._used[rows] += 1
        if not self.release:
            return None
        at_least, at_most = accuracy_bounds(self._right[rows], self._used[rows], self.looks + 1)
        settled = (at_least > self.cutoff) | (at_most <= self.cutoff)
        return [name for name, over in zip(seen.ids, settled, strict=True) if over]

    def _begin(self, seen: Observation) -> None:
        self._row = {name: row for row, name in enumerate(seen.ids)}
        self._right = np.zeros(len(seen.ids), dtype=np.int64)
        self._used = np.zeros(len(seen.ids), dtype=np.int64)
        self._target, self._predicted = seen.targets, seen.predicted

    def close(self, ids: Sequence[str]) -> None:
        """Keep the tallies of the batch."""
        self.tally.append(
            ids, right=self._right, used=self._used, target=self._target.long(), predicted=self._predicted.long()
        )

    def finish(self) -> Finding:
        """The verdict of every input, the weakest first; the share of weak ones, and how many looks it took."""
        rows = self.tally.read()
        right, used, target, predicted = (np.asarray(rows[key]) for key in ("right", "used", "target", "predicted"))
        at_least, at_most = accuracy_bounds(right, used, self.looks + 1)
        weak = at_most <= self.cutoff
        columns = {
            "id": np.array(rows.ids),
            "weak": weak,
            "at_least": at_least,
            "at_most": at_most,
            "looks_used": used,
            "right": right,
            "target": self._named(target),
            "predicted": self._named(predicted),
        }
        order = np.lexsort((columns["id"], at_least, at_most))
        table = {name: column[order] for name, column in columns.items()}
        return self.finding(summary=self._summary(weak, used, target == predicted), table=table)

    def _named(self, numbers: np.ndarray) -> np.ndarray:
        classes = self.setting.classes
        if classes is None:
            return numbers
        if numbers.max(initial=0) >= len(classes) or numbers.min(initial=0) < 0:
            raise DataError(
                f"expected class numbers from 0 to {len(classes) - 1}, got {numbers.min()} to {numbers.max()}: give "
                "the subject all its classes, or correct the targets"
            )
        return np.asarray(np.array(classes)[numbers])

    def _summary(self, weak: np.ndarray, used: np.ndarray, correct: np.ndarray) -> dict[str, Estimate]:
        low, high = wilson_interval(int(weak.sum()), len(weak))
        return {
            "weak_share": Estimate(
                float(weak.mean()), float(low), float(high), 0.95, about="share of the inputs that are weak"
            ),
            "lucky": Estimate(int((weak & correct).sum()), about="inputs answered rightly as they are, yet weak"),
            "accuracy": Estimate(float(correct.mean()), about="share of the inputs answered rightly as they are"),
            "looks_per_input": Estimate(float(used.mean()), about=f"of {self.looks + 1} possible"),
            "inputs": Estimate(len(weak), about="samples examined"),
        }


def accuracy_bounds(right: np.ndarray, used: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest accuracy over `total` looks, given that `right` of the first `used` were answered rightly.

    >>> accuracy_bounds(np.array([3]), np.array([4]), 8)
    (array([0.375]), array([0.875]))
    """
    return right / total, (right + total - used) / total
