"""Cases as a Run keeps them to be looked at: images, the lesions found in them, the truth. Read without torch.

The Finding `lesions.case_volumes` has a row per case in its table and some arrays per case: `image_0000` (sequences,
z, y, x) in 16 bits, where they are kept `maps_0000` (2, z, y, x) in 8 bits, `lesions_0000` (voxels, 2), the place of
each voxel that belongs to a lesion and that lesion's number, and `truth_0000`, the places of true lesions' voxels.
Places count through the volume in C order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.lesions.slices import PLANES

VOLUMES = "lesions.case_volumes"
COLUMNS = ("case", "z", "y", "x", "spacing_z", "spacing_y", "spacing_x", "axes", "truth")
PER_SEQUENCE = ("scale", "offset", "low", "high", "smallest", "largest")
"""Arrays (cases, sequences): intensity = scale · stored + offset; a window that shows it well, and the whole range."""
MAPS = ("probability", "entropy")
"""Of the kept maps: mean probability of a lesion, and entropy in nats; 255 stands for 1 and for `most_entropy`."""
_WAYS = ("SI", "AP", "RL")
"""Where z, y and x point to in RAS, and where they point to turned round."""
_STEPS = 65534


def sixteen_bits(image: np.ndarray) -> tuple[NDArray[np.int16], float, float]:
    """Intensities as int16 with the scale and offset that lead back; whole numbers that fit stay what they are.

    >>> sixteen_bits(np.array([-3.0, 7.0]))
    (array([-3,  7], dtype=int16), 1.0, 0.0)
    >>> stored, scale, offset = sixteen_bits(np.array([0.0, 0.25, 0.5]))
    >>> (stored * scale + offset).round(4).tolist()
    [0.0, 0.25, 0.5]
    """
    low, high = float(image.min()), float(image.max())
    if low >= -(1 << 15) and high < 1 << 15 and (np.rint(image) == image).all():
        return image.astype(np.int16), 1.0, 0.0
    scale, offset = (high - low) / _STEPS or 1.0, (high + low) / 2
    return np.rint((image.astype(np.float64) - offset) / scale).astype(np.int16), scale, offset


def eight_bits(values: np.ndarray, most: float) -> NDArray[np.uint8]:
    """Values from 0 to `most` as whole numbers from 0 to 255.

    >>> eight_bits(np.array([0.0, 0.25, 0.5]), 0.5)
    array([  0, 128, 255], dtype=uint8)
    """
    stored = np.empty(values.shape, dtype=np.uint8)
    for part, own in zip(stored, values, strict=True) if values.ndim > 1 else [(stored, values)]:
        part[...] = np.rint(np.clip(own / most, 0, 1) * 255)  # slice by slice: a whole volume takes memory
    return stored


def known_axes(axes: str) -> str:
    """Where x, y and z point to; empty where that is not said of each.

    >>> known_axes("LPS"), known_axes("LRS")
    ('LPS', '')
    """
    return axes if len(axes) == 3 and all(sum(letter in way for letter in axes) == 1 for way in _WAYS) else ""


def turns(axes: str) -> tuple[list[int], list[bool]]:
    """Which axes of an array (z, y, x) become z, y and x of RAS, and which of them must be turned round.

    axes: where x, y and z point to. Where that is not known, everything stays as it is.

    >>> turns("LPS"), turns("PSR")
    (([0, 1, 2], [False, True, True]), ([1, 2, 0], [False, True, False]))
    """
    letters = known_axes(axes)[::-1] or "SAR"
    order = [next(position for position, letter in enumerate(letters) if letter in way) for way in _WAYS]
    return order, [letters[position] == way[1] for position, way in zip(order, _WAYS, strict=True)]


@dataclass(frozen=True)
class Volume:
    """One case, turned to RAS where its axes are known.

    image: (sequences, z, y, x), mapped from the disk.
    voxels: (voxels, 3), those that belong to a lesion.
    numbers: the number of the lesion that each voxel belongs to.
    truth: (voxels, 3) of the true lesions, None where they are not known.
    spacing: millimetres along z, y, x.
    axes: where x, y and z of the kept array point to, empty where that is not known.
    """

    case: str
    image: np.ndarray
    voxels: NDArray[np.int32]
    numbers: np.ndarray
    truth: NDArray[np.int32] | None
    spacing: tuple[float, float, float]
    axes: str
    per_sequence: NDArray[np.float64]
    """What `PER_SEQUENCE` names, (6, sequences)."""
    maps: np.ndarray | None = None
    """(2, z, y, x), mapped from the disk; None where the Run keeps none."""
    most: tuple[float, float] = (1.0, 1.0)
    """What a stored 255 stands for in each map."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the turned volume, (z, y, x)."""
        z, y, x = self.image.shape[1:]
        return z, y, x

    @property
    def oriented(self) -> bool:
        """Whether it is known where its axes point to."""
        return bool(self.axes)

    def placed(self, centres: np.ndarray) -> NDArray[np.float64]:
        """Places (z, y, x) of the kept array, such as a lesion's centre, in the turned volume; both (places, 3)."""
        order, turned = turns(self.axes)
        moved = np.asarray(centres, dtype=np.float64).reshape(-1, 3)[:, order]
        return np.where(turned, np.subtract(self.shape, 1) - moved, moved)

    def intensities(self, sequence: int, plane: str, index: int) -> NDArray[np.float64]:
        """One slice of one sequence, as it is shown: both axes turned round."""
        scale, offset = self.per_sequence[:2, sequence]
        stored = np.take(self.image[sequence], index, PLANES.index(plane))
        return np.asarray(stored[::-1, ::-1] * scale + offset)

    def map(self, name: str, plane: str, index: int) -> NDArray[np.float64] | None:
        """One slice of a map by its name in `MAPS`, as it is shown; None where the Run keeps none."""
        if self.maps is None:
            return None
        number = MAPS.index(name)
        stored = np.take(self.maps[number], index, PLANES.index(plane))
        return np.asarray(stored[::-1, ::-1] * (self.most[number] / 255))

    def labels(self, plane: str, index: int) -> NDArray[np.int32]:
        """The numbers of the lesions in one slice, as it is shown; 0 where there is none."""
        return self._slice(self.voxels, self.numbers, plane, index)

    def true_lesions(self, plane: str, index: int) -> NDArray[np.int32] | None:
        """Where true lesions are in one slice, 1 there."""
        return None if self.truth is None else self._slice(self.truth, np.ones(len(self.truth)), plane, index)

    def _slice(self, voxels: np.ndarray, values: np.ndarray, plane: str, index: int) -> NDArray[np.int32]:
        axis = PLANES.index(plane)
        rows, columns = (dimension for dimension in range(3) if dimension != axis)
        here = np.flatnonzero(voxels[:, axis] == index)
        labels = np.zeros((self.shape[rows], self.shape[columns]), dtype=np.int32)
        labels[voxels[here, rows], voxels[here, columns]] = values[here]
        return labels[::-1, ::-1]


