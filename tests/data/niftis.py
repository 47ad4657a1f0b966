"""Small NIfTI data sets for tests."""

import json

import nibabel
import numpy as np


def affine(spacing=(1.0, 1.0, 1.0), axes="RAS", origin=(0.0, 0.0, 0.0)):
    """From voxels to millimetres for axes that point where the letters say."""
    matrix = np.eye(4)
    for column, letter in enumerate(axes):
        row, sign = {"R": (0, 1), "L": (0, -1), "A": (1, 1), "P": (1, -1), "S": (2, 1), "I": (2, -1)}[letter]
        matrix[:3, column] = 0
        matrix[row, column] = sign * spacing[column]
    matrix[:3, 3] = origin
    return matrix


def save(path, array, matrix):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array, matrix), path)


def data_set(folder, cases=("a", "b"), sequences=2, shape=(6, 7, 8), matrix=None, seed=0):
    """imagesTr, labelsTr and dataset.json; returns the arrays by file name, (x, y, z)."""
    rng = np.random.default_rng(seed)
    matrix = affine() if matrix is None else matrix
    made = {}
    for case in cases:
        for number in range(sequences):
            made[f"{case}_{number:04d}"] = rng.normal(100, 20, shape).astype(np.float32)
            save(folder / "imagesTr" / f"{case}_{number:04d}.nii.gz", made[f"{case}_{number:04d}"], matrix)
        made[case] = (rng.random(shape) > 0.8).astype(np.uint8)
        save(folder / "labelsTr" / f"{case}.nii.gz", made[case], matrix)
    about = {
        "channel_names": {str(number): name for number, name in enumerate(("FLAIR", "T1")[:sequences])},
        "labels": {"background": 0, "lesion": 1},
        "numTraining": len(cases),
        "file_ending": ".nii.gz",
    }
    (folder / "dataset.json").write_text(json.dumps(about))
    return made
