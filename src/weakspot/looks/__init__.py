"""Looks: neighbours, Monte-Carlo dropout. The interface is `weakspot.core.look.Look`."""

from weakspot.core.look import Look, Original
from weakspot.looks.dropout import McDropout
from weakspot.looks.geometry import Rotate, Scale, Shear, Shift
from weakspot.looks.jpeg import Jpeg
from weakspot.looks.neighbour import Neighbour
from weakspot.looks.ranges import VARIATIONS, variation
from weakspot.looks.values import Blur, Brightness, Contrast, Noise
from weakspot.looks.variations import (
    GRAIN,
    Bounds,
    Combined,
    Either,
    Geometric,
    Photometric,
    Quantity,
    Range,
    Variation,
    per_image,
    recalled,
)
from weakspot.looks.warping import warp
from weakspot.looks.weather import Fog, Rain

__all__ = [
    "GRAIN",
    "VARIATIONS",
    "Blur",
    "Bounds",
    "Brightness",
    "Combined",
    "Contrast",
    "Either",
    "Fog",
    "Geometric",
    "Jpeg",
    "Look",
    "McDropout",
    "Neighbour",
    "Noise",
    "Original",
    "Photometric",
    "Quantity",
    "Rain",
    "Range",
    "Rotate",
    "Scale",
    "Shear",
    "Shift",
    "Variation",
    "per_image",
    "recalled",
    "variation",
    "warp",
]
