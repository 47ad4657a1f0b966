"""The lesions of several cases, as a Finding holds them and as models read them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Finding
from weakspot.lesions.gcn import LesionGraph, lesion_graphs
from weakspot.lesions.graphs import LesionNodes


@dataclass(frozen=True)
class LesionSet:
    """Lesions one after another: the case of each, columns, and the nodes of all with their features."""

    case: NDArray[np.str_]
    columns: Mapping[str, np.ndarray]
    nodes: LesionNodes
    features: NDArray[np.float32]

    @classmethod
    def of(cls, finding: Finding) -> "LesionSet":
        """The lesions of a Finding of `Lesions`, or of one that scores them."""
        if finding.table is None or "node_features" not in finding.arrays:
            raise DataError(f"{finding.name} holds no lesions with their voxels: sample the cases first")
        table = {name: finding.table[name].to_numpy(zero_copy_only=False) for name in finding.table.column_names}
        starts = np.concatenate([[0], np.cumsum(table["nodes"], dtype=np.int64)])
        nodes = LesionNodes(np.asarray(finding.arrays["node_places"]), starts)
        return cls(
            np.asarray(table.pop("case"), dtype=np.str_), table, nodes, np.asarray(finding.arrays["node_features"])
        )

    @classmethod
    def joined(cls, sets: Sequence["LesionSet"]) -> "LesionSet":
        """Several sets as one, for instance the validation cases of all folds."""
        names = [name for name in sets[0].columns if all(name in each.columns for each in sets)]
        sizes = np.concatenate([np.diff(each.nodes.starts) for each in sets])
        places = np.concatenate([each.nodes.places for each in sets])
        return cls(
            np.concatenate([each.case for each in sets]),
            {name: np.concatenate([each.columns[name] for each in sets]) for name in names},
            LesionNodes(places, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])),
            np.concatenate([each.features for each in sets]),
        )

    def chosen(self, lesions: Sequence[int] | np.ndarray) -> "LesionSet":
        """Some of the lesions, by their places."""
        positions = np.asarray(lesions, dtype=np.int64)
        sizes = np.diff(self.nodes.starts)[positions]
        rows = np.concatenate(
            [np.arange(*self.nodes.starts[lesion : lesion + 2]) for lesion in positions] or [positions]
        )
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        columns = {name: values[positions] for name, values in self.columns.items()}
        return LesionSet(
            self.case[positions], columns, LesionNodes(self.nodes.places[rows], starts), self.features[rows]
        )

    def __len__(self) -> int:
        return len(self.case)

    @cached_property
    def graphs(self) -> list[LesionGraph]:
        """Every lesion as a graph."""
        return lesion_graphs(self.nodes, self.features)

    @cached_property
    def node_means(self) -> NDArray[np.float64]:
        """The mean of each feature over the nodes of a lesion, shape (lesions, features)."""
        sizes = np.diff(self.nodes.starts)
        if not len(sizes):
            return np.zeros((0, self.features.shape[1]))
        return np.add.reduceat(self.features.astype(np.float64), self.nodes.starts[:-1], axis=0) / sizes[:, None]

    @property
    def truth_known(self) -> bool:
        """Whether the lesions were cut with the true masks beside."""
        return "true_positive" in self.columns

    @property
    def adjusted_iou(self) -> NDArray[np.float64]:
        """How far each lesion agrees with the truth; an error where that is not known."""
        if "adjusted_iou" not in self.columns:
            raise DataError("these lesions were cut without the true masks: add masks to the data and sample again")
        return np.asarray(self.columns["adjusted_iou"], dtype=np.float64)

    @property
    def false_positive(self) -> NDArray[np.bool_]:
        """Which lesions are none; an error where the truth is not known."""
        self.adjusted_iou  # noqa: B018 - refuses lesions of unknown truth
        return ~np.asarray(self.columns["true_positive"], dtype=np.bool_)


def patients_of(cases: np.ndarray, pattern: str | None, *, strict: bool = True) -> NDArray[np.str_]:
    """The patient of each case: what the pattern matches at the beginning of its id, or the id itself.

    strict: whether a case that the pattern does not match is an error, or a patient of its own.

    >>> patients_of(np.array(["p01_a", "p01_b", "p02_a"]), "p[0-9]+").tolist()
    ['p01', 'p01', 'p02']
    """
    if pattern is None:
        return np.asarray(cases, dtype=np.str_)
    try:
        matched = {case: re.match(pattern, case) for case in np.unique(cases).tolist()}
    except re.error as error:
        raise ConfigError(f"patient {pattern!r} is no regular expression: {error}") from error
    patients = {case: match.group(0) if match else "" for case, match in matched.items()}
    lost = [case for case, name in patients.items() if not name]
    if lost and strict:
        raise ConfigError(f"patient {pattern!r} finds no patient in the id {lost[0]!r}: it must match every case")
    return np.array([patients[case] or case for case in cases.tolist()], dtype=np.str_)
