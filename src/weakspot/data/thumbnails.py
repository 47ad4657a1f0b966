"""Small pictures of a batch of images, for Findings that show some of them; made where the batch lies."""

import torch
from torch import Tensor


def thumbnails(inputs: Tensor, size: int) -> Tensor:
    """Small pictures of images (samples, channels, height, width): (samples, height, width, 3), uint8.

    size: of the longer side in pixels; images that are no larger stay as they are. Values from 0 to 1 are shown as they
        are, so that what is dark stays dark; others are stretched, image by image.
    """
    height, width = inputs.shape[2:]
    scale = min(1.0, size / max(height, width))
    small = max(1, round(height * scale)), max(1, round(width * scale))
    reduced = inputs if scale == 1 else torch.nn.functional.adaptive_avg_pool2d(inputs, small)
    flat = reduced.flatten(1)
    within = (flat.amin(1) >= 0) & (flat.amax(1) <= 1)
    shown = (reduced if reduced.shape[1] == 3 else reduced[:, :1]).double()
    low = torch.where(within, 0.0, shown.flatten(1).amin(1))[:, None, None, None]
    span = torch.where(within, 1.0, shown.flatten(1).amax(1))[:, None, None, None] - low
    scaled = torch.where(span > 0, (shown - low) / span, 0.0)
    pixels = scaled.clamp(0, 1).mul(255).add(0.5).to(torch.uint8).movedim(1, -1)
    return pixels.expand(*pixels.shape[:3], 3).contiguous()
