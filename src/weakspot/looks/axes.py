"""A network that was trained on volumes with the axes the other way round: x, y, z, as MONAI reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from weakspot.core.errors import SubjectError


@dataclass(frozen=True)
class ReversedAxes:
    """The forward of a Subject whose network wants (samples, channels, x, y, z) where the data have z, y, x.

    `Subject(net, forward=ReversedAxes())`. Outputs are turned back, so everything else works on z, y, x.

    of: another forward, such as a `SlidingWindow`, whose window is then along x, y, z.
    """

    of: Callable[[Any, Tensor], Any] | None = None

    def __call__(self, model: Any, inputs: Tensor) -> Tensor:
        """The model's outputs on the grid of the inputs."""
        turned = reversed_axes(inputs).contiguous()
        outputs = model(turned) if self.of is None else self.of(model, turned)
        if not isinstance(outputs, Tensor) or outputs.shape[2:] != turned.shape[2:]:
            got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise SubjectError(
                f"with axes xyz the network gave {got}, expected a tensor (samples, classes, x, y, z) on the grid of "
                f"its input {tuple(turned.shape[2:])}"
            )
        return reversed_axes(outputs).contiguous()


def reversed_axes(values: Tensor) -> Tensor:
    """The spatial axes (from dimension 2 on) in reverse order."""
    return values.permute(0, 1, *range(values.ndim - 1, 1, -1))
