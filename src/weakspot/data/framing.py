"""How images get the size that a model wants: resized, then cropped at the centre, as models were trained."""

from dataclasses import dataclass
from typing import Literal, get_args

from PIL import Image

from weakspot.core.errors import ConfigError

Size = tuple[int, int]
"""Height and width."""
Interpolation = Literal["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]


@dataclass(frozen=True)
class Framing:
    """Resize, then crop at the centre; what of it is not given is left out.

    size: (height, width) to resize to, whatever the proportions are.
    shorter_side: instead, to which the shorter side is resized, proportions kept; with `crop`, as sizes then differ.
    crop: (height, width) of the middle that is kept; an image must not be smaller.
    interpolation: how Pillow resizes.
    """

    size: Size | None = None
    shorter_side: int | None = None
    crop: Size | None = None
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        for name in ("size", "crop"):
            check_size(name, getattr(self, name))
        if self.interpolation not in get_args(Interpolation):
            expected = ", ".join(get_args(Interpolation))
            raise ConfigError(f"interpolation {self.interpolation!r} is not known: choose one of {expected}")
        if self.shorter_side is not None and self.shorter_side < 1:
            raise ConfigError(f"shorter_side is {self.shorter_side}: give a number of pixels, as 256")
        if self.shorter_side is not None and (self.size is not None or self.crop is None):
            raise ConfigError("shorter_side keeps proportions, so sizes differ: give crop with it, and no size")
        if self.size is None and self.crop is None:
            raise ConfigError("neither size nor crop says how large images are to be: give one of them")

    @property
    def result(self) -> Size:
        """The size of all images afterwards."""
        framed = self.crop or self.size
        assert framed is not None, "one of them was given"
        return framed

    def applied(self, image: Image.Image) -> Image.Image:
        """The image, resized and cropped."""
        height, width = self.size or self._in_proportion(image)
        if (image.height, image.width) != (height, width):
            image = image.resize((width, height), Image.Resampling[self.interpolation.upper()])
        return image if self.crop is None else _cropped(image, self.crop)

    def _in_proportion(self, image: Image.Image) -> Size:
        """The longer side is cut off to whole pixels, as torchvision does."""
        if self.shorter_side is None:
            return image.height, image.width
        sides = (image.height, image.width)
        height, width = (int(self.shorter_side * side / min(sides)) for side in sides)
        return height, width


def _cropped(image: Image.Image, crop: Size) -> Image.Image:
    """The middle; half a pixel is rounded to the even one, as torchvision does. Others cut there one pixel before."""
    height, width = crop
    if image.height < height or image.width < width:
        raise ValueError(f"it is {image.height}×{image.width}, too small to cut {height}×{width} out of it")
    top, left = round((image.height - height) / 2), round((image.width - width) / 2)
    return image.crop((left, top, left + width, top + height))


def check_size(name: str, size: Size | None) -> None:
    """Refuse what is no height and width."""
    if size is not None and (len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size)):
        raise ConfigError(f"{name} {size!r} is not a size: give height and width, as (32, 32)")
