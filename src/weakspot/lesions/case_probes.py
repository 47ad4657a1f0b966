"""What the probes of the room share: T looks at a case, running sums over them, and lesions cut from their mean."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.look import Look
from weakspot.core.needs import Needs
from weakspot.core.observation import Batch, Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.tasks import Task
from weakspot.lesions.cases import AXES, CaseLesions, LesionDefinition, SparseVolume, case_lesions, near, z_scored_at
from weakspot.lesions.location import location_columns
from weakspot.lesions.metrics import RunningSamples


@dataclass(frozen=True)
class Sampling:
    """How cases are looked at and cut; the options are explained in `Lesions`."""

    look: Look
    looks: int
    foreground: tuple[int, ...]
    definition: LesionDefinition
    standardise: bool

    def __post_init__(self) -> None:
        if self.looks < 1 or not self.foreground or min(self.foreground) < 0:
            raise ConfigError(
                f"expected looks ≥ 1 and classes ≥ 0 in the foreground, got {self.looks} and {self.foreground}"
            )


def lesion_bits(probabilities: Tensor, sampling: Sampling) -> np.ndarray:
    """The lesion masks of one look at some cases, flat and packed; slice by slice, as a whole volume takes memory."""
    first, *rest = sampling.foreground
    inside = torch.empty(probabilities[:, 0].shape, dtype=torch.bool)
    for part in range(probabilities.shape[2]):
        lesion = probabilities[:, first, part].float()
        for number in rest:
            lesion = lesion + probabilities[:, number, part].float()
        inside[:, part] = (lesion > sampling.definition.threshold).cpu()
    return np.packbits(inside.flatten(1).numpy(), axis=1)


class CaseProbe(Probe):
    """Looks at every case T times, and hands its voxel maps to `keep`."""

    tasks: ClassVar[tuple[Task, ...]] = ("segmentation",)

    @property
    @abstractmethod
    def case_sampling(self) -> Sampling:
        """How cases are looked at and cut."""

    @property
    def needs(self) -> Needs:
        """T looks at each case."""
        return Needs(looks={self.case_sampling.look: self.case_sampling.looks})

    def observe(self, seen: Observation) -> None:
        """Add one look to the running sums; the first one at a batch begins them."""
        if seen.number == self.case_sampling.look.first:
            self._running, self._batch = RunningSamples(self.case_sampling.foreground), seen.batch
            self._classes = seen.probabilities.shape[1]
        self._running.add(seen.probabilities)

    def close(self, ids: Sequence[str]) -> None:
        """Hand on every case of the batch."""
        batch, running = self._batch, self._running
        del self._batch, self._running
        for index, case in enumerate(batch.ids):
            try:
                self.keep(batch, running, index)
            except DataError as error:
                raise BadSample(case, f"case {case}: {error}") from error

    @abstractmethod
    def keep(self, batch: Batch, running: RunningSamples, index: int) -> None:
        """Fold the case at one place of a batch into the state; `running` are the sums over all looks at the batch."""

    def truth(self, batch: Batch, index: int, dimensions: int) -> np.ndarray | None:
        """Which voxels of a case truly belong to a lesion, boolean; None where that is not known."""
        if batch.targets is None:
            return None
        numbers = batch.targets[index].cpu().numpy()  # class numbers, maybe with a channel of 1
        if numbers.ndim == dimensions + 1 and numbers.shape[0] == 1:
            numbers = numbers[0]
        if numbers.size and (numbers.min() < 0 or numbers.max() >= self._classes):
            raise DataError(
                f"the true mask holds {numbers.min():g} to {numbers.max():g}, expected class numbers from 0 to "
                f"{self._classes - 1}: give lesions the number of their class"
            )
        first, *rest = self.case_sampling.foreground
        found = numbers == first
        for number in rest:
            found |= numbers == number
        return np.asarray(found)


class LesionProbe(CaseProbe):
    """Gathers the lesions of every case: one record per lesion, per node of its graph, and per case."""

    lesions = Rows()
    nodes = Rows()
    cases = Rows()
    sampled = Rows()

    def observe(self, seen: Observation) -> None:
        """Also keep each look's own mask, as bits."""
        if seen.number == self.case_sampling.look.first:
            self._masks: list[np.ndarray] = []
        self._masks.append(lesion_bits(seen.probabilities, self.case_sampling))
        super().observe(seen)

    def close(self, ids: Sequence[str]) -> None:
        """Hand on every case of the batch, and forget the masks."""
        super().close(ids)
        del self._masks

    def keep(self, batch: Batch, running: RunningSamples, index: int) -> None:
        """Cut the case into lesions."""
        case, lesions = batch.ids[index], self._case(batch, running, index)
        count = len(lesions.columns["voxels"])
        self.lesions.append([case] * count, **lesions.columns, number=np.arange(1, count + 1))
        self.nodes.append([case] * len(lesions.features), place=lesions.nodes.places, features=lesions.features)
        masks = lesions.masks
        assert masks is not None
        self.sampled.append([case] * len(masks.places), place=masks.places.astype(np.uint32), masks=masks.bits)
        whole = {**lesions.whole, "sampled_voxels": len(masks.places), "looks": masks.looks}
        numbers = {name: np.array([value], dtype=np.float64) for name, value in whole.items()}
        self.cases.append([case], **numbers, sides=np.array([masks.sides], dtype=np.int64))

    def _case(self, batch: Batch, running: RunningSamples, index: int) -> CaseLesions:
        lesion, definition = running.lesion(index).cpu().numpy(), self.case_sampling.definition
        places = near(lesion > definition.threshold, definition.dilation)
        inside = running.maps_at(index, torch.from_numpy(places))
        of_classes = running.classes_at(index, torch.from_numpy(places)).cpu().numpy()
        if index == len(batch) - 1:
            running.forget()
        by_name: dict[str, Any] = {
            name: SparseVolume(values.cpu().numpy(), places, lesion.shape) for name, values in vars(inside).items()
        }
        by_name["lesion"] = lesion
        intensities: Any = batch.inputs[index].cpu().numpy()
        if self.case_sampling.standardise and intensities.shape[1:] == lesion.shape:
            intensities = z_scored_at(intensities, places)
        dimensions = lesion.ndim
        truth, spacing = self.truth(batch, index, dimensions), spacing_of(batch, index, dimensions)
        packed = [own[index] for own in self._masks]
        found = case_lesions(by_name, intensities, truth, definition, spacing=spacing, sampled=packed)
        more = lesion_classes(found, of_classes, places, self.case_sampling.foreground)
        more |= self._placed(batch, index, found, spacing)
        return replace(found, columns={**found.columns, **more})

    def _placed(
        self, batch: Batch, index: int, found: CaseLesions, spacing: tuple[float, ...] | None
    ) -> dict[str, np.ndarray]:
        """Where each lesion lies; nothing for slices."""
        image, columns = batch.inputs[index], found.columns
        if image.ndim != 4:
            return {}
        centres = np.column_stack([columns[axis] for axis in AXES[3]]).reshape(-1, 3)
        letters = (batch.metadata or {}).get("axes")
        axes = "" if letters is None else str(letters[index])
        return location_columns(image.cpu().numpy(), centres, spacing=spacing, axes=axes)

    def gathered(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The table of all lesions by its columns, and the arrays beside it; in the order of the cases' ids."""
        lesions, nodes, cases, sampled = (rows.read() for rows in (self.lesions, self.nodes, self.cases, self.sampled))
        order, node_order, case_order, sampled_order = (
            _by_id(rows, self.setting.ids) for rows in (lesions, nodes, cases, sampled)
        )
        columns = {name: _taken(lesions[name], order) for name in lesions if name != "sample"}
        table = {
            "case": _taken(np.array(lesions.ids, dtype=np.str_), order),
            "lesion": columns.pop("number"),
            **columns,
        }
        arrays = {"node_features": nodes["features"], "node_places": nodes["place"]}
        arrays = {name: _taken(values, node_order) for name, values in arrays.items()}
        if sampled.count:
            arrays["sample_places"] = _taken(sampled["place"], sampled_order)
            arrays["sample_masks"] = _taken(sampled["masks"], sampled_order)
        arrays["cases"] = _taken(np.array(cases.ids, dtype=np.str_), case_order)
        return table, arrays | {f"case_{key}": _taken(cases[key], case_order) for key in cases if key != "sample"}


def lesion_classes(
    found: CaseLesions, of_classes: np.ndarray, places: np.ndarray, foreground: Sequence[int]
) -> dict[str, np.ndarray]:
    """The lesion class that is most probable on average over a lesion's nodes; nothing where there is one class alone.

    of_classes: mean probabilities (lesion classes, places).
    """
    if len(foreground) < 2 or found.masks is None:
        return {}
    at = np.searchsorted(places, np.ravel_multi_index(tuple(found.nodes.places.T), found.masks.sides))
    sums = np.add.reduceat(of_classes[:, at], found.nodes.starts[:-1], axis=1) if len(at) else of_classes[:, :0]
    return {"lesion_class": np.asarray(foreground)[sums.argmax(0)].astype(np.int64)}


def _by_id(rows: RowTable, ids: Sequence[str]) -> np.ndarray | None:
    """The order of the records by their case's id; none where they are so already, and large arrays stay on disk."""
    order = id_order(ids)
    if (order == np.arange(len(order))).all() or not rows.count:
        return None
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.argsort(rank[rows["sample"]], kind="stable")


def _taken(values: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    return values if order is None else np.asarray(values)[order]


def spacing_of(batch: Batch, index: int, dimensions: int) -> tuple[float, ...] | None:
    """The spacing of a case in mm from the metadata `spacing_z`, `spacing_y`, `spacing_x`, where the data have it."""
    if dimensions not in AXES:
        raise DataError(f"a case has 2 or 3 spatial dimensions, got {dimensions}")
    metadata: dict[str, Any] = dict(batch.metadata or {})
    names = [f"spacing_{axis}" for axis in AXES[dimensions]]
    if not all(name in metadata for name in names):
        return None
    return tuple(float(metadata[name][index]) for name in names)
