"""Looks: neighbours, Monte-Carlo dropout. The interface is `weakspot.core.look.Look`."""

from weakspot.core.look import Look, Original
from weakspot.looks.dropout import McDropout
from weakspot.looks.variations import Combined, Geometric, Neighbour, Rotate, Shift, Variation, warp

__all__ = [
    "Combined",
    "Geometric",
    "Look",
    "McDropout",
    "Neighbour",
    "Original",
    "Rotate",
    "Shift",
    "Variation",
    "warp",
]
