"""Pictures of relevance: a heat map beside and over the input, red for and blue against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from weakspot.core.errors import DataError
from weakspot.heat_pictures import Pixels, colours, darkest, heat_map, image_pixels, overlay, summed_map

__all__ = ["colours", "heat_map", "overlay", "side_by_side"]

GAP = 6
BAR = 12


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
        _enlarged(image_pixels(image).round().astype(np.uint8), width),
        _enlarged(heat_map(relevance, limit=limit), width),
        _enlarged(overlay(image, relevance, limit=limit), width),
    ]
    height = panels[0].height
    row = Image.new("RGB", (3 * width + 4 * GAP, height + 2 * GAP + BAR + 14), "white")
    for position, panel in enumerate(panels):
        row.paste(panel, (GAP + position * (width + GAP), GAP))
    _draw_scale(row, darkest(summed_map(relevance), limit), GAP + width + GAP, height + 2 * GAP, width)
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
