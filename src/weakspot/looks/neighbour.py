"""A look at a random neighbour of a sample."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.look import Forward, Look
from weakspot.core.stateless_random import draw_keys_of_looks, uniform
from weakspot.looks.variations import Bounds, Variation, recalled


@dataclass(frozen=True)
class Neighbour(Look):
    """A look at a random neighbour of the sample: an image that a variation makes of it.

    bounds: what is black and what is white; the examination fills in the subject's.
    """

    variation: Variation
    seed: int = 0
    bounds: Bounds | None = field(default=None, compare=False)
    plain: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    @classmethod
    def of(cls, finding: Finding, *, bounds: Bounds | None = None) -> "Neighbour":
        """The look that a Finding was made with: with it, an id and a number any neighbour is made again."""
        parameters = finding.provenance.get("parameters", {})
        if "variation" not in parameters:
            raise ConfigError(f"the Finding {finding.name!r} was not made with neighbours: it names no variation")
        return cls(recalled(parameters["variation"]), parameters.get("seed", 0), bounds)

    def within(self, bounds: Bounds | None) -> "Neighbour":
        """The same look, knowing what is black and what is white."""
        self.variation.check_bounds(bounds)
        return replace(self, bounds=bounds)

    def at(self, number: int) -> Variation:
        """The variation of look `number`: where several take turns, the one whose turn it is."""
        return self.variation.at(number - self.first)

    def drawn(self, ids: Sequence[str], number: int) -> Tensor:
        """The parameters of look `number` at each sample; float64, one column per quantity of `at(number)`."""
        return self._drawn(self.at(number), ids, [number])

    def _drawn(self, variation: Variation, ids: Sequence[str], numbers: Sequence[int]) -> Tensor:
        chance = uniform(draw_keys_of_looks(ids, self.seed, numbers), variation.draws)
        return torch.from_numpy(variation.parameters(chance))

    def images(self, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """The neighbours themselves: look `number` at each of these samples."""
        return self.at(number).apply(inputs, self.drawn(ids, number), self.bounds)

    def several(self, forward: Forward, inputs: Tensor, ids: Sequence[str], numbers: Sequence[int]) -> Tensor:
        """Forward of all these neighbours at once; those that one variation makes are made at once too."""
        turns = [self.at(number) for number in numbers]
        made: list[Tensor] = [inputs] * len(numbers)
        for variation in dict.fromkeys(turns):
            same = [index for index, turn in enumerate(turns) if turn == variation]
            drawn = self._drawn(variation, ids, [numbers[index] for index in same])
            images = variation.apply(inputs.repeat(len(same), 1, 1, 1), drawn, self.bounds)
            if len(same) == len(turns):
                return forward(images)
            for index, some in zip(same, images.split(len(inputs)), strict=True):
                made[index] = some
        return forward(torch.cat(made))

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward of the neighbours."""
        return forward(self.images(inputs, ids, number))