def open_volume(finding: Finding, number: int) -> Volume:
    """A case of the Finding of `CaseVolumes`, by its place in the table; a damaged one is refused."""
    try:
        return _opened(finding, number)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise RunError(f"{finding.name} is damaged: case {number}: {error}; examine again") from error


def _opened(finding: Finding, number: int) -> Volume:
    row = case_rows(finding)[number]
    shape = tuple(int(row[axis]) for axis in "zyx")
    image = finding.arrays[f"image_{number:04d}"]
    if image.dtype != np.int16 or image.ndim != 4 or image.shape[1:] != shape or 0 in shape:
        raise ValueError(f"its image is {image.dtype} {image.shape}, expected int16 (sequences, {shape})")
    pairs = np.asarray(finding.arrays[f"lesions_{number:04d}"], dtype=np.int64).reshape(-1, 2)
    if len(pairs) and not 0 < pairs[:, 1].min() <= pairs[:, 1].max() <= len(pairs):
        raise ValueError(f"its lesions have numbers from {pairs[:, 1].min()} to {pairs[:, 1].max()}")
    truth = finding.arrays[f"truth_{number:04d}"] if row["truth"] else None
    per_sequence = np.stack([finding.arrays[name][number] for name in PER_SEQUENCE]).astype(np.float64)
    if per_sequence.shape != (len(PER_SEQUENCE), len(image)) or not np.isfinite(per_sequence).all():
        raise ValueError(f"of {len(image)} sequences the scales are {per_sequence.tolist()}")
    maps = finding.arrays.get(f"maps_{number:04d}")
    if maps is not None and (maps.dtype != np.uint8 or maps.shape != (len(MAPS), *shape)):
        raise ValueError(f"its maps are {maps.dtype} {maps.shape}, expected uint8 ({len(MAPS)}, {shape})")
    kept = Volume(
        case=str(row["case"]),
        image=image,
        voxels=_voxels(pairs[:, 0], shape),
        numbers=pairs[:, 1],
        truth=None if truth is None else _voxels(np.asarray(truth, dtype=np.int64), shape),
        spacing=tuple(_length(row[f"spacing_{axis}"]) for axis in "zyx"),  # type: ignore[arg-type]
        axes=known_axes(str(row["axes"])),
        per_sequence=per_sequence,
        maps=maps,
        most=(1.0, 1.0 if maps is None else _most(finding, number)),
    )
    return _turned(kept)


def _most(finding: Finding, number: int) -> float:
    most = float(finding.arrays["most_entropy"][number])
    if not 0 < most < np.inf:
        raise ValueError(f"its largest entropy is {most:g}")
    return most


def case_rows(finding: Finding) -> list[dict[str, Any]]:
    """The rows of the table of cases."""
    if finding.table is None or not set(COLUMNS) <= set(finding.table.column_names):
        raise RunError(f"{finding.name} is damaged: it has no table of cases; examine again")
    return finding.table.to_pylist()  # type: ignore[no-any-return]


def _length(value: object) -> float:
    """Millimetres; 1 where they are not known, or cannot be true."""
    return value if isinstance(value, float) and 1e-6 < value < 1e6 else 1.0


def _voxels(places: np.ndarray, shape: Sequence[int]) -> NDArray[np.int32]:
    return np.stack(np.unravel_index(places, tuple(shape)), 1).astype(np.int32)


def _turned(kept: Volume) -> Volume:
    """The same case in RAS; image and maps are views, nothing of them is read."""
    order, turned = turns(kept.axes)
    way = (slice(None), *(slice(None, None, -1 if back else None) for back in turned))
    along = (0, *(1 + position for position in order))
    z, y, x = (kept.spacing[position] for position in order)
    return replace(
        kept,
        image=kept.image.transpose(along)[way],
        maps=None if kept.maps is None else kept.maps.transpose(along)[way],
        voxels=_moved(kept, kept.voxels, order, turned),
        truth=None if kept.truth is None else _moved(kept, kept.truth, order, turned),
        spacing=(z, y, x),
    )


def _moved(kept: Volume, voxels: np.ndarray, order: list[int], turned: list[bool]) -> NDArray[np.int32]:
    moved = voxels[:, order]
    last = np.array([kept.shape[position] - 1 for position in order], dtype=np.int32)
    return np.asarray(np.where(turned, last - moved, moved), dtype=np.int32)
