"""Neuron coverage; k-multisection, boundary and strong activation coverage of training ranges; top-k coverage.

A neuron is a channel; its value is the mean over positions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.layers import Side
from weakspot.core.observation import Observation
from weakspot.core.probe import LayerProbe, Rows
from weakspot.core.sections import section_numbers
from weakspot.core.state import Max, Min, Sum
from weakspot.core.step import Step
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.counting import (
    class_parts,
    class_rows,
    coverage_arrays,
    coverage_estimates,
    coverage_summary,
    layer_columns,
    smallest_type,
    unseen_estimate,
    with_classes,
)
from weakspot.coverage.metrics_top_neurons import inputs_per_pattern, leading, pattern_words, possible_patterns
from weakspot.statistics import expected_coverage, unseen_targets


class NeuronCriterion(LayerProbe):
    """A coverage criterion over the neurons of layers; the probes explain the options."""

    side: Side = "activated"
    classes: Sequence[str] = ()
    baseline: Finding | None = None

    inputs = Sum()


class NeuronCoverage(NeuronCriterion):
    """Share of the neurons whose scaled value exceeds a threshold for at least one input (Pei et al. 2017).

    Activations are scaled to [0, 1] per input and layer; a neuron's value is the mean over its positions.

    threshold: above which a neuron counts as active.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    classes: predicted classes whose inputs' coverage to give besides, by name.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.NEURON_COVERAGE
    scaled = True

    threshold: float = 0.75

    counts = Sum()

    def observe(self, seen: Observation) -> None:
        """Count, for each neuron, the inputs that activate it."""
        active, rows = seen.channels(self.tap).scaled > self.threshold, class_rows(seen, self.classes)
        self.counts = self.counts + torch.stack([active.sum(0), *(active[members].sum(0) for members in rows)])
        self.inputs = self.inputs + with_classes(len(seen.ids), rows)

    def finish(self) -> Finding:
        """Coverage over all neurons, its saturation curve, and each layer's coverage."""
        (counts, *_), (inputs, *_) = self.counts.numpy(), self.inputs.tolist()
        layout = self.setting.layout(self.tap)
        by_class = class_parts(self.counts.numpy()[1:], self.inputs.numpy()[1:], self.classes, layout)
        return self.finding(
            summary={**coverage_summary(counts, inputs, baseline=self.baseline), **by_class[0]},
            table={**layer_columns(counts > 0, layout), **by_class[1]},
            arrays={**coverage_arrays(counts, inputs), **by_class[2]},
        )


class ActivationRanges(LayerProbe):
    """Smallest and largest value of each neuron over the training data: the bounds that DeepGauge's criteria need.

    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    """

    outputs = declared.ACTIVATION_RANGES

    split = "train"

    side: Side = "activated"

    low = Min()
    high = Max()
    inputs = Sum()

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
                "neurons": Estimate(int(low.size), about="neurons whose range was recorded"),
                "constant": Estimate(int((low == high).sum()), about="neurons with the same value for every input"),
            },
            table={
                "layer": layout.labels,
                "neurons": layout.widths,
                "constant": np.bincount(layout.layer_of[low == high], minlength=len(layout.points)),
            },
            arrays={"low": low, "high": high},
        )


