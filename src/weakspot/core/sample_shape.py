"""What may be wrong with the shape of samples that a model cannot take."""

_MOST_CHANNELS = 4
"""Of an image; a longer side is none of channels."""
_PYTHON = "ArraySource(…, channels=…)"


def channels_hint(shape: tuple[int, ...]) -> str:
    """What to write where channels seem not to come first; nothing where they may.

    >>> channels_hint((3, 32, 32)), channels_hint((32, 32, 3)).partition(":")[0]
    ('', 'samples have the shape (32, 32, 3), and channels come first')
    """
    what = f"samples have the shape {shape}, and channels come first"
    if len(shape) == 3 and shape[2] <= _MOST_CHANNELS < min(shape[:2]):
        words = "for arrays of height × width × channels write channels: last"
    elif len(shape) == 2:
        words = "for grey images without them write channels: none"
    else:
        return ""
    return f"{what}: {words} under the split; in Python {_PYTHON}"
