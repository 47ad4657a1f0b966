"""Taps: values taken from inside a model while it runs, reduced on the device, so that activations never pile up."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from weakspot import kernels
from weakspot.core.errors import ProbeError, SubjectError
from weakspot.core.layers import ActivationWatch, Layer, Point, Side, first_tensor, module_named, select_layers

Layers = str | tuple[str, ...]
"""Which layers: "all" convolutions and linears, "penultimate", names or patterns."""
_WIDE = frozenset({torch.float32, torch.float64})
_LARGE = 2**21
"""Values from which on one reading is worth a kernel: of fewer, launching it takes longer than reading them twice.

Who asks for what plays no part, so that an answer has the same bits whatever else is asked.
"""


@dataclass(frozen=True)
class Tap:
    """A wish for the values of some layers.

    layers: "all" convolutions and linears, "penultimate" (the input of the last of them), names, or patterns.
    side: the layer's `input` or `output`, or `activated`: after the normalisation and activation that follow directly.
    scaled: with each layer's smallest and largest value per sample, so that means can be scaled to [0, 1].
    maps: whole maps instead of channel means.
    """

    layers: Layers = "all"
    side: Side = "output"
    scaled: bool = False
    maps: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.layers, str):
            object.__setattr__(self, "layers", tuple(self.layers))  # a list, as YAML gives it, could not be hashed

    def points(self, layers: Sequence[Layer]) -> tuple[Point, ...]:
        """The places in a model with these layers that the tap means."""
        return select_layers(layers, self.layers, self.side)


@dataclass(frozen=True)
class Layout:
    """How the neurons of several layers lie side by side: layer by layer, channel by channel."""

    points: tuple[Point, ...]

    @property
    def neurons(self) -> int:
        """The number of all neurons."""
        return sum(self.widths)

    @cached_property
    def layer_of(self) -> np.ndarray:
        """The index of each neuron's layer, shape (neurons,)."""
        return np.repeat(np.arange(len(self.points)), self.widths)

    @cached_property
    def channel_of(self) -> np.ndarray:
        """Each neuron's channel within its layer, shape (neurons,)."""
        return np.concatenate([np.arange(width) for width in self.widths])

    def layer_index(self, device: torch.device) -> Tensor:
        """`layer_of` as a tensor on the device, made once."""
        if device not in self._indexes:
            self._indexes[device] = torch.from_numpy(self.layer_of).to(device)
        return self._indexes[device]

    @cached_property
    def _indexes(self) -> dict[torch.device, Tensor]:
        return {}

    def where(self, neuron: int) -> str:
        """In words, where a neuron lies."""
        return f"layer {self.labels[self.layer_of[neuron]]}, channel {self.channel_of[neuron]}"

    @property
    def labels(self) -> list[str]:
        """The layers' names."""
        return [point.label for point in self.points]

    @property
    def widths(self) -> list[int]:
        """The layers' numbers of neurons."""
        return [point.channels for point in self.points]


@dataclass(frozen=True)
class Channels:
    """Channel means of several layers, shape (samples, neurons), and each layer's extremes, shape (samples, layers)."""

    mean: Tensor
    low: Tensor | None
    high: Tensor | None
    layout: Layout

    def select(self, rows: Tensor) -> "Channels":
        """The same for some of the samples."""
        low, high = (None if part is None else part[rows] for part in (self.low, self.high))
        return Channels(self.mean[rows], low, high, self.layout)

    @cached_property
    def scaled(self) -> Tensor:
        """Means of the activations scaled to [0, 1] per sample and layer: (mean − low) / (high − low).

        Scaling is linear, so the mean of the scaled map is the scaled mean of the map, exactly. A layer whose values
        are all equal scales to 0.
        """
        if self.low is None or self.high is None:
            raise SubjectError("scaled means were not asked for: use Tap(..., scaled=True)")
        index = self.layout.layer_index(self.mean.device)
        span = self.high - self.low
        factor = torch.where(span > 0, span.reciprocal(), 0.0)
        return (self.mean - self.low[:, index]).mul_(factor[:, index])


