"""Multiple-sclerosis lesions implanted into real brains: consensus masks of 27 patients, contrast as it was measured.

The three patients whose images can be had (Lesjak et al. 2018) are emptied first: white matter is painted over their
own lesions, with noise borrowed from healthy white matter. What was painted over, original less filled, tells how
lesions look in that brain: their amplitude and its dependence on size, the profile across the border, the texture
inside. An implant takes a lesion's shape and place from another patient's mask and all else from a lesion measured in
the brain it is put into. Nothing of one brain enters another. Volumes are (z, y, x), 1 mm; why all this is so is said
in docs/papers-lesions-protocol.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import ndimage

BRAINS = ("07", "19", "26")
SEQUENCES = ("flair", "t1")
SEED = 2022
BOX = (slice(12, 148), slice(24, 200), slice(18, 162))
"""What of the 182×218×182 voxels is used: all of every brain and of every mask."""
TOUCHING = np.ones((3, 3, 3), dtype=bool)
REACH = 2
"""Voxels beyond a mask's border in which a lesion is still seen; they are filled and implanted with it."""
DEPTHS = np.arange(-REACH, 4)
"""Bins of the edge profile: voxels from the border, negative outside; the last holds all that lies deeper."""
BLOCK = 8
"""Voxels along each side of the pieces in which noise is borrowed."""
SHIFT = 4
"""How many voxels along each axis an implant may be moved to lie in white matter."""
INSIDE = 0.5
"""The least share of a lesion that must then lie in white matter."""


@dataclass(frozen=True)
class Patient:
    """One real patient: images by sequence in float32, and the boolean mask of lesions."""

    name: str
    images: Mapping[str, np.ndarray]
    lesions: np.ndarray


@dataclass(frozen=True)
class Measured:
    """How the lesions of a brain look, in units of its white matter's median.

    voxels (lesions,). amplitude, texture (lesions, sequences): factor of the edge profile, and standard deviation of
    what is left, noise taken off. profile (sequences, depths). grain (sequences,): Gaussian width of the texture.
    """

    voxels: np.ndarray
    amplitude: np.ndarray
    texture: np.ndarray
    profile: np.ndarray
    grain: np.ndarray


@dataclass(frozen=True)
class EmptyBrain:
    """A brain without its lesions, where lesions may be put, and how they look there."""

    name: str
    images: Mapping[str, np.ndarray]
    white: np.ndarray
    level: Mapping[str, float]
    measured: Measured


def read_volume(path: Path) -> np.ndarray:
    """A NIfTI file (x, y, z) as (z, y, x), cropped."""
    import nibabel

    return np.ascontiguousarray(np.asarray(nibabel.load(path).dataobj).transpose(2, 1, 0)[BOX])


def read_mask(folder: Path, name: str) -> np.ndarray:
    return read_volume(folder / f"patient{name}-lesions.nii.gz") > 0


def read_patient(folder: Path, name: str) -> Patient:
    images = {s: read_volume(folder / f"patient{name}-{s}.nii.gz").astype(np.float32) for s in SEQUENCES}
    return Patient(name, images, read_mask(folder, name))


def white_matter(patient: Patient, *, seed: int = SEED) -> np.ndarray:
    """White matter, lesions included: of three normal components over smoothed T1 and FLAIR of the tissue that with the
    highest T1 less FLAIR, each in units of its spread.

    Holes that noise and diffuse change around lesions leave are closed, up to 3 voxels; pieces of under 1000 voxels are
    left out.
    Tissue: above 0.6 of the median T1 and 0.7 of the median FLAIR, two voxels inside the brain.
    """
    from sklearn.mixture import GaussianMixture

    inside = ndimage.binary_erosion(patient.images["flair"] > 0, iterations=2)
    t1, flair = (ndimage.gaussian_filter(patient.images[sequence], 0.7) for sequence in ("t1", "flair"))
    tissue = inside & (t1 > 0.6 * np.median(t1[inside])) & (flair > 0.7 * np.median(flair[inside]))
    smooth = np.stack([t1, flair], -1)
    values = smooth[tissue & ~ndimage.binary_dilation(patient.lesions, iterations=REACH)]
    scale = values.std(0)
    mixture = GaussianMixture(3, random_state=seed, n_init=2).fit(values[::20] / scale)
    found = np.zeros(inside.shape, dtype=bool)
    found[tissue] = mixture.predict(smooth[tissue] / scale) == int(np.argmax(mixture.means_ @ [1, -1]))
    closed = ndimage.binary_closing(found | patient.lesions, iterations=3) & tissue
    labels, _ = ndimage.label(closed)
    large = np.bincount(labels.ravel()) >= 1000
    large[0] = False
    return np.asarray(large[labels] | (patient.lesions & inside))


