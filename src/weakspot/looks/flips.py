"""Test-time flips: the prediction for a mirrored image, mirrored back (Wang et al. 2019, test-time augmentation)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.look import Forward, Look

_SPATIAL = 2
"""Dimensions of a batch before the spatial ones: samples and channels."""

_flipped: ContextVar[bool] = ContextVar("weakspot_flipped", default=False)


def are_flipped() -> bool:
    """Whether the inputs of the forward that runs are flipped; who looks them up elsewhere must know."""
    return _flipped.get()


@contextmanager
def _flipping(dims: Sequence[int]) -> Iterator[None]:
    token = _flipped.set(bool(dims))
    try:
        yield
    finally:
        _flipped.reset(token)


@dataclass(frozen=True)
class Flips(Look):
    """Look k is a segmentation of the image flipped along some axes, flipped back; look 1 is the image as it is.

    axes: which spatial axes may be flipped, from 0; n of them give 2ⁿ looks.
    of: with what to look at the flipped images, for instance `McDropout` or `Members`; each of its looks takes all
        flips in turn. Without it 2ⁿ looks are all there are.
    """

    axes: tuple[int, ...] = (0, 1, 2)
    of: Look | None = None

    def __post_init__(self) -> None:
        if not self.axes or len(set(self.axes)) != len(self.axes) or min(self.axes) < 0:
            raise ConfigError(f"flips along {self.axes}: expected different spatial axes from 0, as in (0, 1, 2)")

    def flipped(self, number: int) -> tuple[int, ...]:
        """The axes that look `number` flips.

        >>> [Flips((0, 2)).flipped(number) for number in range(1, 6)]
        [(), (0,), (2,), (0, 2), ()]
        """
        turn = (number - 1) % 2 ** len(self.axes)
        return tuple(axis for bit, axis in enumerate(self.axes) if turn >> bit & 1)

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward of the flipped inputs, flipped back."""
        inner = (number - 1) // 2 ** len(self.axes) + 1
        if self.of is None and inner > 1:
            raise SubjectError(
                f"sample {number} was asked for, and flips along {len(self.axes)} axes give {2 ** len(self.axes)}: ask "
                "for fewer samples, or combine flips with dropout or members"
            )
        if max(self.axes) + _SPATIAL >= inputs.ndim:
            raise SubjectError(
                f"flips along axes {self.axes}, and the inputs have {inputs.ndim - _SPATIAL} spatial ones"
            )
        dims = [axis + _SPATIAL for axis in self.flipped(number)]
        turned = inputs.flip(dims)
        with _flipping(dims):
            outputs = forward(turned) if self.of is None else self.of.outputs(forward, turned, ids, inner)
        if outputs.shape[_SPATIAL:] != inputs.shape[_SPATIAL:]:
            raise SubjectError(
                f"flips are undone on the outputs, and those of shape {tuple(outputs.shape)} do not lie on the inputs' "
                f"grid {tuple(inputs.shape[_SPATIAL:])}: flips are for segmentation"
            )
        return outputs.flip(dims)
