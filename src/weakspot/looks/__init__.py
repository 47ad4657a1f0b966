"""Looks: neighbours, Monte-Carlo dropout, ensembles, flips, stored samples. The interface is `core.look.Look`."""

from weakspot.core.look import Look, Original
from weakspot.looks.axes import ReversedAxes
from weakspot.looks.boxes import Box
from weakspot.looks.corruptions import Corruption
from weakspot.looks.dropout import McDropout
from weakspot.looks.flips import Flips
from weakspot.looks.functions import ByFunction
from weakspot.looks.geometry import Rotate, Scale, Shear, Shift
from weakspot.looks.jpeg import Jpeg
from weakspot.looks.members import Ensemble, Members
from weakspot.looks.neighbour import Neighbour
from weakspot.looks.ranges import VARIATIONS, variation
from weakspot.looks.samples import sampling
from weakspot.looks.stored import StoredSamples
from weakspot.looks.values import Blur, Brightness, Contrast, Noise
from weakspot.looks.variations import (
    GRAIN,
    Bounds,
    Combined,
    Geometric,
    OneOf,
    Photometric,
    Quantity,
    Range,
    Variation,
    moves,
    per_image,
    recalled,
)
from weakspot.looks.warping import warp
from weakspot.looks.weather import Fog, Rain
from weakspot.looks.windows import SlidingWindow

__all__ = [
    "GRAIN",
    "VARIATIONS",
    "Blur",
    "Bounds",
    "Box",
    "Brightness",
    "ByFunction",
    "Combined",
    "Contrast",
    "Corruption",
    "Ensemble",
    "Flips",
    "Fog",
    "Geometric",
    "Jpeg",
    "Look",
    "McDropout",
    "Members",
    "Neighbour",
    "Noise",
    "OneOf",
    "Original",
    "Photometric",
    "Quantity",
    "Rain",
    "Range",
    "ReversedAxes",
    "Rotate",
    "Scale",
    "Shear",
    "Shift",
    "SlidingWindow",
    "StoredSamples",
    "Variation",
    "moves",
    "per_image",
    "recalled",
    "sampling",
    "variation",
    "warp",
]
