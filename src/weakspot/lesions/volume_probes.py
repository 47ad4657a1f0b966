"""The volumes themselves, kept in the Run, so that lesions can be looked at where they are."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Batch
from weakspot.core.probe import Rows, RowStore
from weakspot.core.rows import RowTable
from weakspot.lesions import outputs as declared
from weakspot.lesions.case_probes import spacing_of
from weakspot.lesions.metrics import RunningSamples
from weakspot.lesions.metrics_components import lesion_components
from weakspot.lesions.probes import SamplingProbe
from weakspot.lesions.slices import intensity_window
from weakspot.lesions.volumes import COLUMNS, MAPS, PER_SEQUENCE, eight_bits, sixteen_bits

BLOCK = 4096
"""Voxels of one record: records must be alike, and volumes are not."""
_LOOKED_AT = 1 << 20
"""Voxels of a sequence by which its window is chosen, evenly over the volume."""


class CaseVolumes(SamplingProbe):
    """The cases to look at: their images, the lesions found in them and, where it is known, the truth.

    For the viewer, which shows slices of what the Run holds alone. Lesions are cut as in `Lesions` (Lambert et
    al. 2022) and have its numbers. An image takes 2 bytes per voxel and sequence, both maps 1 each, lesions 8 and truth
    4 per voxel in them.

    sampling: options of `Lesions`, how cases are looked at and cut.
    sequences: which ones are kept, by their place in the input, from 0 on; all where none is named.
    maps: whether the mean probability of a lesion and the entropy at every voxel are kept, too, in 8 bits.
    """

    outputs = declared.CASE_VOLUMES

    sequences: tuple[int, ...] = ()
    maps: bool = True

    images = Rows()
    voxel_maps = Rows()
    lesion_voxels = Rows()
    true = Rows()
    cases = Rows()

    def keep(self, batch: Batch, running: RunningSamples, index: int) -> None:
        """Keep one case; a slice counts as a volume of one."""
        case, definition = batch.ids[index], self.case_sampling.definition
        lesion = running.lesion(index).cpu().numpy()
        labels, _ = lesion_components(lesion > definition.threshold, smallest=definition.smallest)
        truth, spacing = self.truth(batch, index, lesion.ndim), spacing_of(batch, index, lesion.ndim)
        if tuple(batch.inputs.shape[2:]) != lesion.shape:
            raise DataError(f"the image has shape {tuple(batch.inputs.shape[2:])}, the segmentation {lesion.shape}")
        numbers = self._image(case, batch.inputs[index])
        if self.maps:
            entropy = running.entropy(index).cpu().numpy()
            _keep_blocks(self.voxel_maps, case, [eight_bits(lesion, 1), eight_bits(entropy, self._most_entropy)])
        places = np.flatnonzero(labels)
        self.lesion_voxels.append(
            [case] * len(places), voxel=np.stack([places, labels.ravel()[places]], 1).astype(np.uint32)
        )
        true = np.flatnonzero(truth) if truth is not None else np.empty(0)
        self.true.append([case] * len(true), place=true.astype(np.uint32))
        shape = (1,) * (3 - lesion.ndim) + lesion.shape
        sides = (1.0,) * (3 - lesion.ndim) + (spacing or (np.nan,) * lesion.ndim)
        self.cases.append(
            [case],
            shape=np.array([shape]),
            spacing=np.array([sides], dtype=np.float64),
            axes=_letters(batch, index),
            truth=np.array([truth is not None]),
            numbers=numbers[None],
            most_entropy=np.array([self._most_entropy]),
        )

    @property
    def _most_entropy(self) -> float:
        return float(np.log(self._classes))

    def _image(self, case: str, inputs: torch.Tensor) -> np.ndarray:
        """Keep the image block by block; what `PER_SEQUENCE` names of each sequence, shape (6, sequences)."""
        per_sequence, parts = [], []
        for image in self._chosen(inputs.cpu().numpy()):
            stored, scale, offset = sixteen_bits(image)
            step = max(1, image.size // _LOOKED_AT)
            per_sequence.append((scale, offset, *intensity_window(image.ravel()[::step]), image.min(), image.max()))
            parts.append(stored)
        _keep_blocks(self.images, case, parts)
        return np.array(per_sequence, dtype=np.float64).T

    def _chosen(self, image: np.ndarray) -> np.ndarray:
        if any(not 0 <= number < len(image) for number in self.sequences):
            raise DataError(f"sequences is {list(self.sequences)}, and the input has those from 0 to {len(image) - 1}")
        return image[list(self.sequences)] if self.sequences else image

    def finish(self) -> Finding:
        """The cases in the order of their ids; their arrays stay on disk."""
        cases, ids = self.cases.read(), self.setting.ids
        order = sorted(range(cases.count), key=lambda row: ids[int(cases["sample"][row])])
        images, maps, lesion_voxels, true = (
            _by_case(*read) for read in (
                (self.images.read(), "voxels"), (self.voxel_maps.read(), "voxels"),
                (self.lesion_voxels.read(), "voxel"), (self.true.read(), "place"),
            )
        )  # fmt: skip
        arrays: dict[str, np.ndarray] = {}
        for number, row in enumerate(order):
            sample, shape = int(cases["sample"][row]), tuple(cases["shape"][row].tolist())
            arrays[f"image_{number:04d}"] = _volume(images[sample], (cases["numbers"].shape[2], *shape))
            if self.maps:
                arrays[f"maps_{number:04d}"] = _volume(maps[sample], (len(MAPS), *shape))
            arrays[f"lesions_{number:04d}"] = lesion_voxels.get(sample, np.empty((0, 2), dtype=np.uint32))
            arrays[f"truth_{number:04d}"] = true.get(sample, np.empty(0, dtype=np.uint32))
        arrays |= {name: cases["numbers"][order, number] for number, name in enumerate(PER_SEQUENCE)}
        if self.maps:
            arrays["most_entropy"] = cases["most_entropy"][order]
        size = sum(array.nbytes for array in arrays.values())
        summary = {
            "cases": Estimate(len(order), about="cases that can be looked at"),
            "bytes": Estimate(size, about="that they take"),
        }
        return self.finding(summary=summary, table=self._table(cases, order), arrays=arrays)

    def _table(self, cases: RowTable, order: list[int]) -> dict[str, Any]:
        names = [self.setting.ids[int(cases["sample"][row])] for row in order]
        axes = ["".join(map(chr, row)).strip() for row in cases["axes"][order].tolist()]
        shape, spacing = cases["shape"][order].T, cases["spacing"][order].T
        return dict(
            zip(COLUMNS, [np.array(names), *shape, *spacing, np.array(axes), cases["truth"][order]], strict=True)
        )


def _keep_blocks(rows: RowStore, case: str, parts: Sequence[np.ndarray]) -> None:
    """Volumes of one case, flat and one after another, as records of equal size."""
    flat = np.concatenate([part.ravel() for part in parts])
    flat = np.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)
    rows.append([case] * len(flat), voxels=flat)


def _volume(blocks: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return blocks.reshape(-1)[: np.prod(shape)].reshape(shape)


def _by_case(rows: RowTable, column: str) -> dict[int, np.ndarray]:
    """The records of each case by its place in the data, mapped; all of one case lie in one shard."""
    return dict(_parts(rows, column))


def _parts(rows: RowTable, column: str) -> Iterator[tuple[int, np.ndarray]]:
    if column in rows:
        for samples, values in zip(rows.blocks("sample"), rows.blocks(column), strict=True):
            cases, starts = np.unique(samples, return_index=True)
            yield from zip(cases.tolist(), np.split(values, starts[1:]), strict=True)


def _letters(batch: Batch, index: int) -> np.ndarray:
    """Where x, y and z point to by the metadata `axes`, as numbers of letters; spaces where that is not known."""
    axes = (batch.metadata or {}).get("axes")
    text = "" if axes is None else str(axes[index])
    return np.frombuffer(f"{text if len(text) == 3 and text.isascii() else '':3}".encode(), dtype=np.uint8)[None]
