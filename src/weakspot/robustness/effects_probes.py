"""Which variations make inputs weak: the share of correct looks over the range of each quantity, and by kind.

After Zhong et al. 2021 (`zhong2021`); the tolerance after DeepTest, Tian et al. 2018.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe
from weakspot.core.state import Sum
from weakspot.core.tasks import Task
from weakspot.looks import Neighbour, Rotate, Shift, Variation
from weakspot.robustness.analysis import effects_table, kind_estimates
from weakspot.robustness.finding_outputs import TOLERANCE_EFFECTS, VARIATION_EFFECTS
from weakspot.robustness.probes import ToleranceProbe
from weakspot.robustness.quantities import drawn_quantities, kind_name


class VariationEffects(Probe):
    """Which variation lowers accuracy most: accuracy over the range of each quantity, with the others at random.

    The marginal effect of a quantity is the accuracy in its best bin less that in its worst. Kinds of variation that
    take turns, such as rain or fog, are told apart.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    bins: into how many bins the range of each quantity is cut.
    seed: of the random variations.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")
    outputs = VARIATION_EFFECTS

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    bins: int = 8
    seed: int = 0

    bin_looks = Sum()
    """Looks per quantity and bin."""
    bin_correct = Sum()
    """Correct looks per quantity and bin."""
    kind_looks = Sum()
    """Looks per kind of variation, where several take turns, and correct ones among them; shape (kinds, 2)."""

    def __post_init__(self) -> None:
        if self.looks < 1 or self.bins < 2:
            raise ConfigError(f"expected looks ≥ 1 and bins ≥ 2, got {self.looks} and {self.bins}")

    @property
    def _look(self) -> Neighbour:
        return Neighbour(self.variation, self.seed)

    @property
    def needs(self) -> Needs:
        """The neighbours."""
        return Needs(looks={self._look: self.looks})

    @cached_property
    def _quantities(self) -> dict[tuple[str, str], tuple[int, np.ndarray]]:
        """The row of each quantity, by name and unit, with the borders of its bins."""
        edges: dict[tuple[str, str], np.ndarray] = {}
        for number in self._look.numbers(self.looks):
            for quantity in drawn_quantities(self._look.at(number)):
                edges.setdefault((quantity.name, quantity.unit), quantity.edges(self.bins))
        return {key: (row, borders) for row, (key, borders) in enumerate(edges.items())}

    @cached_property
    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(kind_name(self._look.at(number)) for number in self._look.numbers(self.looks)))

    def observe(self, seen: Observation) -> None:
        """Count looks and correct looks by kind of variation, and by the bin of every quantity."""
        looks, correct_looks = np.zeros((2, len(self._quantities), self.bins), dtype=np.int64)
        parameters, correct = self._look.drawn(seen.ids, seen.number).numpy(), self.correct(seen)
        for quantity in drawn_quantities(self._look.at(seen.number)):
            row, bins = self._quantities[quantity.name, quantity.unit][0], quantity.bins(parameters, self.bins)
            looks[row] += np.bincount(bins, minlength=self.bins)
            correct_looks[row] += np.bincount(bins[correct], minlength=self.bins)
        self.bin_looks = self.bin_looks + self.bin_looks.new_tensor(looks)
        self.bin_correct = self.bin_correct + self.bin_correct.new_tensor(correct_looks)
        counts = np.zeros((len(self._kinds), 2), dtype=np.int64)
        counts[self._kinds.index(kind_name(self._look.at(seen.number)))] = len(correct), correct.sum()
        self.kind_looks = self.kind_looks + self.kind_looks.new_tensor(counts)

    def correct(self, seen: Observation) -> np.ndarray:
        """Which predictions are correct, one by one."""
        return seen.correct_array

    def finish(self) -> Finding:
        """One row per quantity and bin; the quantities by their effect."""
        quantities = [(name, unit, edges) for (name, unit), (_, edges) in self._quantities.items()]
        kinds = kind_estimates(self._kinds, self.kind_looks.numpy()) if len(self._kinds) > 1 else {}
        if not quantities:
            return self.finding(summary=kinds)
        summary, table = effects_table(quantities, self.bin_looks.numpy(), self.bin_correct.numpy())
        return self.finding(summary={**summary, **kinds}, table=table)


class ToleranceEffects(ToleranceProbe, VariationEffects):
    """Which variation hurts a regression most: rain and fog apart, each over its range, with the others at random.

    A prediction counts as correct as in `NeighbourTolerance`: if its squared error is within a multiple of the training
    data's.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    bins: into how many bins the range of each quantity is cut.
    seed: of the random variations.
    tolerance: how many times the training data's mean squared error still counts as correct.
    trained: the Finding of `SquaredError`.
    """

    outputs = TOLERANCE_EFFECTS
