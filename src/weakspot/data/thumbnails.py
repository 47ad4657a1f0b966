"""Small pictures of a batch of images, for Findings that show some of them."""

import numpy as np
import torch
from torch import Tensor

from weakspot.data.images import pixels_of


def thumbnails(inputs: Tensor, size: int) -> np.ndarray:
    """Small pictures of images (samples, channels, height, width): (samples, height, width, 3), uint8.

    size: of the longer side in pixels; images that are no larger stay as they are. Values from 0 to 1 are shown as they
        are, so that what is dark stays dark; others are stretched, image by image.
    """
    height, width = inputs.shape[2:]
    scale = min(1.0, size / max(height, width))
    small = max(1, round(height * scale)), max(1, round(width * scale))
    reduced = inputs if scale == 1 else torch.nn.functional.adaptive_avg_pool2d(inputs, small)
    return np.stack([pixels_of(image) for image in reduced.cpu().numpy()])
