"""Pictures of lesions: slices in three planes, outlines coloured by the probability of a false positive. Never torch.

Volumes are (z, y, x), turned so that x points to the patient's right, y to the front and z up (RAS). They are shown as
radiologists do: the patient's right is on the left, the front and the top of the head are up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from weakspot.core.errors import DataError

SKY, YELLOW, VERMILION = (86, 180, 233), (240, 228, 66), (213, 94, 0)
"""Okabe and Ito 2008: told apart with any kind of colour vision, and bright enough on a dark image."""
UNKNOWN = (220, 220, 220)
"""For lesions without a probability."""
PLANES = ("axial", "coronal", "sagittal")
LETTERS = {"axial": ("R", "L", "A", "P"), "coronal": ("R", "L", "S", "I"), "sagittal": ("A", "P", "S", "I")}
"""Where the left, right, upper and lower edge of each plane lie in the patient."""
TRUTH = (204, 121, 167)
"""Of the true lesions: reddish purple of the same palette, which the colours between the others never come near."""
OVERLAY = (0, 158, 115)
"""Of maps laid over a slice: bluish green of the same palette, the more opaque the larger the value."""
OPAQUE = 0.7
"""Of the largest value of a map: the slice below can still be seen."""
_DASH = 4
_GAP, _TITLE, _TICK, _TEXT = 6, 20, 10, 13
_WHITE, _BLACK, _INK = (255, 255, 255), (0, 0, 0), (40, 40, 40)


@dataclass(frozen=True)
class ShownLesion:
    """One lesion to show: its number in the labels, the place to cut through (z, y, x), and the line above it."""

    number: int
    centre: tuple[float, float, float]
    title: str


@dataclass(frozen=True)
class Scene:
    """What all slices of a case are cut from.

    image: one sequence (z, y, x).
    labels: the lesions, 0 where there is none.
    probability: of a false positive, of lesion i at position i − 1; NaN where it is not known.
    spacing: millimetres along z, y, x.
    oriented: whether the axes are known to be RAS, so that letters may say so.
    """

    image: np.ndarray
    labels: np.ndarray
    probability: np.ndarray
    spacing: tuple[float, float, float]
    oriented: bool = True

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape != self.labels.shape:
            raise DataError(
                f"expected image and labels (z, y, x) alike, got {self.image.shape} and {self.labels.shape}"
            )
        if int(self.labels.max(initial=0)) > len(self.probability):
            raise DataError(f"label {self.labels.max()} has no probability: {len(self.probability)} are given")


def ramp(probability: np.ndarray) -> np.ndarray:
    """Colours from blue (0, real) over yellow to vermilion (1, false positive); grey for NaN; uint8 (…, 3).

    >>> ramp(np.array([0.0, 0.5, 1.0, np.nan])).tolist()
    [[86, 180, 233], [240, 228, 66], [213, 94, 0], [220, 220, 220]]
    """
    values = np.asarray(probability, dtype=np.float64)
    position = np.clip(np.nan_to_num(values), 0, 1)
    stops = np.array([SKY, YELLOW, VERMILION], dtype=np.float64)
    mixed = np.stack([np.interp(position, [0, 0.5, 1], stops[:, channel]) for channel in range(3)], -1)
    return np.where(np.isnan(values)[..., None], UNKNOWN, mixed.round()).astype(np.uint8)


def slice_sheet(scene: Scene, shown: Sequence[ShownLesion], *, height: int = 300) -> np.ndarray:
    """A row of three planes per lesion, with a legend below; uint8 (height, width, 3).

    height: pixels of the longest side of the volume, without the even background around it.
    """
    scene, shown = _cropped(scene, shown)
    scale = height / max(np.multiply(scene.image.shape, scene.spacing))
    window = intensity_window(scene.image)
    rows = [_row(scene, lesion, scale, window) for lesion in shown]
    width = max([row.width for row in rows], default=3 * height)
    legend = _legend(width)
    sheet = Image.new("RGB", (width, sum(row.height for row in rows) + legend.height), _WHITE)
    top = 0
    for part in [*rows, legend]:
        sheet.paste(part, (0, top))
        top += part.height
    return np.asarray(sheet)


def _cropped(scene: Scene, shown: Sequence[ShownLesion]) -> tuple[Scene, list[ShownLesion]]:
    """Without the background that has everywhere the value of the first voxel, as in images without a skull."""
    from scipy import ndimage  # takes long to load, and the viewer does without

    inside = (scene.image != scene.image[0, 0, 0]) | (scene.labels > 0)
    if not inside.any():
        return scene, list(shown)
    box = ndimage.find_objects(inside.astype(np.int8))[0]
    moved = [replace(lesion, centre=_less(lesion.centre, box)) for lesion in shown]
    return replace(scene, image=scene.image[box], labels=scene.labels[box]), moved


def _less(centre: Sequence[float], box: Sequence[slice]) -> tuple[float, float, float]:
    z, y, x = (float(along - side.start) for along, side in zip(centre, box, strict=True))
    return z, y, x


def plane(volume: np.ndarray, name: str, centre: Sequence[float]) -> np.ndarray:
    """One slice of a volume (z, y, x) through a place, as it is shown: both axes turned round.

    >>> plane(np.arange(8).reshape(2, 2, 2), "axial", (0, 0, 0)).tolist()
    [[3, 2], [1, 0]]
    """
    axis = PLANES.index(name)
    index = int(np.clip(round(float(centre[axis])), 0, volume.shape[axis] - 1))
    return np.asarray(np.take(volume, index, axis)[::-1, ::-1])


def intensity_window(image: np.ndarray) -> tuple[float, float]:
    """What is shown black and white: nearly the smallest and largest intensity where the image is not 0."""
    inside = image[image != 0]
    low, high = np.percentile(inside, [1, 99.5]) if inside.size else (0.0, 1.0)
    return float(low), float(high if high > low else low + 1)


def levels(values: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Intensities as grey, from 0 at the low end of the window to 255 at its high end; float32."""
    low, high = window
    with np.errstate(over="ignore"):  # of a window of almost no width
        return np.asarray(np.clip((values - low) / (high - low), 0, 1), dtype=np.float32) * np.float32(255)


