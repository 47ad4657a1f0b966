"""Top-k neuron coverage and top-k neuron patterns: which neurons lead their layer (DeepGauge, Ma et al. 2018)."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from math import comb, prod

import numpy as np
import torch
from torch import Tensor

from weakspot import kernels
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.state import Sum
from weakspot.core.taps import Layers, Tap
from weakspot.coverage import outputs as declared
from weakspot.coverage.counting import (
    class_parts,
    class_rows,
    coverage_arrays,
    coverage_summary,
    layer_columns,
    unseen_estimate,
    with_classes,
)
from weakspot.statistics import expected_coverage, unseen_targets


class TopNeurons(Probe):
    """Share of the neurons that are among the k most active of their layer for at least one input (TKNC).

    After DeepGauge (Ma et al. 2018). Of equal values the neuron with the lower number leads; a layer of k neurons or
    fewer is covered by any input. And the number of distinct top-k neuron patterns (TKNP): an input's pattern is the
    set of the k leading neurons of every layer together.

    top: k, how many neurons of each layer lead.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    classes: predicted classes whose inputs' coverage to give besides, by name.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.TOP_NEURONS

    top: int = 3
    layers: Layers = "all"
    classes: Sequence[str] = ()
    baseline: Finding | None = None

    counts = Sum()
    inputs = Sum()
    patterns = Rows()

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigError(f"top is {self.top}: expected 1 or more")

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers)

    def observe(self, seen: Observation) -> None:
        """Count, for each neuron, the inputs for which it leads, and keep each input's pattern as a hash."""
        leads = leading(seen.channels(self.tap).mean, self.setting.layout(self.tap).widths, self.top)
        rows = class_rows(seen, self.classes)
        self.counts = self.counts + torch.stack([leads.sum(0), *(leads[own].sum(0) for own in rows)])
        self.inputs = self.inputs + with_classes(len(seen.ids), rows)
        members = torch.stack(rows, 1) if rows else leads.new_zeros((len(leads), 0))
        self.patterns.append(seen.ids, pattern=pattern_words(leads), member=members)

    def finish(self) -> Finding:
        """Coverage over all neurons, the number of patterns, their curves, and each layer's coverage."""
        (counts, *_), (inputs, *_) = self.counts.numpy(), self.inputs.tolist()
        rows, layout = self.patterns.read(), self.setting.layout(self.tap)
        own = class_parts(self.counts.numpy()[1:], self.inputs.numpy()[1:], self.classes, layout)
        alike, arrays = inputs_per_pattern(rows["pattern"]), coverage_arrays(counts, inputs)
        distinct = [inputs_per_pattern(rows["pattern"][member]).size for member in np.asarray(rows["member"]).T]
        return self.finding(
            summary={
                **coverage_summary(counts, inputs, baseline=self.baseline),
                **self._pattern_summary(alike, inputs),
                **own[0],
                **{
                    f"patterns, predicted {name}": Estimate(number, about=f"of the inputs predicted as {name} alone")
                    for name, number in zip(self.classes, distinct, strict=True)
                },
            },
            table={**layer_columns(counts > 0, layout), **own[1]},
            arrays={
                **arrays,
                "inputs_per_pattern": alike,
                "curve_patterns": expected_coverage(alike, inputs, arrays["curve_size"]) * alike.size,
                **own[2],
            },
        )

    def _pattern_summary(self, alike: np.ndarray, inputs: int) -> dict[str, Estimate]:
        half = float(expected_coverage(alike, inputs, [max(1, inputs // 2)])[0]) * alike.size
        unseen = unseen_targets(
            alike, inputs, targets=possible_patterns(self.setting.layout(self.tap).widths, self.top)
        )
        told = {
            "patterns": Estimate(int(alike.size), about="distinct patterns of leading neurons (TKNP)"),
            "patterns_of_half": Estimate(half, about="those of a random half of the inputs, on average"),
        }
        if self.baseline is not None:
            about = f"those of {self.baseline.summary['inputs'].value} training inputs, drawn at random"
            told["patterns_of_training"] = Estimate(self.baseline.summary["patterns"].value, about=about)
        about = "patterns that more inputs of the same kind would still show (Chao2): at least so many"
        told["patterns_unseen"] = unseen_estimate(unseen, about)
        return told


def leading_neurons(values: Tensor, widths: Sequence[int], top: int) -> Tensor:
    """Which neurons are among the `top` highest of their layer, boolean, shape of the values (samples, neurons).

    Of equal values the neuron with the lower number leads, so that exactly min(top, width) neurons of a layer do.

    >>> leading_neurons(torch.tensor([[1.0, 3.0, 3.0, 3.0, 5.0, 0.0]]), [4, 2], 2).int().tolist()
    [[0, 1, 1, 0, 1, 1]]
    """
    if bool(values.isnan().any()):
        raise DataError("a value is NaN, which has no place in an order: which neurons lead cannot be said")
    return leading(values, widths, top)


def leading(values: Tensor, widths: Sequence[int], top: int) -> Tensor:
    """`leading_neurons` of values that are numbers for certain."""
    if kernels.usable(values):
        from weakspot.kernels.leading import leading_of_layers

        return leading_of_layers(values, tuple(widths), top)
    leads = torch.empty_like(values, dtype=torch.bool)
    for width, columns in _alike(tuple(widths), values.device).items():
        own = values.index_select(1, columns).unflatten(1, (-1, width))
        leads.index_copy_(1, columns, _leading(own, min(top, width)).flatten(1))
    return leads


@lru_cache(8)
def _alike(widths: tuple[int, ...], device: torch.device) -> dict[int, Tensor]:
    """The neurons of all layers of the same width, by width: such layers are compared in one go."""
    layers = torch.arange(sum(widths), device=device).split(widths)
    return {width: torch.cat([own for own in layers if len(own) == width]) for width in sorted(set(widths))}


def _leading(values: Tensor, top: int) -> Tensor:
    """Which are the `top` highest of the last dimension, the first of equals."""
    least = values.topk(top, dim=-1).values[..., -1:]
    if values.is_cpu:  # a GPU would have to wait for the question whether there are equals
        leads = values >= least
        if int(leads.sum()) == top * values[..., 0].numel():
            return leads
    above, tied = values > least, values == least
    return above | (tied & (tied.cumsum(-1) <= top - above.sum(-1, keepdim=True)))


def possible_patterns(widths: Sequence[int], top: int) -> int:
    """The number of patterns there can be: Π C(width, k) over the layers.

    >>> possible_patterns([4, 2], 3)
    4
    """
    return prod(comb(width, min(top, width)) for width in widths)


def pattern_words(leads: Tensor) -> Tensor:
    """A hash of 128 bits of each row's pattern, the same on every machine; int64, shape (samples, 2).

    Each neuron has two random words, and a pattern the sums of its neurons' words, modulo 2⁶⁴: two different patterns
    have the same with chance 2⁻¹²⁸ (Zobrist 1970).
    """
    sums = [torch.where(leads, word, 0).sum(1) for word in _neuron_words(leads.shape[1], leads.device)]
    return torch.stack(sums, 1)


@lru_cache(8)
def _neuron_words(neurons: int, device: torch.device) -> Tensor:
    drawn = np.frombuffer(shake_128(b"weakspot").digest(16 * neurons), dtype="<i8")
    return torch.tensor(drawn.reshape(2, neurons).astype(np.int64), device=device)


def inputs_per_pattern(words: np.ndarray) -> np.ndarray:
    """How many inputs share each distinct pattern, the most frequent first; words as `pattern_words` gives them."""
    whole = np.ascontiguousarray(words).view(np.dtype((np.void, 16))).ravel()
    return np.sort(np.unique(whole, return_counts=True)[1])[::-1]
