"""What every probe of the room does: looks at a case T times, keeps running sums, and cuts the case into lesions."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.look import Look
from weakspot.core.needs import Needs
from weakspot.core.observation import Batch, Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.tasks import Task
from weakspot.lesions.cases import AXES, CaseLesions, Cutting, case_lesions, z_scored
from weakspot.lesions.metrics import RunningSamples, VoxelMaps


@dataclass(frozen=True)
class Sampling:
    """How cases are looked at and cut; the options are explained in `Lesions`."""

    look: Look
    samples: int
    foreground: tuple[int, ...]
    cutting: Cutting
    standardise: bool

    def __post_init__(self) -> None:
        if self.samples < 1 or not self.foreground or min(self.foreground) < 0:
            raise ConfigError(
                f"expected samples ≥ 1 and classes ≥ 0 in the foreground, got {self.samples} and {self.foreground}"
            )


class Looking(Probe):
    """Looks at every case T times, and hands on the maps that come of it."""

    tasks: ClassVar[tuple[Task, ...]] = ("segmentation",)

    @property
    @abstractmethod
    def manner(self) -> Sampling:
        """How cases are looked at and cut."""

    @property
    def needs(self) -> Needs:
        """T samples of each case."""
        return Needs(looks={self.manner.look: self.manner.samples})

    def observe(self, seen: Observation) -> None:
        """Add one sample to the running sums; the first look at a batch begins them."""
        if seen.number == self.manner.look.first:
            self._running, self._batch = RunningSamples(self.manner.foreground), seen.batch
            self._classes = seen.probabilities.shape[1]
        self._running.add(seen.probabilities)

    def close(self, ids: Sequence[str]) -> None:
        """Hand on every case of the batch."""
        batch, maps = self._batch, self._running.maps()
        del self._batch, self._running
        for place, case in enumerate(batch.ids):
            try:
                self.keep(batch, maps, place)
            except DataError as error:
                raise BadSample(case, f"case {case}: {error}") from error

    @abstractmethod
    def keep(self, batch: Batch, maps: VoxelMaps, place: int) -> None:
        """Fold the case at one place of a batch into the state; `maps` are those of the whole batch."""

    def truth(self, batch: Batch, place: int, dimensions: int) -> np.ndarray | None:
        """Which voxels of a case truly belong to a lesion, boolean; None where that is not known."""
        if batch.targets is None:
            return None
        numbers = batch.targets[place].cpu().numpy()  # class numbers, maybe with a channel of 1
        if numbers.ndim == dimensions + 1 and numbers.shape[0] == 1:
            numbers = numbers[0]
        if numbers.size and (numbers.min() < 0 or numbers.max() >= self._classes):
            raise DataError(
                f"the true mask holds {numbers.min():g} to {numbers.max():g}, expected class numbers from 0 to "
                f"{self._classes - 1}: give lesions the number of their class"
            )
        return np.isin(numbers, np.asarray(self.manner.foreground))


class Gathering(Looking):
    """Gathers the lesions of every case: one record per lesion, per node of its graph, and per case."""

    lesions = Rows()
    nodes = Rows()
    cases = Rows()

    def keep(self, batch: Batch, maps: VoxelMaps, place: int) -> None:
        """Cut the case into lesions."""
        case, found = batch.ids[place], self._case(batch, maps, place)
        count = len(found.columns["voxels"])
        self.lesions.append([case] * count, **found.columns, number=np.arange(1, count + 1))
        self.nodes.append([case] * len(found.features), place=found.nodes.places, features=found.features)
        self.cases.append([case], **{name: np.array([value], dtype=np.float64) for name, value in found.whole.items()})

    def _case(self, batch: Batch, maps: VoxelMaps, place: int) -> CaseLesions:
        own = {name: values[place].cpu().numpy() for name, values in vars(maps).items()}
        intensities = batch.inputs[place].cpu().numpy()
        if self.manner.standardise:
            intensities = z_scored(intensities)
        dimensions = own["lesion"].ndim
        truth, spacing = self.truth(batch, place, dimensions), spacing_of(batch, place, dimensions)
        return case_lesions(own, intensities, truth, self.manner.cutting, spacing=spacing)

    def gathered(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The table of all lesions by its columns, and the arrays beside it; in the order of the cases' ids."""
        lesions, nodes, cases = self.lesions.read(), self.nodes.read(), self.cases.read()
        order, node_order, case_order = (_by_id(rows, self.setting.ids) for rows in (lesions, nodes, cases))
        columns = {name: _taken(lesions[name], order) for name in lesions if name != "sample"}
        table = {
            "case": _taken(np.array(lesions.ids, dtype=np.str_), order),
            "lesion": columns.pop("number"),
            **columns,
        }
        arrays = {"node_features": nodes["features"], "node_places": nodes["place"]}
        arrays = {name: _taken(values, node_order) for name, values in arrays.items()}
        arrays["cases"] = _taken(np.array(cases.ids, dtype=np.str_), case_order)
        return table, arrays | {f"case_{key}": _taken(cases[key], case_order) for key in cases if key != "sample"}


def _by_id(rows: RowTable, ids: Sequence[str]) -> np.ndarray | None:
    """The order of the records by their case's id; none where they are so already, and large arrays stay on disk."""
    order = np.argsort(np.array(ids, dtype=np.str_), kind="stable")
    if (order == np.arange(len(order))).all() or not rows.count:
        return None
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.argsort(rank[rows["sample"]], kind="stable")


def _taken(values: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    return values if order is None else np.asarray(values)[order]


def spacing_of(batch: Batch, place: int, dimensions: int) -> tuple[float, ...] | None:
    """The spacing of a case in mm from the metadata `spacing_z`, `spacing_y`, `spacing_x`, where the data have it."""
    if dimensions not in AXES:
        raise DataError(f"a case has 2 or 3 spatial dimensions, got {dimensions}")
    metadata: dict[str, Any] = dict(batch.metadata or {})
    names = [f"spacing_{axis}" for axis in AXES[dimensions]]
    if not all(name in metadata for name in names):
        return None
    return tuple(float(metadata[name][place]) for name in names)
