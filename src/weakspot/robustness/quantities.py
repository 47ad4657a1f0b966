"""The quantities that a variation draws, such as an angle, with their ranges cut into bins."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.looks import GRAIN, Combined, Variation


@dataclass(frozen=True)
class QuantityRange:
    """One quantity that a variation draws: its column among the drawn parameters, and its range."""

    name: str
    unit: str
    column: int
    low: float
    high: float

    def bins(self, parameters: np.ndarray, count: int) -> NDArray[np.int64]:
        """The bin of each parameter, of `count` bins of equal width."""
        width = (self.high - self.low) or 1.0
        number = ((parameters[:, self.column] - self.low) / width * count).astype(np.int64)
        return np.clip(number, 0, count - 1)

    def edges(self, count: int) -> NDArray[np.float64]:
        """The borders of the bins."""
        return np.linspace(self.low, self.high, count + 1)


def drawn_quantities(variation: Variation) -> list[QuantityRange]:
    """The quantities of a variation that are drawn from a range, in the order of its parameters.

    Seeds of noise are left out.

    >>> from weakspot.looks import Rotate, Shift
    >>> [(quantity.name, quantity.column, quantity.low) for quantity in drawn_quantities(Rotate(30) & Shift(3))][:2]
    [('rotation', 0, -30.0), ('shift to the right', 1, -3.0)]
    """
    parts = variation.parts if isinstance(variation, Combined) else (variation,)
    ranges, column = [], 0
    for part in parts:
        for quantity in part.quantities:
            if quantity is not GRAIN and part.range[0] < part.range[1]:
                ranges.append(QuantityRange(quantity.name, quantity.unit, column, *part.range))
            column += 1
    return ranges


def kind_name(variation: Variation) -> str:
    """What kind of variation it is, in words.

    >>> from weakspot.looks import Fog, Rotate
    >>> kind_name(Fog() & Rotate(5))
    'fog and rotate'
    """
    parts = variation.parts if isinstance(variation, Combined) else (variation,)
    return " and ".join(type(part).__name__.lower() for part in parts)
