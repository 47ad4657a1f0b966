"""One NIfTI file: read whole with its checksum, written whole or not at all. Needs nibabel."""

import gzip
import io
import math
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np

from weakspot.core.errors import BadSample, RunError
from weakspot.core.files import whole_file, writing
from weakspot.core.guarded_open import check_fits, check_unpacked, open_plain
from weakspot.data.nifti_grid import Grid, Orientation, Spacing, nibabel

SUFFIXES = (".nii.gz", ".nii")
_GZIP = b"\x1f\x8b"
_HEADER = 1024
"""Bytes that hold the header of either version of the format."""
_CHUNK = 1 << 20


def read_header(path: Path, case: str) -> Any:
    """The header of a file, without its voxels."""
    try:
        with open_plain(path) as file, _unpacked(file) as content:
            return _header(content.read(_HEADER))
    except Exception as error:  # nibabel, gzip and zlib raise many kinds for broken files
        raise unreadable(path, case, error) from error


def grid_of(path: Path, case: str, *, orientation: Orientation = "file", resampled: Spacing | None = None) -> Grid:
    """Where the voxels of a file lie; a file that is no volume, or has no size, is refused."""
    return header_grid(read_header(path, case), path, case, orientation=orientation, resampled=resampled)


def header_grid(
    header: Any, path: Path, case: str, *, orientation: Orientation = "file", resampled: Spacing | None = None
) -> Grid:
    """Where the voxels lie that a header describes."""
    shape = volume_shape(header.get_data_shape())
    if len(shape) != 3 or 0 in shape:
        raise BadSample(
            case,
            f"case {case}: {path.name} has shape {shape}, expected a volume (x, y, z) or a slice (x, y): one file per "
            "sequence",
        )
    affine = _with_depth(np.array(header.get_best_affine(), dtype=np.float64), shape)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise BadSample(
            case, f"case {case}: the affine of {path.name} is not a grid in space {affine[:3].tolist()}: write it again"
        )
    if not int(header["sform_code"]) and not int(header["qform_code"]):
        raise BadSample(
            case,
            f"case {case}: {path.name} does not say where its axes point to (sform and qform code 0), so places in "
            "millimetres would be invented: write the file again with its affine and an sform code of 1 or more",
        )
    return Grid((shape[0], shape[1], shape[2]), affine, orientation, resampled)


def volume_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a file's volume: a slice is one of depth 1, and further axes of length 1 are left out.

    >>> volume_shape((4, 5)), volume_shape((4, 5, 6, 1)), volume_shape((4, 5, 6, 2))
    ((4, 5, 1), (4, 5, 6), (4, 5, 6, 2))
    """
    sides = [int(side) for side in shape]
    while len(sides) > 3 and sides[-1] == 1:
        sides.pop()
    return tuple(sides + [1] * (3 - len(sides)))


def _with_depth(affine: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The affine; of a slice whose header gives no depth, with 1 mm across it."""
    if tuple(shape[2:]) == (1,) and not affine[:3, 2].any():
        across = np.cross(affine[:3, 0], affine[:3, 1])
        affine[:3, 2] = across / (np.linalg.norm(across) or 1)
    return affine


def read_voxels(path: Path, case: str) -> tuple[np.ndarray, Any]:
    """All of a file, checksum included: its array (x, y, z), scaled as its header says, and the header."""
    try:
        with open_plain(path) as file, _unpacked(file) as unpacked:
            content = _whole(unpacked, path)
        image = _kind(content).from_bytes(content)
        voxels = np.asarray(image.dataobj)
        return voxels.reshape(volume_shape(voxels.shape)), image.header
    except Exception as error:  # as above
        raise unreadable(path, case, error) from error


def is_empty(path: Path) -> bool:
    """Whether all voxels of a mask are 0; read only until one is not. False for a file that cannot be read."""
    try:
        with open_plain(path) as file, _unpacked(file) as content:
            start = content.read(_HEADER)
            header = _header(start)
            check_unpacked(path, _bytes_of(header))
            rest, left = start[int(header["vox_offset"]) :], _bytes_of(header) - len(start)
            while rest and rest.count(0) == len(rest):
                rest = content.read(max(0, min(_CHUNK, left)))
                left -= len(rest)
            return not rest
    except Exception:  # whoever reads it next says what is wrong
        return False


def unreadable(path: Path, case: str, error: Exception) -> BadSample:
    """What to say of a file that cannot be read."""
    cut = isinstance(error, EOFError | zlib.error | gzip.BadGzipFile)
    message = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    reason = f"the archive is cut off or damaged ({message})" if cut else message
    return BadSample(case, f"case {case}: {path.name} cannot be read as NIfTI: {reason}; copy or export it again")


def _unpacked(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """A file, or what a gzip file holds."""
    packed = file.read(2) == _GZIP
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else nullcontext(file)  # type: ignore[return-value]


def _header(start: bytes) -> Any:
    return _kind(start).header_class.from_fileobj(io.BytesIO(start))


def _bytes_of(header: Any) -> int:
    """How long a file is by its header."""
    return int(header["vox_offset"]) + math.prod(map(int, header.get_data_shape())) * int(
        header.get_data_dtype().itemsize
    )


def _whole(content: IO[bytes], path: Path) -> bytes:
    """All of a file as far as its header says, and its checksum: few bytes can unpack to any size."""
    start = content.read(_HEADER)
    expected = _bytes_of(_header(start))
    check_fits(4 * expected, f"a volume of {expected:,} bytes by its header", "is it damaged?")
    check_unpacked(path, expected)
    rest = content.read(max(0, expected - len(start)))
    if len(content.read(_CHUNK)) == _CHUNK:
        raise ValueError(f"it is longer than the {expected:,} bytes that its header says")
    return start + rest


def _kind(content: bytes) -> Any:
    """nibabel's class for the version of the format, by the size of the header that stands first."""
    sizes = {int.from_bytes(content[:4], order) for order in ("little", "big")}
    if not sizes & {348, 540}:
        raise ValueError("it does not begin with a NIfTI header")
    return nibabel().Nifti2Image if 540 in sizes else nibabel().Nifti1Image


def write_nifti(path: Path, volume: np.ndarray, affine: np.ndarray) -> None:
    """An array (x, y, z) as a file, `.nii` or `.nii.gz`; equal arrays give equal bytes. No file is replaced."""
    if path.exists():
        raise RunError(f"{path} exists already: remove it, or choose another place")
    image = nibabel().Nifti1Image(volume, affine)
    image.header.set_xyzt_units("mm")
    content = image.to_bytes()
    with writing(path), whole_file(path) as scratch:
        scratch.write_bytes(gzip.compress(content, 6, mtime=0) if path.name.endswith(".gz") else content)
