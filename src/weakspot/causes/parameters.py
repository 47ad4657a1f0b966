"""What is known of the images of a test set besides the images: metadata, or the parameters of a simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError
from weakspot.core.options import nearest

Floats = NDArray[np.float64]
Kind = Literal["number", "angle", "category"]


@dataclass(frozen=True)
class Parameters:
    """What is known of every image of a test set, in the order of the ids.

    names: of the parameters.
    kinds: "number", "angle" (in degrees) or "category".
    values: (images, parameters), float64: numbers (not a number where unknown), degrees, or the number of the category.
    categories: the names of the categories of each parameter, none for numbers.
    """

    names: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    categories: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of_columns(cls, columns: Mapping[str, np.ndarray], angles: Sequence[str] = ()) -> Parameters:
        """From one array per parameter, of numbers or of text.

        angles: names of those that are angles in degrees.

        >>> Parameters.of_columns({"weather": np.array(["rain", "fog", "rain"])}).values.tolist()
        [[1.0], [0.0], [1.0]]
        """
        parameters = [_parameter(column, name in angles) for name, column in columns.items()]
        for name in angles:
            if name not in columns or parameters[list(columns).index(name)][0] != "angle":
                have = ", ".join(columns) or "none"
                raise ConfigError(
                    f"angles names {name!r}, and no column of numbers in the metadata is called so: "
                    f"{nearest(name, list(columns))}there is {have}"
                )
        if not parameters:
            return cls()
        kinds, values, categories = zip(*parameters, strict=True)
        return cls(tuple(columns), kinds, np.stack(values, axis=1), categories)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Parameters:
        """From the arrays of a Finding."""
        if "parameters" not in arrays:
            return cls()
        names, kinds = (tuple(np.asarray(arrays[f"parameter_{part}"]).tolist()) for part in ("names", "kinds"))
        named = [arrays.get(f"categories-{number:02d}") for number in range(len(names))]
        categories = tuple(() if column is None else tuple(np.asarray(column).tolist()) for column in named)
        return cls(names, kinds, np.asarray(arrays["parameters"]), categories)

    def arrays(self) -> dict[str, np.ndarray]:
        """As arrays of a Finding; none where nothing is known."""
        if not self.names:
            return {}
        named = {f"categories-{n:02d}": np.array(c, dtype=np.str_) for n, c in enumerate(self.categories) if c}
        return {
            "parameter_names": np.array(self.names, dtype=np.str_),
            "parameter_kinds": np.array(self.kinds, dtype=np.str_),
            "parameters": self.values,
            **named,
        }


def _parameter(column: np.ndarray, angle: bool) -> tuple[Kind, Floats, tuple[str, ...]]:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return ("angle" if angle else "number"), values.astype(np.float64), ()
    names, numbers = np.unique(values.astype(np.str_), return_inverse=True)
    return "category", numbers.astype(np.float64), tuple(names.tolist())
