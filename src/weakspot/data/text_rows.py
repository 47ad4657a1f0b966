"""Text as rows of bytes: what a probe keeps per sample is numbers."""

import numpy as np

NAME_BYTES = 64
"""Longer text is cut."""


def encoded(names: np.ndarray) -> np.ndarray:
    """Names as rows of bytes, (samples, NAME_BYTES), uint8."""
    short = [str(name).encode()[:NAME_BYTES] for name in names.tolist()]
    return np.array(short, dtype=f"S{NAME_BYTES}").view(np.uint8).reshape(len(short), NAME_BYTES)


def decoded(rows: np.ndarray) -> np.ndarray:
    """The names behind rows of bytes.

    >>> decoded(encoded(np.array(["rain", "fog"]))).tolist()
    ['rain', 'fog']
    """
    names = np.ascontiguousarray(rows).view(f"S{NAME_BYTES}")[:, 0].tolist()
    return np.array([name.decode(errors="ignore") for name in names])