def enlarged_labels(labels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Labels (rows, columns) on `size` (width, height) pixels, each that of the nearest voxel."""
    return np.asarray(Image.fromarray(labels.astype(np.int32)).resize(size, Image.Resampling.NEAREST))


def outline_layer(
    labels: np.ndarray,
    truth: np.ndarray | None,
    probability: np.ndarray,
    below: float,
    size: tuple[int, int],
    *,
    width: int = 1,
) -> np.ndarray:
    """Outlines alone, to be laid over a slice: uint8 (height, width, 4), transparent between them.

    labels: of a slice, as `plane` cuts it.
    truth: where true lesions are, in purple below the others.
    probability: as in `Scene`.
    below: lesions whose probability is not below this are dashed in grey and black; those without one are kept.
    size: of the layer, (width, height).
    width: of the lines, in pixels.
    """
    layer = np.zeros((size[1], size[0], 4), dtype=np.uint8)
    if truth is not None:
        layer[_thick(enlarged_labels(truth, size), width)] = (*TRUTH, 255)
    large = enlarged_labels(labels, size)
    rows, columns = np.nonzero(_thick(large, width))
    lesion = large[rows, columns] - 1
    dashed = np.where(((rows + columns) // _DASH % 2 == 0)[:, None], UNKNOWN, _BLACK)
    layer[rows, columns, :3] = np.where((probability >= below)[lesion][:, None], dashed, ramp(probability)[lesion])
    layer[rows, columns, 3] = 255
    return layer


def overlaid(layer: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A layer of outlines with a map below them; the same size.

    shares: the map of the slice, (rows, columns), as shares of the largest value there can be.
    """
    opacity = np.rint(np.clip(shares, 0, 1) * (255 * OPAQUE)).astype(np.uint8)
    below = np.empty_like(layer)
    below[..., :3] = OVERLAY
    below[..., 3] = Image.fromarray(opacity).resize(layer.shape[1::-1], Image.Resampling.NEAREST)
    return np.where(layer[..., 3:] > 0, layer, below)


def outlines(labels: np.ndarray) -> np.ndarray:
    """The pixels of each label that touch another one or none, boolean, of the labels' shape."""
    padded = np.pad(labels, 1)
    inner = padded[1:-1, 1:-1]
    edge = inner != padded[:-2, 1:-1]
    for other in (padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        edge |= inner != other
    return np.asarray(edge & (inner > 0))


def _thick(labels: np.ndarray, width: int) -> np.ndarray:
    """Outlines of several pixels, inwards."""
    edge = np.zeros(labels.shape, dtype=bool)
    for _ in range(width):
        edge |= outlines(np.where(edge, 0, labels))
    return edge


def _panel(scene: Scene, name: str, lesion: ShownLesion, scale: float, window: tuple[float, float]) -> Image.Image:
    axis = PLANES.index(name)
    rows, columns = (side * scale for dimension, side in enumerate(scene.spacing) if dimension != axis)
    grey, labels = plane(scene.image, name, lesion.centre), plane(scene.labels, name, lesion.centre)
    size = (max(1, round(grey.shape[1] * columns)), max(1, round(grey.shape[0] * rows)))
    pixels = Image.fromarray(levels(grey, window)).resize(size, Image.Resampling.BILINEAR).convert("L").convert("RGB")
    picture, large = np.array(pixels), enlarged_labels(labels, size)
    edge = outlines(large)
    picture[edge] = ramp(scene.probability)[large[edge] - 1]
    panel = Image.fromarray(picture)
    _marks(panel, scene, name, lesion)
    return panel


def _marks(panel: Image.Image, scene: Scene, name: str, lesion: ShownLesion) -> None:
    """Ticks at the borders that lead to the lesion, and letters that say where the patient's sides are."""
    draw, axis = ImageDraw.Draw(panel), PLANES.index(name)
    row, column = (
        1 - (lesion.centre[dimension] + 0.5) / scene.image.shape[dimension]
        for dimension in range(3)
        if dimension != axis
    )
    x, y, (width, height) = column * panel.width, row * panel.height, panel.size
    for line in ((x, 0, x, _TICK), (x, height - _TICK, x, height), (0, y, _TICK, y), (width - _TICK, y, width, y)):
        draw.line(line, fill=_WHITE)
    if scene.oriented:
        left, right, up, down = LETTERS[name]
        places = ((3, height / 2, left, "lm"), (width - 3, height / 2, right, "rm"))
        for at_x, at_y, letter, anchor in (*places, (width / 2, 2, up, "ma"), (width / 2, height - 2, down, "md")):
            draw.text((at_x, at_y), letter, _WHITE, _font(), anchor, stroke_width=3, stroke_fill=_BLACK)


def _row(scene: Scene, lesion: ShownLesion, scale: float, window: tuple[float, float]) -> Image.Image:
    panels = [_panel(scene, name, lesion, scale, window) for name in PLANES]
    tallest = max(panel.height for panel in panels)
    width = sum(panel.width + _GAP for panel in panels) + _GAP
    row = Image.new("RGB", (width, tallest + _TITLE + _GAP), _WHITE)
    listed = lesion.number <= len(scene.probability)
    colour = ramp(np.array([scene.probability[lesion.number - 1] if listed else np.nan]))[0]
    draw = ImageDraw.Draw(row)
    draw.rectangle((_GAP, 5, _GAP + 12, 17), fill=tuple(colour.tolist()), outline=_INK)
    draw.text((_GAP + 20, 3), lesion.title, fill=_INK, font=_font())
    left = _GAP
    for panel in panels:
        row.paste(panel, (left, _TITLE))
        left += panel.width + _GAP
    return row


def _legend(width: int) -> Image.Image:
    """The colours with their meaning."""
    legend = Image.new("RGB", (width, 46), _WHITE)
    length = min(240, width - 2 * _GAP)
    bar = np.repeat(ramp(np.linspace(0, 1, length))[None], 12, axis=0)
    legend.paste(Image.fromarray(bar), (_GAP, 6))
    draw = ImageDraw.Draw(legend)
    for share, text, anchor in ((0, "0 real", "la"), (0.5, "0.5", "ma"), (1, "1 false positive", "ra")):
        draw.text((_GAP + share * length, 22), text, fill=_INK, font=_font(), anchor=anchor)
    if width > length + 220:
        draw.text((length + 3 * _GAP, 5), "outline: probability of a false positive", fill=_INK, font=_font())
        draw.text((length + 3 * _GAP, 22), "grey: not known", fill=_INK, font=_font())
    return legend


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(_TEXT)
