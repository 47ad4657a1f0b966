"""Copies of images, one pair after the other: Zauner's hash by scipy's cosine transform, correlation by numpy."""

import numpy as np
from scipy.fft import dctn


def hash_bits(picture):
    """The 63 lowest frequencies about their median."""
    weights = [77, 150, 29] if picture.shape[2] == 3 else [256]
    grey = sum(int(w) * picture[..., c].astype(int) for c, w in enumerate(weights)) // 256
    lowest = dctn(grey.astype(float), type=2)[:8, :8].ravel()[1:]
    return lowest > np.median(lowest)


def alike(first, second, distance, correlation):
    """The correlation of two small pictures that are near copies; None where they are none."""
    if int((hash_bits(first) != hash_bits(second)).sum()) > distance:
        return None
    if first.std() == 0 or second.std() == 0:
        return None
    value = np.corrcoef(first.ravel().astype(float), second.ravel().astype(float))[0, 1]
    return value if value >= correlation else None


def nearest(images, pictures, others, other_pictures, distance, correlation, same):
    """Of each image the place and similarity of its most similar copy; exact copies first."""
    found = []
    for one, (image, picture) in enumerate(zip(images, pictures, strict=True)):
        best = (-1, 0.0)
        for other, (candidate, small) in enumerate(zip(others, other_pictures, strict=True)):
            if same and one == other:
                continue
            value = 1.0 if np.array_equal(image, candidate) else alike(picture, small, distance, correlation)
            exact = np.array_equal(image, candidate)
            key = 2.0 if exact else value
            if key is not None and key > best[1]:
                best = (other, key)
        found.append((best[0], min(best[1], 1.0)))
    return found
