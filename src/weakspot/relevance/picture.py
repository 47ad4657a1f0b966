"""Pictures of relevance: a heat map beside and over the input, red for and blue against.

One diverging colour map, white at zero, red for positive and blue for negative relevance, darker the further from
zero; red against blue stays distinct in the common forms of colour blindness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from weakspot.core.errors import DataError

Pixels = NDArray[np.uint8]
Values = NDArray[np.float64]

STOPS = np.linspace(-1, 1, 7)
COLOURS = np.array(
    [(5, 48, 97), (42, 113, 178), (146, 197, 222), (247, 247, 247), (244, 165, 130), (190, 40, 50), (103, 0, 31)]
)
GAP = 6
BAR = 12


def colours(values: Values) -> Pixels:
    """The colour of each value in [−1, 1], shape (..., 3)."""
    channels = [np.interp(values, STOPS, COLOURS[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def heat_map(relevance: Any, *, limit: float | None = None) -> Pixels:
    """Colours of a relevance map (H, W) or (channels, H, W), whose channels are added up.

    `limit` is the relevance that gets the darkest colours; by default the largest magnitude in the map.
    """
    return colours(_scaled(relevance, limit))


def overlay(image: Any, relevance: Any, *, limit: float | None = None) -> Pixels:
    """The heat map laid over the input in grey: the stronger the relevance, the more of its colour."""
    scaled = _scaled(relevance, limit)
    grey = _pixels(image).mean(-1, keepdims=True)
    _same_size(grey, scaled)
    strength = np.abs(scaled)[..., None] ** 0.7  # so that weak relevance is seen at all
    faint = 255 - 0.6 * (255 - grey)
    mixed = (1 - strength) * faint + strength * colours(np.sign(scaled) * np.maximum(np.abs(scaled), 0.35))
    pixels: Pixels = mixed.round().astype(np.uint8)
    return pixels


def side_by_side(
    images: Sequence[Any], relevances: Sequence[Any], *, limit: float | None = None, width: int = 192
) -> Image.Image:
    """One row per sample: the input, its heat map, and the heat map over the input; a scale below.

    Images are (channels, H, W) or (H, W), with values in [0, 1] or bytes. With a `limit` all rows share one scale;
    without, the darkest colour of each row is its own largest magnitude, written at the row's foot.
    """
    if len(images) != len(relevances) or not len(images):
        raise DataError(f"expected as many relevance maps as images, got {len(relevances)} for {len(images)}")
    rows = [_row(image, relevance, limit, width) for image, relevance in zip(images, relevances, strict=True)]
    sheet = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    return sheet


def _row(image: Any, relevance: Any, limit: float | None, width: int) -> Image.Image:
    panels = [
        _enlarged(_pixels(image).round().astype(np.uint8), width),
        _enlarged(heat_map(relevance, limit=limit), width),
        _enlarged(overlay(image, relevance, limit=limit), width),
    ]
    height = panels[0].height
    row = Image.new("RGB", (3 * width + 4 * GAP, height + 2 * GAP + BAR + 14), "white")
    for position, panel in enumerate(panels):
        row.paste(panel, (GAP + position * (width + GAP), GAP))
    _draw_scale(row, _limit(_map(relevance), limit), GAP + width + GAP, height + 2 * GAP, width)
    return row


def _draw_scale(row: Image.Image, limit: float, left: int, top: int, width: int) -> None:
    """The colours from −limit to limit, with numbers."""
    ramp = np.broadcast_to(colours(np.linspace(-1, 1, width)), (BAR, width, 3))
    row.paste(Image.fromarray(np.ascontiguousarray(ramp)), (left, top))
    draw = ImageDraw.Draw(row)
    for share, text, anchor in ((0.0, f"-{limit:.2g}", "lt"), (0.5, "0", "mt"), (1.0, f"+{limit:.2g}", "rt")):
        draw.text((left + share * (width - 1), top + BAR + 2), text, fill="black", anchor=anchor)


def _enlarged(pixels: Pixels, width: int) -> Image.Image:
    """At the given width, every pixel a clean square where it grows."""
    picture = Image.fromarray(np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3))))
    height = max(1, round(picture.height * width / picture.width))
    resampling = Image.Resampling.NEAREST if width >= picture.width else Image.Resampling.BOX
    return picture.resize((width, height), resampling)


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _map(relevance: Any) -> Values:
    """Relevance per pixel."""
    values = _array(relevance).astype(np.float64)
    if values.ndim not in (2, 3):
        raise DataError(
            f"expected a relevance map (H, W) or (channels, H, W), got shape {values.shape}; "
            "take one sample of a batch, one slice of a volume"
        )
    return values.sum(0) if values.ndim == 3 else values


def _limit(values: Values, limit: float | None) -> float:
    return float(limit if limit is not None else np.abs(values).max()) or 1.0


def _scaled(relevance: Any, limit: float | None) -> Values:
    values = _map(relevance)
    if not np.isfinite(values).all():
        raise DataError("expected finite relevance, got NaN or infinity; look at the conservation table for its source")
    return np.clip(values / _limit(values, limit), -1, 1)


def _pixels(image: Any) -> Values:
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