class KMultisection(NeuronCriterion):
    """Share of the k sections of each neuron's training range that test inputs cover (KMNC, Ma et al. 2018).

    Sections are of equal width and the last one includes the largest training value; values outside the range belong
    to none. A neuron that never changed in training can reach one section at most.

    The same counts give the criteria beyond the range: neuron boundary coverage (NBC), the share of the two regions
    below and above each neuron's training range, and strong neuron activation coverage (SNAC), of those above.

    sections: k, into how many sections each range is cut.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    classes: predicted classes whose inputs' coverage to give besides, by name; the ranges are those of all training
        inputs.
    ranges: the Finding of `ActivationRanges` over the training data.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.K_MULTISECTION

    sections: int = 1000
    ranges: Finding

    histogram = Sum()

    def __post_init__(self) -> None:
        if self.sections < 1:
            raise ConfigError(f"sections is {self.sections}: expected 1 or more")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The training ranges of the same layers."""
        return {"ranges": Step.of(ActivationRanges, layers=options["layers"], side=options["side"])}

    def observe(self, seen: Observation) -> None:
        """Count the inputs in each section of each neuron, and below and above its range."""
        values, rows = seen.channels(self.tap).mean, class_rows(seen, self.classes)
        low, high = self._bounds(values.device)
        every, *each = self._cells(len(low), values.device)
        numbers = section_numbers(values, low, high, self.sections)
        add_to_histogram(every, numbers)
        for cells, members in zip(each, rows, strict=True):
            add_to_histogram(cells, numbers[members])
        self.inputs = self.inputs + with_classes(len(seen.ids), rows)

    def _bounds(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The training range on the device, copied once per shard."""
        if self.histogram.ndim == 0:
            low, high = (torch.tensor(self.ranges.arrays[side], device=device) for side in ("low", "high"))
            self._range = (low, high)
        return self._range

    def _cells(self, neurons: int, device: torch.device) -> Tensor:
        """All inputs' counts, then those of each class asked for: (1 + classes, neurons, sections + 2)."""
        if self.histogram.ndim == 0:
            shape = 1 + len(self.classes), neurons, self.sections + 2
            self.histogram = torch.zeros(shape, dtype=torch.int64, device=device)
        return self.histogram

    def finish(self) -> Finding:
        """Coverage over all sections and over the regions beyond, their curves, and each layer's coverage."""
        histogram, (inputs, *_) = smallest_type(self.histogram.numpy()), self.inputs.tolist()
        counts, beyond, layout = histogram[0, :, 1:-1], histogram[0, :, [0, -1]].T, self.setting.layout(self.tap)
        constant = int((self.ranges.arrays["low"] == self.ranges.arrays["high"]).sum())
        note = Estimate(constant, about="neurons with a single value in training: they can cover one section at most")
        by_class = class_parts(histogram[1:, :, 1:-1], self.inputs.numpy()[1:], self.classes, layout)
        arrays = coverage_arrays(counts, inputs)
        return self.finding(
            summary={
                **coverage_summary(counts, inputs, baseline=self.baseline),
                **_beyond_summary(beyond, inputs),
                "constant": note,
                **by_class[0],
            },
            table={
                **layer_columns((counts > 0).mean(1), layout),
                "boundary_coverage": layer_columns((beyond > 0).mean(1), layout)["coverage"],
                "strong_coverage": layer_columns(beyond[:, 1] > 0, layout)["coverage"],
                **by_class[1],
            },
            arrays={
                **arrays,
                "beyond": beyond,
                "curve_boundary_coverage": expected_coverage(beyond, inputs, arrays["curve_size"]),
                "curve_strong_coverage": expected_coverage(beyond[:, 1], inputs, arrays["curve_size"]),
                **by_class[2],
            },
        )


def _beyond_summary(beyond: np.ndarray, inputs: int) -> dict[str, Estimate]:
    """NBC and SNAC. Training inputs do not stand beside: by definition of the ranges they reach none of the targets."""
    regions = "regions below and above the neurons' training ranges (NBC)"
    above = "regions above the neurons' training ranges (SNAC)"
    return {
        **coverage_estimates(beyond, inputs, prefix="boundary_", of=regions),
        **coverage_estimates(beyond[:, 1], inputs, prefix="strong_", of=above),
    }


def add_to_histogram(histogram: Tensor, numbers: Tensor) -> None:
    """Add one to the cell of each number: histogram (neurons, cells), numbers (samples, neurons)."""
    cells = histogram.shape[1]
    offsets = torch.arange(0, histogram.numel(), cells, device=numbers.device)
    flat = (numbers + offsets).flatten()
    histogram.view(-1).index_add_(0, flat, flat.new_ones(()).expand(len(flat)))


class TopNeurons(NeuronCriterion):
    """Share of the neurons that are among the k most active of their layer for at least one input (TKNC).

    After DeepGauge (Ma et al. 2018). Of equal values the neuron with the lower number leads; a layer of k neurons or
    fewer is covered by any input. And the number of distinct top-k neuron patterns (TKNP): an input's pattern is the
    set of the k leading neurons of every layer together.

    top: k, how many neurons of each layer lead.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    classes: predicted classes whose inputs' coverage to give besides, by name.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.TOP_NEURONS

    top: int = 3

    counts = Sum()
    patterns = Rows()

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigError(f"top is {self.top}: expected 1 or more")

    def observe(self, seen: Observation) -> None:
        """Count, for each neuron, the inputs for which it leads, and keep each input's pattern as a hash."""
        leads = leading(seen.channels(self.tap).mean, self.setting.layout(self.tap).widths, self.top)
        rows = class_rows(seen, self.classes)
        self.counts = self.counts + torch.stack([leads.sum(0), *(leads[members].sum(0) for members in rows)])
        self.inputs = self.inputs + with_classes(len(seen.ids), rows)
        members = torch.stack(rows, 1) if rows else leads.new_zeros((len(leads), 0))
        self.patterns.append(seen.ids, pattern=pattern_words(leads), member=members)

    def finish(self) -> Finding:
        """Coverage over all neurons, the number of patterns, their curves, and each layer's coverage."""
        (counts, *_), (inputs, *_) = self.counts.numpy(), self.inputs.tolist()
        rows, layout = self.patterns.read(), self.setting.layout(self.tap)
        by_class = class_parts(self.counts.numpy()[1:], self.inputs.numpy()[1:], self.classes, layout)
        alike, arrays = inputs_per_pattern(rows["pattern"]), coverage_arrays(counts, inputs)
        distinct = [inputs_per_pattern(rows["pattern"][member]).size for member in np.asarray(rows["member"]).T]
        return self.finding(
            summary={
                **coverage_summary(counts, inputs, baseline=self.baseline),
                **self._pattern_summary(alike, inputs),
                **by_class[0],
                **{
                    f"patterns, predicted {name}": Estimate(number, about=f"of the inputs predicted as {name} alone")
                    for name, number in zip(self.classes, distinct, strict=True)
                },
            },
            table={**layer_columns(counts > 0, layout), **by_class[1]},
            arrays={
                **arrays,
                "inputs_per_pattern": alike,
                "curve_patterns": expected_coverage(alike, inputs, arrays["curve_size"]) * alike.size,
                **by_class[2],
            },
        )

    def _pattern_summary(self, alike: np.ndarray, inputs: int) -> dict[str, Estimate]:
        half = float(expected_coverage(alike, inputs, [max(1, inputs // 2)])[0]) * alike.size
        unseen = unseen_targets(
            alike, inputs, targets=possible_patterns(self.setting.layout(self.tap).widths, self.top)
        )
        summary = {
            "patterns": Estimate(int(alike.size), about="distinct patterns of top neurons (TKNP)"),
            "patterns_of_half": Estimate(half, about="patterns of a random half of the inputs, on average"),
        }
        if self.baseline is not None:
            about = f"patterns of {self.baseline.summary['inputs'].value} training inputs, drawn at random"
            summary["patterns_of_training"] = Estimate(self.baseline.summary["patterns"].value, about=about)
        about = "patterns that more inputs of the same kind would add, at least (Chao2 estimate)"
        summary["patterns_unseen"] = unseen_estimate(unseen, about)
        return summary
