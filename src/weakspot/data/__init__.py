"""Data sets, files and images.

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.data.pictures import Pictures

__all__ = [
    "Pictures",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.data",
    {
        "pictures": "Pictures",
    },
)
