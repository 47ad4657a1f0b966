"""Bootstrap intervals of the distance between two classes, over their images.

A distance between two *measured* probability vectors is too large: the noise of each adds to it, the more the fewer
images a class has. Resampling adds the same noise once more, so the replicates of a plain bootstrap all lie above the
truth and their percentiles hardly ever cover it. What resampling adds on top tells how much to take off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from weakspot.classes.membership import Members, class_sizes, images_of
from weakspot.classes.metrics_activation import Bits, activation_counts, check_bits, unpacked
from weakspot.classes.metrics_distance import activation_distance
from weakspot.classes.pairs import Cutoff, cutoff_score, pair_values
from weakspot.core.errors import ConfigError, DataError

Floats = NDArray[np.float64]

_BLOCK_BYTES = 256 << 20
Squared = Callable[[Bits, Members, int, Iterable[NDArray[np.float32]], bool], Iterator[Floats]]
"""As `squared_distances`."""


@dataclass(frozen=True)
class DistanceEstimate:
    """Distances of all pairs of classes, freed of sampling noise, and how sure they are."""

    squared: Floats
    """Estimate of Δ² for each pair a < b; below zero where noise is all there is."""
    error: Floats
    """Its standard error."""

    @property
    def distance(self) -> Floats:
        """Δ for each pair."""
        return np.sqrt(np.maximum(self.squared, 0))

    def interval(self, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of Δ for each pair."""
        reach = float(ndtri((1 + confidence) / 2)) * self.error
        low, high = self.squared - reach, self.squared + reach
        return np.sqrt(np.maximum(low, 0)), np.sqrt(np.maximum(high, 0))

    def certainty(self, cutoff: Cutoff = "std") -> Floats:
        """Chance that a pair truly lies as near as those the cutoff reports; the cutoff itself is taken as known."""
        limit = -cutoff_score(-self.distance, cutoff if isinstance(cutoff, str) else -cutoff)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance: Floats = ndtr((np.sign(limit) * limit**2 - self.squared) / self.error)
        return chance


def bootstrap_distance(
    bits: Bits,
    members: Members,
    *,
    neurons: int,
    seed: int,
    replicates: int = 100,
    normalise: bool = False,
    rank: NDArray[np.int64] | None = None,
    belongs: NDArray[np.str_] | None = None,
    squared: Squared | None = None,
) -> DistanceEstimate:
    """Distances between classes with their sampling noise removed, by resampling images (Efron 1979, `efron1979`).

    With D the measured squared distance and D* those of resampled images: estimate 2·D − mean(D*), which takes off
    the noise that D has over the truth as D* has it over D; standard error std(D*).

    bits: packed activations, images × ceil(neurons/8).
    members: images × classes, each class with at least two images.
    neurons: how many of the bits are neurons.
    seed: of the draws; the same seed gives the same estimate.
    replicates: how often to draw as many images as there are, with replacement; two or more.
    normalise: as in `activation_distance`.
    rank: place of each image in an order of its own, such as that of the ids; draws then do not depend on the
        order in which the images come.
    belongs: what each image belongs to, where some belong together: whole groups are then drawn.
    squared: what works out the distances of resampled images, by default `squared_distances`.
    """
    check_bits(bits, members, neurons)
    if class_sizes(members).min() < 2:
        raise DataError("expected two or more images of each class, got fewer; leave out classes that small.")
    if replicates < 2:
        raise ConfigError(f"expected two or more replicates, got {replicates}.")
    counts = activation_counts(bits, members, neurons=neurons)
    measured = pair_values(activation_distance(counts, normalise=normalise, images=class_sizes(members))) ** 2
    del counts
    number, total, squares = (np.zeros_like(measured) for _ in range(3))
    weights = _weights(members, neurons, replicates, seed, rank, belongs)
    for replicate in (squared or squared_distances)(bits, members, neurons, weights, normalise):
        added = replicate - measured
        drawn = ~np.isnan(added)  # a replicate may miss a small class
        number += drawn
        total += np.where(drawn, added, 0)
        squares += np.where(drawn, added, 0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / number
        error = np.sqrt(np.maximum(squares - number * mean**2, 0) / (number - 1))
    return DistanceEstimate(measured - mean, error)


def squared_distances(
    bits: Bits, members: Members, neurons: int, groups: Iterable[NDArray[np.float32]], normalise: bool
) -> Iterator[Floats]:
    """Of each resampling of the images the squared distance of every two classes; groups: as `_weights` gives them."""
    for probability in _resampled(bits, members, neurons, groups):
        yield pair_values(activation_distance(probability, normalise=normalise)) ** 2


def _weights(
    members: Members,
    neurons: int,
    replicates: int,
    seed: int,
    rank: NDArray[np.int64] | None,
    belongs: NDArray[np.str_] | None,
) -> Iterator[NDArray[np.float32]]:
    """How often each image is drawn, replicates × images, as many replicates at a time as memory allows."""
    classes = members.shape[1]
    drawn = rank if belongs is None else np.unique(belongs, return_inverse=True)[1]
    images = members.shape[0] if belongs is None else int(drawn.max()) + 1  # type: ignore[union-attr]
    generator, group = np.random.default_rng(seed), max(1, _BLOCK_BYTES // (4 * classes * neurons))
    for start in range(0, replicates, group):
        draws = (generator.integers(images, size=images) for _ in range(min(group, replicates - start)))
        weights = np.stack([np.bincount(draw, minlength=images) for draw in draws]).astype(np.float32)
        yield weights if drawn is None else weights[:, drawn]


def _resampled(
    bits: Bits, members: Members, neurons: int, groups: Iterable[NDArray[np.float32]]
) -> Iterator[NDArray[np.float32]]:
    """Activation probabilities (classes × neurons) of one resampling of the images after another."""
    for weights in groups:
        sizes = (members.T @ weights.T).T
        counts = _weighted_counts(bits, members, neurons, weights)
        with np.errstate(invalid="ignore"):
            counts /= sizes[:, :, None]
        yield from counts


def _weighted_counts(bits: Bits, members: Members, neurons: int, weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Images that activate each neuron, each as often as it was drawn: replicates × classes × neurons."""
    counts = np.zeros((len(weights), members.shape[1], neurons), dtype=np.float32)
    for number, images in enumerate(images_of(members)):
        first = 0
        for part in unpacked(bits, images, neurons):
            drawn = weights[:, images[first : first + len(part)]]
            counts[:, number] += drawn @ part.astype(np.float32)
            first += len(part)
    return counts
