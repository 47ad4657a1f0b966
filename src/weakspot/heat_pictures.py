"""Heat maps as pictures: red for and blue against, alone or over the input. numpy alone, for both sides of torch.

One diverging colour map, white at zero, red for positive and blue for negative relevance, darker the further from
zero; red against blue stays distinct in the common forms of colour blindness.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Pixels = NDArray[np.uint8]
Values = NDArray[np.float64]

STOPS = np.linspace(-1, 1, 7)
COLOURS = np.array(
    [(5, 48, 97), (42, 113, 178), (146, 197, 222), (247, 247, 247), (244, 165, 130), (190, 40, 50), (103, 0, 31)]
)


def colours(values: Values) -> Pixels:
    """The colour of each value in [−1, 1], shape (..., 3)."""
    channels = [np.interp(values, STOPS, COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def heat_map(relevance: Any, *, limit: float | None = None) -> Pixels:
    """Colours of a relevance map (H, W) or (channels, H, W), whose channels are added up.

    limit: the relevance that gets the darkest colours; by default the largest magnitude in the map.
    """
    return colours(_scaled(relevance, limit))


def overlay(image: Any, relevance: Any, *, limit: float | None = None) -> Pixels:
    """The heat map laid over the input in grey: the stronger the relevance, the more of its colour."""
    scaled = _scaled(relevance, limit)
    grey = image_pixels(image).mean(-1, keepdims=True)
    _same_size(grey, scaled)
    strength = np.abs(scaled)[..., None] ** 0.7  # so that weak relevance is seen at all
    faint = 255 - 0.6 * (255 - grey)
    mixed = (1 - strength) * faint + strength * colours(np.sign(scaled) * np.maximum(np.abs(scaled), 0.35))
    pixels: Pixels = mixed.round().astype(np.uint8)
    return pixels


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def summed_map(relevance: Any) -> Values:
    """Relevance per pixel."""
    values = _array(relevance).astype(np.float64)
    if values.ndim not in (2, 3):
        raise DataError(
            f"expected a relevance map (H, W) or (channels, H, W), got shape {values.shape}; "
            "take one sample of a batch, one slice of a volume"
        )
    return values.sum(0) if values.ndim == 3 else values


def darkest(values: Values, limit: float | None) -> float:
    """The magnitude that gets the darkest colours."""
    return float(limit if limit is not None else np.abs(values).max()) or 1.0


def _scaled(relevance: Any, limit: float | None) -> Values:
    values = summed_map(relevance)
    if not np.isfinite(values).all():
        raise DataError("expected finite relevance, got NaN or infinity; look at the conservation table for its source")
    return np.clip(values / darkest(values, limit), -1, 1)


def image_pixels(image: Any) -> Values:
    """An image as (H, W, 1 or 3) with values from 0 to 255."""
    values = _array(image)
    values = values[None] if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[0] not in (1, 3):
        raise DataError(f"expected an image (H, W) or (1 or 3 channels, H, W), got shape {values.shape}")
    scale = 1.0 if values.dtype == np.uint8 else 255.0
    return np.clip(values.astype(np.float64) * scale, 0, 255).transpose(1, 2, 0)


def _same_size(image: NDArray[Any], relevance: Values) -> None:
    if image.shape[:2] != relevance.shape:
        raise DataError(f"expected relevance of the image's size {image.shape[:2]}, got {relevance.shape}")
