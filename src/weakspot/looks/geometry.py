"""Changes of place: rotation, shift, shear and scale, each an affine map about the image's centre."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from weakspot.looks.variations import Geometric, Quantity, Range


@dataclass(frozen=True)
class Rotate(Geometric):
    """Rotation about the centre.

    degrees: clockwise on the screen; one number n means from −n to n.
    """

    degrees: Range = 30
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("rotation", "degrees"),)
    limits: ClassVar[tuple[float, float]] = (-360, 360)

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[cos, sin, 0], [−sin, cos, 0], [0, 0, 1]]."""
        angle = parameters[:, 0].deg2rad()
        cos, sin = angle.cos(), angle.sin()
        return _affine(angle, [[cos, sin, 0], [-sin, cos, 0]])


@dataclass(frozen=True)
class Shift(Geometric):
    """Shift in x and in y, drawn apart.

    pixels: to the right and down; one number n means from −n to n.
    """

    pixels: Range = 3
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("shift to the right", "pixels"), Quantity("shift down", "pixels"),
    )  # fmt: skip

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[1, 0, −x], [0, 1, −y], [0, 0, 1]]."""
        x, y = parameters.unbind(1)
        return _affine(x, [[1, 0, -x], [0, 1, -y]])


@dataclass(frozen=True)
class Shear(Geometric):
    """Shear along x: upright lines lean to the left or right.

    degrees: how far the top of an upright line leans to the left; one number n means from −n to n.
    """

    degrees: Range = 15
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("shear", "degrees"),)
    limits: ClassVar[tuple[float, float]] = (-85, 85)

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[1, −tan, 0], [0, 1, 0], [0, 0, 1]]."""
        lean = parameters[:, 0].deg2rad().tan()
        return _affine(lean, [[1, -lean, 0], [0, 1, 0]])


@dataclass(frozen=True)
class Scale(Geometric):
    """Enlargement about the centre, the same in x and y.

    factor: how many times as large; one number n means from 1 − n to 1 + n.
    """

    factor: Range = 0.2
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("scale", "times"),)
    limits: ClassVar[tuple[float, float]] = (0.01, 100)
    neutral: ClassVar[float] = 1.0

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[1/f, 0, 0], [0, 1/f, 0], [0, 0, 1]]."""
        smaller = 1 / parameters[:, 0]
        return _affine(smaller, [[smaller, 0, 0], [0, smaller, 0]])


def _affine(like: Tensor, rows: list[list[Any]]) -> Tensor:
    """Matrices of shape (samples, 3, 3) from their two upper rows, each entry one number or one per sample."""
    matrices = torch.eye(3, dtype=like.dtype, device=like.device).repeat(len(like), 1, 1)
    for row, entries in enumerate(rows):
        for column, entry in enumerate(entries):
            if isinstance(entry, Tensor):
                matrices[:, row, column] = entry
    return matrices
