"""What is known of a tensor that depends on the inputs, and what is kept of it for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from weakspot.core.errors import SubjectError
from weakspot.relevance.affine import Affine


class Cell:
    """A tensor kept for the backward pass, safe from later in-place operations on its memory.

    It holds a detached alias: the graph must never hold its own outputs, or it would never be freed.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor.detach()
        self._version = self._tensor._version

    @property
    def memory(self) -> int:
        """Which memory the tensor lies in."""
        return int(self._tensor.untyped_storage()._cdata)

    def secure(self) -> None:
        """Copy the values, because their memory is about to be overwritten."""
        self._tensor = self._tensor.clone()
        self._version = self._tensor._version

    def read(self) -> Tensor:
        """The values as they were."""
        if self._tensor._version != self._version:
            raise SubjectError(
                "a tensor needed for relevance was overwritten in place by an operation that cannot be seen from "
                "Python; expected in-place changes through torch functions only; make that operation out of place"
            )
        return self._tensor


@dataclass
class Stage:
    """scale ⊙ y + shift, per output channel, done to the output y of a layer (batch norm, a separate bias)."""

    scale: Tensor
    shift: Tensor
    offset: Tensor
    """The shift in a shape that broadcasts against the output."""
    output: Cell | None = None


@dataclass
class LayerUse:
    """One use of an affine layer, with the stages that follow it directly and are propagated as part of it."""

    layer: Callable[[], Affine]
    channels: int
    channel_axis: int
    stages: list[Stage] = field(default_factory=list)
    closed: bool = False

    def close(self, stages: int) -> None:
        """Something else has used the output of this many stages: later ones can't be part of the layer."""
        del self.stages[stages:]
        self.closed = True

    def merged(self) -> Affine:
        """The layer together with its stages."""
        layer = self.layer()
        for stage in self.stages:
            if stage.output is not None:
                layer = layer.rescaled(stage.scale, stage.shift, stage.output.read().to(layer.weight.dtype))
        return layer


@dataclass(frozen=True)
class Origin:
    """What is known of a tensor that depends on the inputs.

    gate: made by a softmax or sigmoid, so it weighs other values.
    nonnegative: by construction.
    raw: no layer with weights lies between the inputs and it.
    logits: what it was before a softmax or sigmoid.
    version: its in-place version for which this holds.
    use, stages: the layer that it is the output of, and the number of its stages.
    axes: the order in which its axes are those of that output.
    """

    gate: bool = False
    nonnegative: bool = False
    raw: bool = False
    logits: Tensor | None = None
    use: LayerUse | None = None
    stages: int = 0
    axes: tuple[int, ...] | None = None
    version: int = 0

    def in_layer_order(self, tensor: Tensor) -> Tensor:
        """A tensor of this origin with the axes of the layer's output."""
        return tensor if self.axes is None else tensor.permute([self.axes.index(i) for i in range(tensor.dim())])

    def permuted(self, order: Sequence[int]) -> Origin:
        """The origin after a permutation of the axes."""
        axes = self.axes or tuple(range(len(order)))
        return replace(self, axes=tuple(axes[i] for i in order), logits=None)


UNKNOWN = Origin()


def merge(origins: Sequence[Origin]) -> Origin:
    """What holds of a tensor whose values are taken from tensors of these origins."""
    return Origin(
        gate=all(o.gate for o in origins),
        nonnegative=all(o.nonnegative for o in origins),
        raw=all(o.raw for o in origins),
    )
