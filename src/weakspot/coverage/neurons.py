"""Neuron coverage and k-multisection neuron coverage. A neuron is a channel; its value is the mean over positions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe
from weakspot.core.sections import section_numbers
from weakspot.core.state import Max, Min, Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.coverage.counting import coverage_arrays, coverage_summary, layer_columns


class NeuronCoverage(Probe):
    """Share of the neurons whose scaled value exceeds a threshold for at least one input (Pei et al. 2017).

    Activations are scaled to [0, 1] per input and layer; a neuron's value is the mean over its positions.

    threshold: above which a neuron counts as active.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    """

    threshold: float = 0.75
    layers: Layers = "all"

    counts = Sum()
    inputs = Sum()

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers, scaled=True)

    def observe(self, seen: Observation) -> None:
        """Count, for each neuron, the inputs that activate it."""
        self.counts = self.counts + (seen.channels(self.tap).scaled > self.threshold).sum(0)
        self.inputs = self.inputs + len(seen.ids)

    def finish(self) -> Finding:
        """Coverage over all neurons, its saturation curve, and each layer's coverage."""
        counts, inputs = self.counts.numpy(), int(self.inputs)
        return self.finding(
            summary=coverage_summary(counts, inputs),
            table=layer_columns(counts > 0, self.setting.layout(self.tap)),
            arrays=coverage_arrays(counts, inputs),
        )


class ActivationRanges(Probe):
    """Smallest and largest value of each neuron over the training data: the bounds that DeepGauge's criteria need.

    layers: "all" convolutions and linears, "penultimate", names or patterns.
    """

    split = "train"

    layers: Layers = "all"

    low = Min()
    high = Max()
    inputs = Sum()

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers)

    def observe(self, seen: Observation) -> None:
        """Widen the ranges."""
        values = seen.channels(self.tap).mean
        self.low = torch.minimum(self.low.to(values.device), values.amin(0))
        self.high = torch.maximum(self.high.to(values.device), values.amax(0))
        self.inputs = self.inputs + len(seen.ids)

    def finish(self) -> Finding:
        """The ranges, as arrays in the order of the layers."""
        low, high = self.low.numpy(), self.high.numpy()
        layout = self.setting.layout(self.tap)
        return self.finding(
            summary={
                "inputs": Estimate(int(self.inputs), about="samples examined"),
                "neurons": Estimate(int(low.size), about="neurons profiled"),
                "constant": Estimate(int((low == high).sum()), about="neurons with the same value for every input"),
            },
            table={
                "layer": layout.labels,
                "neurons": layout.widths,
                "constant": np.bincount(layout.layer_of[low == high], minlength=len(layout.points)),
            },
            arrays={"low": low, "high": high},
        )


class KMultisection(Probe):
    """Share of the k sections of each neuron's training range that test inputs reach (KMNC, Ma et al. 2018).

    Sections are of equal width and the last one includes the largest training value; values outside the range belong
    to none. A neuron that never changed in training can reach one section at most.

    sections: k, into how many sections each range is cut.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    ranges: the Finding of `ActivationRanges` over the training data.
    """

    sections: int = 1000
    layers: Layers = "all"
    ranges: Finding

    histogram = Sum()
    inputs = Sum()

    def __post_init__(self) -> None:
        if self.sections < 1:
            raise ConfigError(f"sections is {self.sections}: expected 1 or more")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The training ranges of the same layers."""
        return {"ranges": Step.of(ActivationRanges, layers=options["layers"])}

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers)

    def observe(self, seen: Observation) -> None:
        """Count the inputs in each section of each neuron, and below and above its range."""
        values = seen.channels(self.tap).mean
        low, high = self._bounds(values.device)
        add_to_histogram(self._cells(len(low), values.device), section_numbers(values, low, high, self.sections))
        self.inputs = self.inputs + len(seen.ids)

    def _bounds(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The training range on the device, copied once per shard."""
        if self.histogram.ndim == 0:
            low, high = (torch.tensor(self.ranges.arrays[side], device=device) for side in ("low", "high"))
            self._range = (low, high)
        return self._range

    def _cells(self, neurons: int, device: torch.device) -> Tensor:
        if self.histogram.ndim == 0:
            self.histogram = torch.zeros(neurons, self.sections + 2, dtype=torch.int64, device=device)
        return self.histogram

    def finish(self) -> Finding:
        """Coverage over all sections, its saturation curve, and each layer's coverage."""
        counts, inputs = self.histogram.numpy()[:, 1:-1], int(self.inputs)
        constant = int((self.ranges.arrays["low"] == self.ranges.arrays["high"]).sum())
        note = Estimate(constant, about="neurons without a range in training: they reach one section at most")
        return self.finding(
            summary={**coverage_summary(counts, inputs), "constant": note},
            table=layer_columns((counts > 0).mean(1), self.setting.layout(self.tap)),
            arrays=coverage_arrays(counts, inputs),
        )


def add_to_histogram(histogram: Tensor, numbers: Tensor) -> None:
    """Add one to the cell of each number: histogram (neurons, cells), numbers (samples, neurons)."""
    cells = histogram.shape[1]
    offsets = torch.arange(0, histogram.numel(), cells, device=numbers.device)
    flat = (numbers + offsets).flatten()
    histogram.view(-1).index_add_(0, flat, flat.new_ones(()).expand(len(flat)))
