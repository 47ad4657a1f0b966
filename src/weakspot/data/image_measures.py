"""What can be measured of any image: brightness, contrast, sharpness, noise, saturation, hue, direction of edges.

All but angles and ratios are in units of the data: of images with values from 0 to 1, brightness is from 0 to 1, too.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the luminance (ITU-R BT.601)."""
_LAPLACIAN = ((0.0, 1.0, 0.0), (1.0, -4.0, 1.0), (0.0, 1.0, 0.0))
_IMMERKAER = ((1.0, -2.0, 1.0), (-2.0, 4.0, -2.0), (1.0, -2.0, 1.0))
_DECIMALS = 6
"""Of the values: more would depend on the order of sums."""
_LEAST_COLOUR = 1e-3
"""Below so much saturation an image has no hue."""
_LEAST_COHERENCE = 0.05
"""Below so much coherence of its gradients an image has no direction."""


class Measure(NamedTuple):
    """What is known of one measure: what it is, in which unit, the words for small and large values, its period."""

    about: str
    unit: str
    low: str = ""
    high: str = ""
    period: float | None = None


MEASURES: Mapping[str, Measure] = {
    "brightness": Measure("mean luminance", "units of the data", "dark", "bright"),
    "contrast": Measure("standard deviation of the luminance", "units of the data", "low contrast", "high contrast"),
    "sharpness": Measure("standard deviation of the Laplacian over that of the luminance", "ratio", "blurred", "sharp"),
    "noise": Measure("noise (Immerkær 1996) over the standard deviation of the luminance", "ratio", "smooth", "noisy"),
    "saturation": Measure("range of the colour channels over the largest", "ratio", "pale", "colourful"),
    "hue": Measure("mean hue: 0 red, 120 green, 240 blue; none without colour", "degrees", period=360.0),
    "edge angle": Measure("direction of most edges, 0 horizontal, 90 vertical; none where no direction prevails",
                          "degrees", period=180.0),
}  # fmt: skip


def measurable(inputs: Tensor) -> bool:
    """Whether inputs are images that can be measured: (samples, channels, height, width), 3 × 3 pixels and more.

    >>> measurable(torch.zeros(2, 3, 8, 8)), measurable(torch.zeros(2, 8)), measurable(torch.zeros(2, 1, 2, 8))
    (True, False, False)
    """
    return inputs.ndim == 4 and min(inputs.shape[2:]) >= 3 and inputs.shape[1] >= 1


def image_measures(images: Tensor) -> dict[str, Tensor]:
    """Every measure of `MEASURES` for images (samples, channels, height, width), float64 (samples,).

    Images of three channels are taken as red, green and blue; of others the luminance is the mean of the channels, and
    they have no colour. A value that an image has none of is not a number.

    - contrast, of a constant image, is 0, and so are its sharpness and noise
    - noise: √(π/2) / (6 (W − 2)(H − 2)) · Σ |Y ∗ N|, N = (1 −2 1, −2 4 −2, 1 −2 1), which edges hardly reach
      (`immerkaer1996`), over the contrast: so a dark image is not a smooth one
    - saturation: Σ (largest − smallest channel) / Σ |largest channel|
    - edge angle: 90° + ½ atan2(2 Σ g_x g_y, Σ g_x² − g_y²), g the central differences, y upwards (`bigun1987`)
    """
    pixels = images.float()
    grey = _luminance(pixels)
    contrast = grey.double().flatten(1).std(1, correction=0)
    values = {
        "brightness": _mean(grey),
        "contrast": contrast,
        "sharpness": _ratio(_filtered(grey, _LAPLACIAN).double().flatten(1).std(1, correction=0), contrast),
        "noise": _ratio((torch.pi / 2) ** 0.5 / 6 * _mean(_filtered(grey, _IMMERKAER).abs()), contrast),
        **_colour(pixels),
        "edge angle": _edge_angle(grey),
    }
    return {name: values[name].round(decimals=_DECIMALS) for name in MEASURES}


def _mean(values: Tensor) -> Tensor:
    return values.flatten(1).mean(1, dtype=torch.float64)


def _sum(values: Tensor) -> Tensor:
    return values.flatten(1).sum(1, dtype=torch.float64)


def _ratio(first: Tensor, second: Tensor) -> Tensor:
    return torch.where(second > 0, first / torch.where(second > 0, second, 1.0), 0.0)


def _luminance(pixels: Tensor) -> Tensor:
    """(samples, height, width)."""
    if pixels.shape[1] != 3:
        return pixels.mean(1)
    red, green, blue = pixels.unbind(1)
    return LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue


def _filtered(grey: Tensor, kernel: tuple[tuple[float, ...], ...]) -> Tensor:
    """The luminance filtered by 3 × 3 weights, without the border."""
    height, width = grey.shape[1:]
    result = torch.zeros_like(grey[:, 1:-1, 1:-1])
    for row, weights in enumerate(kernel):
        for column, weight in enumerate(weights):
            if weight:
                result = result + weight * grey[:, row : height - 2 + row, column : width - 2 + column]
    return result


def _colour(pixels: Tensor) -> dict[str, Tensor]:
    none = torch.full((len(pixels),), torch.nan, dtype=torch.float64, device=pixels.device)
    if pixels.shape[1] != 3:
        return {"saturation": none, "hue": none}
    highest, lowest = pixels.amax(1), pixels.amin(1)
    saturation = _ratio(_sum(highest - lowest), _sum(highest.abs()))
    red, green, blue = (_mean(pixels[:, channel]) for channel in range(3))
    x, y = red - (green + blue) / 2, 3**0.5 / 2 * (green - blue)
    hue = torch.rad2deg(torch.atan2(y, x)) % 360
    coloured = torch.hypot(x, y) >= _LEAST_COLOUR * _mean(highest.abs())
    return {"saturation": saturation, "hue": torch.where((saturation > 0) & coloured, hue, none)}


def _edge_angle(grey: Tensor) -> Tensor:
    across = grey[:, 1:-1, 2:] - grey[:, 1:-1, :-2]
    up = grey[:, :-2, 1:-1] - grey[:, 2:, 1:-1]
    energy, difference, product = _sum(across**2 + up**2), _sum(across**2 - up**2), 2 * _sum(across * up)
    angle = (90 + torch.rad2deg(torch.atan2(product, difference)) / 2) % 180
    clear = torch.hypot(product, difference) > _LEAST_COHERENCE * energy
    return torch.where(clear, angle, torch.nan)
