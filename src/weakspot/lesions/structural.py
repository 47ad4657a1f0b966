"""Structural uncertainty: how far the lesions of single looks agree with those of their mean (`molchanova2025`).

The masks of all looks at a case are kept as bits, where any look sees a lesion; connected components are found on these
voxels alone, so neither memory nor time grows with the size of the volume times the number of looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weakspot.core.errors import DataError
from weakspot.core.finding import Finding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SampledMasks:
    """The lesion masks of all looks at a case, at the voxels where any of them, or their mean, has a lesion.

    places: of these voxels, counted through the volume in C order, rising.
    bits: shape (voxels, ⌈looks / 8⌉): the masks of 8 looks in a byte, the first look in its highest bit.
    looks: how many.
    sides: of the volume.
    """

    places: Ints
    bits: NDArray[np.uint8]
    looks: int
    sides: tuple[int, ...]

    @classmethod
    def of(cls, packed: Sequence[NDArray[np.uint8]], mean: np.ndarray) -> "SampledMasks":
        """From the mask of each look, flat and packed by `np.packbits`, and that of their mean, boolean."""
        union = np.bitwise_or.reduce([*packed, np.packbits(mean)])
        places = np.flatnonzero(np.unpackbits(union, count=mean.size))
        inside = [(own[places >> 3] >> (7 - (places & 7)).astype(np.uint8)) & 1 for own in packed]
        bits = np.packbits(np.stack(inside, 1), axis=1)
        return cls(places.astype(np.int64), bits, len(packed), mean.shape)

    def mask(self, look: int) -> NDArray[np.bool_]:
        """Which of the voxels are in a look's lesions."""
        return ((self.bits[:, look // 8] >> (7 - look % 8)) & 1).astype(np.bool_)

    @cached_property
    def touching(self) -> tuple[Ints, Ints]:
        """Pairs of voxels that touch by face, edge or corner, by their numbers."""
        padded = np.array([side + 2 for side in self.sides])
        strides = np.append(np.cumprod(padded[::-1])[::-1][1:], 1)
        at = (np.stack(np.unravel_index(self.places, self.sides), 1) + 1) @ strides
        steps = [np.array(step) for step in product((-1, 0, 1), repeat=len(self.sides)) if any(step)]
        pairs = []
        for jump in (int(step @ strides) for step in steps[len(steps) // 2 :]):
            found = np.searchsorted(at, at + jump)
            met = np.flatnonzero(at[np.minimum(found, len(at) - 1)] == at + jump)
            pairs.append((met, found[met]))
        one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return one, other

    def lesions(self, look: int, *, smallest: int = 1) -> Ints:
        """The lesion of a look that each voxel belongs to, 1, 2, …; 0 for none; smaller ones are left out."""
        inside = self.mask(look)
        one, other = self.touching
        both = inside[one] & inside[other]
        graph = coo_array((np.ones(int(both.sum()), dtype=bool), (one[both], other[both])), shape=(len(inside),) * 2)
        _, component = connected_components(graph, directed=False)
        sizes = np.bincount(component[inside], minlength=len(inside) + 1)
        kept = inside & (sizes[component] >= smallest)
        numbers = np.zeros(len(inside), dtype=np.int64)
        numbers[kept] = np.unique(component[kept], return_inverse=True)[1] + 1
        return numbers


def structural_uncertainty(
    masks: SampledMasks, labels: np.ndarray, count: int, *, smallest: int = 1
) -> tuple[Floats, float]:
    """Of each lesion of the mean 1 − mean over the looks of its IoU with the look's lesion that it shares most with.

    And of the case: 1 − mean over the looks of the IoU of all lesions together (LSU and PSU of Molchanova et al. 2025).

    labels: the lesions of the mean prediction, 1 … count.
    smallest: the fewest voxels of a look's lesion.

    >>> own = np.array([[1, 1, 0, 2, 2, 2]])
    >>> packed = [np.packbits(np.array(mask, dtype=bool)) for mask in ([1, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0])]
    >>> lesions, case = structural_uncertainty(SampledMasks.of(packed, own > 0), own, 2)
    >>> lesions.round(3).tolist(), round(case, 3)
    ([0.25, 0.667], 0.5)
    """
    ours = np.asarray(labels).ravel()[masks.places].astype(np.int64)
    sizes = np.bincount(ours, minlength=count + 1)
    shared, whole = np.zeros(count + 1), 0.0
    for look in range(masks.looks):
        theirs = masks.lesions(look, smallest=smallest)
        shared += _largest_iou(ours, theirs, sizes)
        either = int(((ours > 0) | (theirs > 0)).sum())
        whole += int(((ours > 0) & (theirs > 0)).sum()) / either if either else 1.0
    return 1 - shared[1:] / masks.looks, 1 - whole / masks.looks


def _largest_iou(ours: Ints, theirs: Ints, sizes: Ints) -> Floats:
    """Of each of our lesions the largest IoU with one of theirs."""
    their_sizes = np.bincount(theirs)
    both = (ours > 0) & (theirs > 0)
    pairs, common = np.unique(ours[both] * len(their_sizes) + theirs[both], return_counts=True)
    one, other = np.divmod(pairs, len(their_sizes))
    largest = np.zeros(len(sizes))
    np.maximum.at(largest, one, common / (sizes[one] + their_sizes[other] - common))
    return largest


def sampled_masks(finding: Finding, case: str) -> SampledMasks:
    """The masks of all looks at a case, from a Finding of `Lesions` alone."""
    arrays = finding.arrays
    if "sample_masks" not in arrays:
        raise DataError(f"{finding.name} holds no masks of its looks: sample the cases again")
    numbers = np.flatnonzero(np.asarray(arrays["cases"]) == case)
    if not len(numbers):
        raise DataError(f"{finding.name} has no case {case!r}")
    number = int(numbers[0])
    counts = np.asarray(arrays["case_sampled_voxels"], dtype=np.int64)
    start = int(counts[:number].sum())
    rows = slice(start, start + int(counts[number]))
    sides = tuple(int(side) for side in arrays["case_sides"][number])
    looks = int(arrays["case_looks"][number])
    return SampledMasks(
        np.asarray(arrays["sample_places"][rows], dtype=np.int64),
        np.asarray(arrays["sample_masks"][rows]),
        looks,
        sides,
    )
