"""Traces: the values of a layer's neurons for every input, and how to read them again."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.layers import Side
from weakspot.core.observation import Observation
from weakspot.core.probe import LayerProbe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.taps import Layers
from weakspot.coverage import finding_outputs as declared

By = Literal["prediction", "target"]
"""Which class an input belongs to: the predicted one, or the true one."""


class LayerTraces(LayerProbe):
    """The value of every neuron of some layers for every input: a trace per input (Kim et al. 2019).

    A channel's value is the mean over its positions. For a classifier with the class that is predicted and, if known,
    the true one.

    layers: the layers, by default the penultimate; several stand side by side.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    """

    outputs = declared.LAYER_TRACES

    split = "train"

    layers: Layers = "penultimate"
    side: Side = "activated"

    traces = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the traces, and for a classifier the classes."""
        columns = {"trace": seen.channels(self.tap).mean}
        if self.setting.task == "classification":
            columns["prediction"] = seen.predicted
            if seen.batch.targets is not None:
                columns["target"] = seen.targets.long()
        self.traces.append(seen.ids, **columns)

    def finish(self) -> Finding:
        """The traces as one array, in the order of the data."""
        rows = self.traces.read()
        summary = {
            "neurons": Estimate(rows["trace"].shape[1], about="values kept per input"),
            "inputs": Estimate(rows.count, about="samples examined"),
        }
        classes = {name: rows[name] for name in ("prediction", "target") if name in rows}
        return self.finding(summary=summary, table={"id": rows.ids, **classes}, arrays={"trace": rows["trace"]})


@dataclass(frozen=True)
class Traces:
    """Traces with the ids and classes of their inputs, in the order of the ids: so nothing depends on that of the data.

    `values` lie on disk in the order of the data; `order` says where each input's row is.
    """

    values: np.ndarray
    order: np.ndarray
    ids: np.ndarray
    classes: dict[str, np.ndarray]

    @classmethod
    def of_rows(cls, rows: RowTable) -> "Traces":
        """From the rows of a pass."""
        classes = {name: np.asarray(rows[name]) for name in ("prediction", "target") if name in rows}
        return cls._in_order(rows["trace"], rows.ids, classes)

    @classmethod
    def of_finding(cls, finding: Finding) -> "Traces":
        """From the Finding of `LayerTraces`."""
        if finding.table is None or "trace" not in finding.arrays:
            raise ProbeError(f"{finding.name} has no traces; examine again")
        table = finding.table
        classes = {name: table[name].to_numpy() for name in ("prediction", "target") if name in table.column_names}
        return cls._in_order(finding.arrays["trace"], table["id"].to_pylist(), classes)

    @classmethod
    def _in_order(cls, values: np.ndarray, ids: Sequence[str], classes: dict[str, np.ndarray]) -> "Traces":
        names, order = np.asarray(ids, dtype=np.str_), id_order(ids)
        return cls(values, order, names[order], {name: column[order] for name, column in classes.items()})

    @property
    def count(self) -> int:
        """How many inputs."""
        return len(self.order)

    def of_class(self, by: By) -> np.ndarray:
        """The class of each input; an error where it is not known."""
        if by not in self.classes:
            raise ConfigError(
                f"the {by} classes are not known for these data: give targets, or use classes_by: prediction"
            )
        return self.classes[by]

    def columns(self, neurons: np.ndarray) -> np.ndarray:
        """The values of some neurons for all inputs, float64, shape (inputs, neurons)."""
        taken, rank = np.empty((self.count, len(neurons))), np.empty_like(self.order)
        rank[self.order] = np.arange(self.count)
        for start in range(0, self.count, 4096):  # in the order of the file: a mapped one is read once through
            block = slice(start, start + 4096)
            taken[rank[block]] = self.values[block][:, neurons]
        return taken

    def means(self) -> np.ndarray:
        """The mean of every neuron over the inputs, float64, (neurons,)."""
        blocks = np.array_split(self.order, max(1, self.count // 4096))
        total: np.ndarray = sum(self.values[block].sum(0, dtype=np.float64) for block in blocks)
        return total / self.count

    def in_order(self) -> np.ndarray:
        """All traces in the order of the ids, mapped from a file of their own: they may be larger than memory."""
        with tempfile.TemporaryFile() as file:
            sorted_rows = np.memmap(file, self.values.dtype, "w+", shape=self.values.shape)
        for block in np.array_split(np.arange(self.count), max(1, self.count // 4096)):
            sorted_rows[block] = self.values[self.order[block]]
        return sorted_rows
