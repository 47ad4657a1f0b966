"""What can be told of volumes and of stored samples before anything is computed: that each file is there and fits."""

from collections.abc import Mapping

import numpy as np

from weakspot.core.errors import BadSample
from weakspot.core.source import Source, innermost
from weakspot.data.names import listed
from weakspot.data.nifti import NiftiFolder
from weakspot.data.nifti_files import SUFFIXES, read_voxels
from weakspot.looks import StoredSamples

_MOST_OUTSIDE = 0.05
"""Share of the voxels of a stored segmentation that the softmax may give another class: half precision, and ties."""


def check_files(data: Mapping[str, Source], model: object) -> None:
    """Refuse splits with missing files, or with stored samples of another shape, naming every such case at once.

    Where a folder of stored samples holds segmentations too, as nnU-Net writes them, that of the first case must agree
    with the softmax.
    """
    for split, source in data.items():
        volumes = innermost(source)
        if not isinstance(volumes, NiftiFolder):
            continue
        bad = [error for case in source.ids if (error := _trouble(volumes, case, model)) is not None]
        if bad:
            more = (
                f" ({len(bad)} of {len(source.ids)} cases of {split} cannot be used: {listed([e.sample for e in bad])})"
            )
            skip = "; correct them, or leave such cases out with on_bad_sample 'skip'"
            raise BadSample(bad[0].sample, f"{bad[0]}{more}{skip}" if len(bad) > 1 else str(bad[0]))
        if isinstance(model, StoredSamples):
            _check_segmentations(volumes, source.ids[0], model)


def _trouble(volumes: NiftiFolder, case: str, model: object) -> BadSample | None:
    try:
        volumes.check_files(case)
        if isinstance(model, StoredSamples):
            model.check_case(case, volumes.grid(case).working_shape, whole=False)
    except BadSample as error:
        return error
    return None


def _check_segmentations(volumes: NiftiFolder, case: str, model: StoredSamples) -> None:
    """Refuse softmax volumes whose largest class is another than that of the segmentation beside them."""
    shape = (model.classes, *volumes.grid(case).working_shape)
    for folder in model.folders:
        for path in (folder / f"{case}{suffix}" for suffix in SUFFIXES):
            if not path.is_file():
                continue
            voxels, _ = read_voxels(path, case)
            stored = np.asarray(voxels).transpose()
            largest = model.volume(folder, case, shape).argmax(0).numpy()
            wrong = float((largest != stored)[stored > 0].mean()) if stored.shape == largest.shape else 1.0
            if np.any(stored > 0) and wrong > _MOST_OUTSIDE:
                raise BadSample(
                    case,
                    f"case {case}: {wrong:.0%} of the lesion voxels of {path} have another class in {case}.npz beside "
                    "it: one of them is of another prediction, or its axes are turned; predict both again",
                )