@dataclass
class Captured:
    """What one forward pass left behind at each point: smallest and largest values of the layer or of parts of it."""

    mean: dict[Point, Tensor] = field(default_factory=dict)
    low: dict[Point, Tensor] = field(default_factory=dict)
    high: dict[Point, Tensor] = field(default_factory=dict)
    maps: dict[Point, Tensor] = field(default_factory=dict)

    def take(self, point: Point, want: "Want", values: Tensor) -> None:
        """Keep of a layer's values what is wanted."""
        if (want.mean or want.extremes) and values.numel() >= _LARGE and kernels.usable(values):
            self._take_in_one_reading(point, want, values)
        else:
            if want.mean:
                self.mean[point] = channel_means(values, point.channel_dim)
            if want.extremes:
                self.low[point], self.high[point] = extremes(values)
        if want.maps:
            self.maps[point] = values.clone()

    def _take_in_one_reading(self, point: Point, want: "Want", values: Tensor) -> None:
        from weakspot.kernels.reducing import by_channel

        ordered = values if point.channel_dim == 1 else values.movedim(point.channel_dim, 1)
        mean, low, high = by_channel(ordered.unsqueeze(2) if values.ndim == 2 else ordered.flatten(2))
        if want.mean:
            self.mean[point] = mean
        if want.extremes:
            self.low[point], self.high[point] = low, high

    def take_over(self, other: "Captured") -> None:
        """Hold what another holds; whole maps as copies, since nobody else puts them together again."""
        self.mean, self.low, self.high = other.mean, other.low, other.high
        self.maps = {point: values.clone() for point, values in other.maps.items()}

    def channels(self, layout: Layout) -> Channels:
        """The channel means at the layout's points side by side."""
        return Channels(torch.cat([taken_at(self.mean, point) for point in layout.points], 1), None, None, layout)

    def with_extremes(self, channels: Channels) -> Channels:
        """The same means, with the extremes of their layers."""
        lows = [taken_at(self.low, point) for point in channels.layout.points]
        highs = [taken_at(self.high, point) for point in channels.layout.points]
        low, high = layer_extremes(lows, highs)
        return replace(channels, low=low, high=high)


