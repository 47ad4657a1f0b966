"""Runs with scored lesions and the volumes they lie in, made without a model."""

import numpy as np

from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run

SPACING = (3.0, 1.0, 1.0)
CASES = ("case-a", "case-b", "case <i>c</i>")
SHAPE = (12, 40, 32)


def case_volume(number, shape=SHAPE, lesions=4):
    """A case with balls of rising intensity: image int16, labels and truth."""
    rng = np.random.default_rng(number)
    image = rng.normal(100, 20, shape).astype(np.int16)
    labels = np.zeros(shape, dtype=np.int32)
    grid = np.ogrid[tuple(slice(0, side) for side in shape)]
    for lesion in range(1, lesions + 1):
        centre = [side * (0.2 + 0.6 * rng.random()) for side in shape]
        radius = (1.5, *(side / 12 for side in shape[1:]))
        apart = sum(((axis - place) / extent) ** 2 for axis, place, extent in zip(grid, centre, radius, strict=True))
        labels[(apart <= 1) & (labels == 0)] = lesion
    image[labels > 0] += 300
    return image, labels, labels * (labels % 2)  # every second one is truly none


def volumes_finding(volumes, *, axes="RAS", truth=True, maps=True):
    """As `CaseVolumes` gives it."""
    shapes = np.array([image.shape for image, _, _ in volumes])
    table = {"case": list(CASES[: len(volumes)]), **dict(zip("zyx", shapes.T, strict=True))}
    table |= {f"spacing_{axis}": np.full(len(volumes), side) for axis, side in zip("zyx", SPACING, strict=True)}
    table |= {"axes": [axes] * len(volumes), "truth": [truth] * len(volumes)}
    arrays = {}
    for number, (image, labels, true) in enumerate(volumes):
        places = np.flatnonzero(labels)
        arrays[f"image_{number:04d}"] = image[None]
        arrays[f"lesions_{number:04d}"] = np.stack([places, labels.ravel()[places]], 1).astype(np.uint32)
        arrays[f"truth_{number:04d}"] = np.flatnonzero(true).astype(np.uint32)
        if maps:
            inside = (labels > 0) * np.uint8(204)
            arrays[f"maps_{number:04d}"] = np.stack([inside, 255 - inside])
    arrays |= {"most_entropy": np.full(len(volumes), np.log(2))} if maps else {}
    numbers = {"scale": 1.0, "offset": 0.0, "low": 50.0, "high": 420.0, "smallest": -10.0, "largest": 500.0}
    arrays |= {name: np.full((len(volumes), 1), value) for name, value in numbers.items()}
    return Finding(name="lesions.case_volumes", about="Volumes.", table=table_of(table), arrays=arrays)


def scores_finding(volumes, *, scored=True, truth=True):
    """As `Scores` gives it, or, not scored, `Lesions`."""
    rows = []
    for number, (_, labels, true) in enumerate(volumes):
        for lesion in range(1, labels.max() + 1):
            places = np.argwhere(labels == lesion)
            row = {"case": CASES[number], "lesion": lesion, **dict(zip("zyx", places.mean(0).tolist(), strict=True))}
            row |= {"voxels": len(places), "volume_mm3": len(places) * 3.0, "entropy": 0.1 * lesion}
            row |= (
                {"false_positive_probability": ((lesion * 7 + number * 3) % 20) / 20 + 0.01, "rank": 1}
                if scored
                else {}
            )
            row |= {"true_positive": bool(true[labels == lesion].any())} if truth else {}
            rows.append(row)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Finding(name="lesions.scores" if scored else "lesions.lesions", about="Lesions.", table=table_of(columns))


def lesion_run(folder, *, shape=SHAPE, cases=3, volumes=True, scored=True, truth=True, axes="RAS", maps=True):
    """A Run with lesions in some cases."""
    run = Run.create(folder)
    made = [case_volume(number, shape) for number in range(cases)]
    run.save(scores_finding(made, scored=scored, truth=truth))
    if volumes:
        run.save(volumes_finding(made, axes=axes, truth=truth, maps=maps))
    return run
