"""Which neurons the images of a class activate (neural paths of DeepInspect).

The activated neurons of an image, its neural path, are kept as packed bits (`numpy.packbits`, eight neurons to a
byte): 26,560 neurons are 3.3 kB per image.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weakspot.classes.membership import Members, class_sizes, images_of
from weakspot.core.errors import DataError

Bits = NDArray[np.uint8]

_BLOCK_BYTES = 64 << 20


def activation_probability(bits: Bits, members: Members, *, neurons: int) -> NDArray[np.float64]:
    """Share of the images of each class that activate each neuron, P(n | C) (Tian et al. 2020, `deepinspect`).

    P(n | C) = |{x ∈ C: out(n, x) > threshold}| / |C|.

    bits: packed activations, images × ceil(neurons/8).
    members: images × classes; the predicted classes, in the paper.
    neurons: how many of the bits are neurons.
    returns: classes × neurons; NaN for a class without images.

    >>> from weakspot.classes import class_members
    >>> bits = np.packbits([[1, 0, 1], [1, 1, 0]], axis=1)
    >>> activation_probability(bits, class_members([0, 0], 1), neurons=3)
    array([[1. , 0.5, 0.5]])
    """
    counts = activation_counts(bits, members, neurons=neurons)
    with np.errstate(invalid="ignore"):
        return counts / class_sizes(members)[:, None]


def activation_counts(bits: Bits, members: Members, *, neurons: int) -> NDArray[np.unsignedinteger]:
    """How many images of each class activate each neuron, classes × neurons.

    In the narrowest type that holds the largest class: 10,000 classes × 50,000 neurons are half a gigabyte for classes
    of up to 255 images, and one for up to 65,535, where probabilities would take four.

    bits: packed activations, images × ceil(neurons/8).
    members: images × classes.
    neurons: how many of the bits are neurons.
    """
    check_bits(bits, members, neurons)
    narrow = np.min_scalar_type(int(class_sizes(members).max(initial=0)))
    counts = np.zeros((members.shape[1], neurons), dtype=narrow)
    for number, images in enumerate(images_of(members)):
        for part in unpacked(bits, images, neurons):
            counts[number] += part.sum(axis=0, dtype=narrow)
    return counts


def neural_paths(bits: Bits, members: Members) -> NDArray[np.int64]:
    """Number of distinct neural paths of each class: sets of neurons that some image of it activates (`deepinspect`).

    bits: packed activations, images × bytes.
    members: images × classes.
    """
    whole = np.dtype((np.void, bits.shape[1]))
    return np.array([np.unique(bits[images].view(whole)).size for images in images_of(members)], dtype=np.int64)


def neuron_coverage(bits: Bits, *, neurons: int) -> NDArray[np.float64]:
    """Share of the neurons that each image activates (Pei et al. 2017, `deepxplore`)."""
    activated: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return activated / neurons


def unpacked(bits: Bits, images: NDArray[np.int64], neurons: int) -> Iterator[NDArray[np.uint8]]:
    """Activations (images × neurons, 0 or 1) of the given images, a block of them at a time."""
    step = max(1, _BLOCK_BYTES // neurons)
    for start in range(0, images.size, step):
        yield np.unpackbits(bits[images[start : start + step]], axis=1, count=neurons)


def check_bits(bits: Bits, members: Members, neurons: int) -> None:
    """Refuses packed bits that do not fit the number of images or neurons."""
    if bits.shape != (members.shape[0], -(-neurons // 8)):
        raise DataError(
            f"expected packed bits of {members.shape[0]} images and {neurons} neurons, shape "
            f"{(members.shape[0], -(-neurons // 8))}, got {bits.shape}; pack each image with numpy.packbits."
        )