@dataclass(frozen=True)
class Want:
    """What is to be taken at one point."""

    mean: bool = False
    extremes: bool = False
    maps: bool = False

    def __or__(self, other: "Want") -> "Want":
        return Want(*(a or b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def taken_at(values: Mapping[Point, Tensor], point: Point) -> Tensor:
    """What was taken at a point; an error where nobody asked for it."""
    if point not in values:
        raise ProbeError(f"nothing was taken at {point.label}: the probe's needs do not name this tap or attribution")
    return values[point]


def wanted(taps: Sequence[tuple[Tap, tuple[Point, ...]]]) -> dict[Point, Want]:
    """The union of all wishes, one entry per point."""
    wants: dict[Point, Want] = {}
    for tap, points in taps:
        want = Want(mean=not tap.maps, extremes=tap.scaled, maps=tap.maps)
        for point in points:
            wants[point] = wants.get(point, Want()) | want
    return wants


def channel_means(values: Tensor, channel_dim: int) -> Tensor:
    """Mean over every dimension but the batch and the channels, in at least float32, shape (samples, channels)."""
    wide = values.dtype if values.dtype in _WIDE else torch.float32
    if values.ndim == 2:
        return values.to(wide, copy=True)
    others = [dim for dim in range(1, values.ndim) if dim != channel_dim]
    return values.mean(others, dtype=wide)


def extremes(values: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest value per sample, in at least float32, shape (samples, 1)."""
    if values.is_cpu:  # there, aminmax is an order of magnitude slower than both apart
        dims = tuple(range(1, values.ndim))
        low, high = values.amin(dims), values.amax(dims)
    else:
        low, high = values.flatten(1).aminmax(dim=1)
    wide = low.dtype if low.dtype in _WIDE else torch.float32
    return low.to(wide)[:, None], high.to(wide)[:, None]


def layer_extremes(lows: Sequence[Tensor], highs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Of each layer's smallest and largest values (samples, parts) the smallest and largest, (samples, layers)."""
    parts = tuple(part.shape[1] for part in lows)
    low, high = torch.cat(tuple(lows), 1), torch.cat(tuple(highs), 1)
    if len(parts) == low.shape[1]:
        return low, high
    if kernels.usable(low):
        from weakspot.kernels.reducing import by_layer

        return by_layer(low, high, parts)
    return (
        torch.stack([part.amin(1) for part in low.split(parts, 1)], 1),
        torch.stack([part.amax(1) for part in high.split(parts, 1)], 1),
    )


class _Site:
    """One module with the points at each of its uses; counts the uses in one forward pass."""

    def __init__(self, recorder: "Recorder", points: Sequence[tuple[Point, Want]]):
        self.calls = 0
        self._recorder = recorder
        self._before: dict[int, list[tuple[Point, Want]]] = {}
        self._after: dict[int, list[tuple[Point, Want]]] = {}
        for point, want in points:
            uses = self._before if point.side == "input" else self._after
            uses.setdefault(point.use, []).append((point, want))

    def hook(self, module: nn.Module) -> list[RemovableHandle]:
        """Put on the hooks that are needed."""
        before = [module.register_forward_pre_hook(self.before)] if self._before else []
        after = [module.register_forward_hook(self.after)] if self._after else []
        return [*before, *after]

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """The module is about to run."""
        if self._recorder.captured is not None:
            self.calls += 1
            for point, want in self._before.get(self.calls, ()):
                self._recorder.take(point, want, first_tensor(args[:1], point.label))

    def after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """The module has run."""
        if self._recorder.captured is not None:
            self.calls += not self._before
            for point, want in self._after.get(self.calls, ()):
                tensor = first_tensor(output, point.label)
                if point.side == "output":
                    self._recorder.take(point, want, tensor)
                else:
                    self._recorder.mark(tensor, (point, want))


class Recorder(ActivationWatch):
    """Hooks on the wanted layers: on within `with`, always taken off again, and at work only while `recording`."""

    def __init__(self, model: nn.Module, wants: Mapping[Point, Want]):
        super().__init__()
        self.captured: Captured | None = None
        self._model = model
        self._wants = wants
        self.key = frozenset(wants.items())
        """Equal for recorders that take the same."""
        self._samples = 0
        self._watching = any(point.side == "activated" for point in wants)
        by_module: dict[str, list[tuple[Point, Want]]] = {}
        for point, want in wants.items():
            by_module.setdefault(point.name, []).append((point, want))
        self._sites = {name: _Site(self, points) for name, points in by_module.items()}

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Put the hooks on, and take them off whatever happens."""
        with ExitStack() as stack:
            for name, site in self._sites.items():
                for handle in site.hook(module_named(self._model, name)):
                    stack.callback(handle.remove)
            yield

    @contextmanager
    def recording(self, samples: int) -> Iterator[Captured]:
        """Take what one forward pass over so many samples brings."""
        before, captured = self.captured, Captured()
        self.captured = captured
        self._samples = samples
        for site in self._sites.values():
            site.calls = 0
        try:
            yield captured
        finally:
            self.captured = before
            self.forget()

    def watching(self) -> AbstractContextManager[Any]:
        """While the model runs: see activations. What else watches its operations must be entered before."""
        return self if self._watching else nullcontext()

    def check(self, captured: Captured) -> None:
        """Raise if a wanted point was not passed."""
        for point in self._wants:
            if not any(point in taken for taken in vars(captured).values()):
                raise SubjectError(
                    f"layer {point.label} did not run for this batch, though it did for the first sample: a layer that "
                    "runs for some inputs only cannot be tapped"
                )

    def arrived(self, mark: Any, name: str, result: Tensor) -> None:
        """An activation was applied to the output of a layer tapped `activated`."""
        point, want = mark
        self.take(point, want, result)

    def take(self, point: Point, want: Want, values: Tensor) -> None:
        """Take what is wanted at once, before an in-place operation can change the tensor."""
        captured = self.captured
        if captured is None:
            return
        if values.shape[0] != self._samples or values.shape[point.channel_dim] != point.channels:
            raise SubjectError(
                f"layer {point.label} gives shape {tuple(values.shape)} for {self._samples} samples, expected "
                f"{self._samples} rows and {point.channels} channels in dimension {point.channel_dim}: it mixes "
                "samples or changes its size between inputs, and cannot be tapped"
            )
        with torch._C.DisableTorchFunction():  # what watches the model's operations is not to see ours
            captured.take(point, want, values.detach())
