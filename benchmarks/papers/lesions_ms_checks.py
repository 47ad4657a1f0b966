"""Can one see where a brain's own lesions were filled, and do implants look like lesions?

    python benchmarks/papers/lesions_ms_checks.py     writes lesions_ms_checks.csv beside this script

A random forest is given the neighbourhood of voxels (mean, spread, gradient and curvature of FLAIR and T1 over 3³ and
5³ voxels, means less that over 15³) and told which stem from where; its area under the ROC curve, over lesions it was
not trained on, is 0.5 where nothing tells them apart. Compared are, in each brain:

- `filled`: places of its own lesions after filling, against healthy white matter as deep inside;
- `placebo`: healthy places painted over in the same way, against other healthy ones: what the painting alone betrays;
- `lesion`: the lesions before filling, against healthy white matter, so that one sees that the forest can see;
- `implant`: implants of three other patients' lesions, against the brain's own; shapes, sizes and places differ, too.
"""

import argparse
from pathlib import Path

import numpy as np
from lesions_ms_implants import (
    BRAINS,
    REACH,
    SEQUENCES,
    TOUCHING,
    EmptyBrain,
    Patient,
    case_rng,
    emptied,
    filled,
    implanted,
    placed,
    read_mask,
    read_patient,
)
from lesions_ms_protocol import LESIONS, MSLUB, folds
from scipy import ndimage

MASKS = 3
"""How many masks are implanted for the comparison of implants."""


def neighbourhoods(images, places):
    """Features of the voxels at `places` (voxels, 3): (voxels, 12)."""
    columns = []
    at = tuple(places.T)
    for sequence in SEQUENCES:
        image = images[sequence]
        wide = ndimage.uniform_filter(image, 15)
        for side in (3, 5):
            mean = ndimage.uniform_filter(image, side)
            spread = np.sqrt(np.maximum(ndimage.uniform_filter(image**2, side) - mean**2, 0))
            columns += [(mean - wide)[at], spread[at]]
        columns += [ndimage.gaussian_gradient_magnitude(image, 1)[at], ndimage.gaussian_laplace(image, 1)[at]]
    return np.stack(columns, 1)


def places_of(labels, rng, *, per_lesion=5, lesions=200):
    """Up to `per_lesion` voxels of each label, and their labels."""
    found, groups = [], []
    for number in rng.permutation(np.arange(1, int(labels.max()) + 1))[:lesions]:
        voxels = np.argwhere(labels == number)
        found.append(voxels[rng.permutation(len(voxels))[:per_lesion]])
        groups.append(np.full(len(found[-1]), number))
    return np.concatenate(found), np.concatenate(groups)


def told_apart(one, other, groups_one, groups_other):
    """Area under the ROC curve of a random forest, over lesions it was not trained on (five folds)."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict

    features = np.concatenate([one, other])
    truth = np.repeat([1, 0], [len(one), len(other)])
    groups = np.concatenate([groups_one, groups_other + groups_one.max() + 1])
    forest = RandomForestClassifier(200, min_samples_leaf=5, class_weight="balanced", random_state=0)
    score = cross_val_predict(forest, features, truth, groups=groups, cv=GroupKFold(5), method="predict_proba")
    return float(roc_auc_score(truth, score[:, 1]))


def shifted_lesions(patient: Patient, healthy: np.ndarray, rng) -> np.ndarray:
    """The lesions' shapes at healthy places as deep in white matter: labels."""
    labels, count = ndimage.label(patient.lesions, TOUCHING)
    room = np.argwhere(healthy)
    found = np.zeros_like(labels)
    for number in range(1, count + 1):
        shape = np.argwhere(labels == number)
        shape = shape[:400] - shape[0]
        for place in room[rng.integers(len(room), size=200)]:
            moved = shape + place
            if (moved >= 0).all() and (moved < labels.shape).all() and healthy[tuple(moved.T)].mean() > 0.9:
                moved = moved[healthy[tuple(moved.T)] & (found[tuple(moved.T)] == 0)]
                found[tuple(moved.T)] = number
                break
    return found


def compared(patient: Patient, brain: EmptyBrain) -> dict[str, float]:
    rng = np.random.default_rng(0)
    around = ndimage.binary_dilation(patient.lesions, TOUCHING, iterations=REACH + 1)
    healthy = brain.white & ~around
    other = shifted_lesions(patient, healthy, rng)
    own, _ = ndimage.label(patient.lesions & brain.white, TOUCHING)
    at, of = places_of(own, rng)
    usual, of_usual = places_of(other, rng)
    half = (other > 0) & (other % 2 == 0)
    again = filled(Patient(patient.name, brain.images, half), brain.white, rng)
    there, painted = neighbourhoods(again, usual), of_usual % 2 == 0
    healthy_ones = neighbourhoods(patient.images, usual)
    found = {
        "filled": told_apart(neighbourhoods(brain.images, at), healthy_ones, of, of_usual),
        "placebo": told_apart(there[painted], there[~painted], of_usual[painted], of_usual[~painted]),
        "lesion": told_apart(neighbourhoods(patient.images, at), healthy_ones, of, of_usual),
    }
    return {**found, "implant": implants_told_apart(patient, brain, own, rng)}


def implants_told_apart(patient: Patient, brain: EmptyBrain, own: np.ndarray, rng) -> float:
    real, of_real = places_of(own, rng)
    parts, groups = [], []
    for number, mask in enumerate(list(LESIONS)[:: len(LESIONS) // MASKS][:MASKS]):
        images, lesions, _ = implanted(brain, read_mask(MSLUB, mask), case_rng(brain.name, mask, 0))
        labels, _ = ndimage.label(lesions, TOUCHING)
        at, of = places_of(labels, rng, lesions=100)
        parts.append(neighbourhoods(images, at))
        groups.append(of + 1000 * number)
    return told_apart(np.concatenate(parts), neighbourhoods(patient.images, real), np.concatenate(groups), of_real)


def told_of(brain: EmptyBrain) -> dict[str, float]:
    """What was measured in a brain: amplitudes (median, 10 and 90 %); and how its test masks fit in."""
    found: dict[str, float] = {"lesions": len(brain.measured.voxels)}
    for sequence, own in zip(SEQUENCES, brain.measured.amplitude.T, strict=True):
        low, middle, high = np.percentile(own, [10, 50, 90])
        found |= {f"{sequence}_low": low, f"{sequence}_median": middle, f"{sequence}_high": high}
    (fold,) = (fold for fold in folds() if fold.held_out == brain.name)
    totals = {"given": 0, "placed": 0, "moved": 0, "voxels_given": 0, "voxels_placed": 0}
    for name in fold.test_masks:
        mask = read_mask(MSLUB, name)
        labels, told = placed(mask, brain.white, case_rng(brain.name, name, 0))
        told |= {"voxels_given": int(mask.sum()), "voxels_placed": int((labels > 0).sum())}
        totals = {key: totals[key] + told[key] for key in totals}
    return {key: float(value) if isinstance(value, np.floating) else value for key, value in (found | totals).items()}


def main() -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
    from measuring import machine, write

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brain", choices=BRAINS, action="append")
    rows = []
    for name in parser.parse_args().brain or BRAINS:
        patient = read_patient(MSLUB, name)
        brain = emptied(patient)
        rows.append({"machine": machine("cpu"), "brain": name, **compared(patient, brain), **told_of(brain)})
        print(rows[-1], flush=True)
    write(
        Path(__file__).with_name("lesions_ms_checks.csv"),
        [{k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()} for row in rows],
    )


if __name__ == "__main__":
    main()