def smoothed_inside(volume: np.ndarray, known: np.ndarray, width: float) -> np.ndarray:
    """The Gaussian mean of the known voxels alone: (G * v k) / (G * k), a normalised convolution.

    Where no known voxel is near, the mean of all known ones.
    """
    weight = ndimage.gaussian_filter(known.astype(np.float32), width)
    total = ndimage.gaussian_filter(np.where(known, volume, 0).astype(np.float32), width)
    mean = float(volume[known].mean())
    return np.asarray(np.where(weight > 1e-4, total / np.maximum(weight, 1e-4), mean))


def borrowed_places(paint: np.ndarray, healthy: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """For every voxel to paint a healthy one whose noise it takes over: two arrays (voxels, 3).

    Blocks of `BLOCK`³ voxels take theirs from one piece of healthy tissue, the best of 30 drawn at random; what does
    not fit there is drawn anew, so that noise keeps its texture and nothing is borrowed from elsewhere.
    """
    voxels, room = np.argwhere(paint), np.argwhere(healthy)
    blocks = np.unique(voxels // BLOCK, axis=0, return_inverse=True)[1].ravel()
    sources = np.zeros_like(voxels)
    for block in np.split(np.argsort(blocks, kind="stable"), np.cumsum(np.bincount(blocks))[:-1]):
        own = block
        while len(own):
            middle = voxels[own[len(own) // 2]]
            moved = voxels[own][None] + (room[rng.integers(len(room), size=30)] - middle)[:, None]
            fits = ((moved >= 0) & (moved < healthy.shape)).all(-1)
            fits &= healthy[tuple(np.clip(moved, 0, np.array(healthy.shape) - 1).transpose(2, 0, 1))]
            best = int(np.argmax(fits.sum(1)))
            sources[own[fits[best]]] = moved[best][fits[best]]
            own = own[~fits[best]]
    return voxels, sources


def filled(patient: Patient, white: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The images with white matter painted over the lesions and over the white matter within `REACH` of them.

    Level: Gaussian mean (width 3) of the healthy white matter around. Noise: what healthy white matter elsewhere, two
    voxels inside, has above or below its own level; outliers of 3.5 standard deviations lend none.
    """
    around = ndimage.binary_dilation(patient.lesions, TOUCHING, iterations=REACH)
    healthy = ndimage.binary_erosion(white & ~around)
    level = {sequence: smoothed_inside(image, healthy, 3.0) for sequence, image in patient.images.items()}
    lends = ndimage.binary_erosion(healthy)
    for sequence, image in patient.images.items():
        lends &= np.abs(image - level[sequence]) < 3.5 * _robust_spread((image - level[sequence])[healthy])
    to, source = borrowed_places(patient.lesions | (around & white), lends, rng)
    found = {sequence: image.copy() for sequence, image in patient.images.items()}
    for sequence, image in patient.images.items():
        found[sequence][tuple(to.T)] = level[sequence][tuple(to.T)] + (image - level[sequence])[tuple(source.T)]
    return found


def _robust_spread(values: np.ndarray) -> float:
    """The standard deviation of normal values, from their median absolute deviation."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def depth_of(mask: np.ndarray) -> np.ndarray:
    """Voxels from the border of a mask: 0 for its outermost, 1 … inside, −1 … outside; at most ±10."""
    inside = np.ceil(ndimage.distance_transform_edt(mask)) - 1
    outside = -np.ceil(ndimage.distance_transform_edt(~mask))
    return np.asarray(np.clip(np.where(mask, inside, outside), -10, 10).astype(np.int8))


def profile_at(depth: np.ndarray, profile: np.ndarray) -> np.ndarray:
    """The edge profile at some depths: 0 beyond `REACH`, constant inside the last bin."""
    bins = np.clip(depth, DEPTHS[0], DEPTHS[-1]) - DEPTHS[0]
    return np.asarray(np.where(depth < DEPTHS[0], 0.0, profile[bins]))


def measure(
    patient: Patient, empty: Mapping[str, np.ndarray], white: np.ndarray, level: Mapping[str, float]
) -> Measured:
    """Amplitude and texture of every lesion, the edge profile and the grain, from original less filled.

    The profile is the mean over voxels by depth, as a share of what is found inside; a lesion's amplitude the
    least-squares factor of that profile over its own voxels, a mean over few voxels where it is small.
    """
    labels, count = ndimage.label(patient.lesions, TOUCHING)
    depth = depth_of(patient.lesions)
    usual = ndimage.binary_erosion(white & (depth < -REACH), iterations=3)
    amplitudes, textures, profiles, grains = [], [], [], []
    for sequence in SEQUENCES:
        change = (patient.images[sequence] - empty[sequence]) / level[sequence]
        still = empty[sequence] - smoothed_inside(empty[sequence], usual, 3.0)
        noise = 2 * float(still[usual].var()) / level[sequence] ** 2  # of the original and of what was painted
        profile = _profile(change, depth, white)
        amplitude = _amplitudes(change, profile_at(depth, profile), labels, count)
        rest = np.where(labels > 0, change - np.append(0, amplitude)[labels] * profile_at(depth, profile), 0)
        spread = ndimage.variance(rest, labels, np.arange(1, count + 1)) - noise
        amplitudes.append(amplitude)
        textures.append(np.sqrt(np.maximum(np.nan_to_num(spread), 0)))
        profiles.append(profile)
        grains.append(_grain(rest, labels > 0, noise))
    voxels = np.bincount(labels.ravel())[1:]
    return Measured(voxels, np.stack(amplitudes, 1), np.stack(textures, 1), np.stack(profiles), np.array(grains))


def _profile(change: np.ndarray, depth: np.ndarray, white: np.ndarray) -> np.ndarray:
    """Mean change by depth, divided by that at depth 1 and more; outside of masks over white matter alone."""
    inside = float(change[depth >= 1].mean())
    parts = [depth == d if d >= 0 else (depth == d) & white for d in DEPTHS[:-1]] + [depth >= DEPTHS[-1]]
    return np.array([change[part].mean() / inside if part.sum() >= 20 else 1.0 for part in parts])


def _amplitudes(change: np.ndarray, shape: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    which = np.arange(1, count + 1)
    return np.asarray(ndimage.sum(change * shape, labels, which) / ndimage.sum(shape**2, labels, which))


def _grain(rest: np.ndarray, inside: np.ndarray, noise: float) -> float:
    """σ of a Gaussian whose filtered white noise has the correlation ρ of neighbours: ρ = exp(−1 / 4σ²)."""
    both = inside & np.roll(inside, 1, axis=2)
    neighbours = float((rest * np.roll(rest, 1, axis=2))[both].mean())
    correlation = neighbours / max(float(rest[inside].var()) - noise / 2, 1e-9)
    return float(np.sqrt(-1 / (4 * np.log(np.clip(correlation, 0.2, 0.9)))))


def drawn_looks(measured: Measured, voxels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Amplitude and texture for implants of these sizes, each (implants, sequences).

    Amplitude: a straight line in log size, fitted to the measured lesions, and the residual of one of them drawn at
    random, all sequences of the same lesion, so that faint ones come in the measured proportion. Beyond the measured
    sizes the line is flat. Texture: that of the lesion drawn. Both as measured, nothing is smoothed.
    """
    size = np.log(measured.voxels)
    line = np.stack([np.ones_like(size), size], 1)
    weights = np.linalg.lstsq(line, measured.amplitude, rcond=None)[0]
    residual = measured.amplitude - line @ weights
    asked = np.clip(np.log(voxels), size.min(), size.max())
    chosen = rng.integers(len(size), size=len(voxels))
    return np.stack([np.ones_like(asked), asked], 1) @ weights + residual[chosen], measured.texture[chosen]


def placed(mask: np.ndarray, white: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, int]]:
    """A mask's lesions as they can lie in this white matter; labels 1 … n, and what became of them.

    Each lesion stays where it is if `INSIDE` of it lies in white matter, or is moved by the shortest of up to 60 random
    shifts of at most `SHIFT` voxels that brings it there; else it is left out. What of it then lies elsewhere is cut
    off. Lesions that would touch another one after moving are left out.
    """
    labels, count = ndimage.label(mask, TOUCHING)
    order = np.flatnonzero(labels)
    own = labels.ravel()[order]
    order = order[np.argsort(own, kind="stable")]
    starts = np.searchsorted(np.sort(own), np.arange(1, count + 2))
    found, told = np.zeros(mask.shape, dtype=np.int32), {"given": count, "placed": 0, "moved": 0}
    for lesion in range(count):
        voxels = np.stack(np.unravel_index(order[starts[lesion] : starts[lesion + 1]], mask.shape), 1)
        settled, shifted = _settled(voxels, white, rng)
        if not len(settled) or _touches(settled, found):
            continue
        told["placed"] += 1
        told["moved"] += int(shifted)
        found[tuple(settled.T)] = told["placed"]
    return found, told


def _settled(voxels: np.ndarray, white: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """What of a lesion lies in white matter where it settles, and whether it was moved; nothing if it fits nowhere."""
    shifts = rng.integers(-SHIFT, SHIFT + 1, size=(60, 3))
    shifts = shifts[np.argsort((shifts**2).sum(1), kind="stable")]
    for shift in np.concatenate([np.zeros((1, 3), dtype=np.int64), shifts]):
        moved = voxels + shift
        within = ((moved >= 0) & (moved < white.shape)).all(1)
        inside = moved[within][white[tuple(moved[within].T)]]
        if len(inside) >= INSIDE * len(voxels):
            return inside, bool(shift.any())
    return voxels[:0], False


def _touches(voxels: np.ndarray, taken: np.ndarray) -> bool:
    low, high = np.maximum(voxels.min(0) - 1, 0), voxels.max(0) + 2
    near = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    own = np.zeros(taken[near].shape, dtype=bool)
    own[tuple((voxels - low).T)] = True
    return bool((ndimage.binary_dilation(own, TOUCHING) & (taken[near] > 0)).any())


def implanted(
    brain: EmptyBrain, mask: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, int]]:
    """The brain with a mask's lesions: its images, the mask as it came to lie, and how many lesions found a place.

    filled + level · (amplitude · profile(depth) + texture), over the lesion and the white matter within `REACH` of it.
    """
    labels, told = placed(mask, brain.white, rng)
    images = {sequence: image.copy() for sequence, image in brain.images.items()}
    if not told["placed"]:
        return images, labels > 0, told
    box = _box(labels > 0)
    amplitude, texture = drawn_looks(brain.measured, np.bincount(labels.ravel())[1:], rng)
    depth, nearest = _near(labels[box])
    at = np.nonzero((depth >= 0) | ((depth >= -REACH) & brain.white[box]))
    of = nearest[at] - 1
    for sequence in images:
        number = SEQUENCES.index(sequence)
        grain = _grainy(brain.measured.grain[number], depth.shape, rng)[at]
        shape = profile_at(depth[at], brain.measured.profile[number])
        change = amplitude[of, number] * shape + texture[of, number] * grain * np.clip(shape, 0, 1)
        images[sequence][box][at] += (brain.level[sequence] * change).astype(np.float32)
    return images, labels > 0, told


def _box(mask: np.ndarray) -> tuple[slice, ...]:
    """Around all that is true, with room for what lies within `REACH` of it."""
    (found,) = ndimage.find_objects(mask.astype(np.int8))
    return tuple(slice(max(0, side.start - REACH - 1), side.stop + REACH + 1) for side in found)


def _near(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depth, and the lesion that is nearest to each voxel."""
    places = ndimage.distance_transform_edt(labels == 0, return_distances=False, return_indices=True)
    return depth_of(labels > 0), labels[tuple(places)]


def _grainy(width: float, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """White noise through a Gaussian, standard deviation 1."""
    noise = ndimage.gaussian_filter(rng.standard_normal(shape, dtype=np.float32), width, truncate=3)
    return np.asarray(noise / noise.std())


def emptied(patient: Patient, *, seed: int = SEED) -> EmptyBrain:
    """A patient's brain without its lesions; what is drawn depends on the seed and the patient alone."""
    white = white_matter(patient, seed=seed)
    rng = np.random.default_rng([seed, int(patient.name)])
    images = filled(patient, white, rng)
    healthy = white & ~ndimage.binary_dilation(patient.lesions, TOUCHING, iterations=REACH)
    level = {sequence: float(np.median(image[healthy])) for sequence, image in images.items()}
    return EmptyBrain(patient.name, images, white, level, measure(patient, images, white, level))


def mirrored(mask: np.ndarray) -> np.ndarray:
    """A mask left to right: voxel x of MNI's 182 goes to 181 − x; nothing lies at the border of the box."""
    sides = BOX[2]
    return np.roll(mask[:, :, ::-1], 182 - sides.start - sides.stop, axis=2)


def made_case(brain: EmptyBrain, mask: np.ndarray, name: str, variant: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Images and mask of one case; every second variant is mirrored."""
    own = mirrored(mask) if variant % 2 else mask
    images, lesions, _ = implanted(brain, own, case_rng(brain.name, name, variant))
    return images, lesions


def case_rng(brain: str, mask: str, variant: int, *, seed: int = SEED) -> np.random.Generator:
    """What a case draws: by seed, brain, mask and variant."""
    return np.random.default_rng([seed, int(brain), int(mask), variant])


def mask_parts(lesions: Mapping[str, int], *, parts: int = 3, seed: int = SEED) -> list[tuple[str, ...]]:
    """Masks dealt out to parts of like size: sorted by their number of lesions, each run of `parts` shuffled.

    >>> [len(part) for part in mask_parts({str(n): n for n in range(9)})]
    [3, 3, 3]
    """
    order = sorted(lesions, key=lambda name: (lesions[name], name))
    rng, dealt = np.random.default_rng(seed), [[] for _ in range(parts)]
    for start in range(0, len(order), parts):
        run = order[start : start + parts]
        for place, name in zip(rng.permutation(parts), run, strict=False):
            dealt[place].append(name)
    return [tuple(sorted(part)) for part in dealt]
