"""Samples that somebody labelled: labels from a table, joined by id onto a source that has none."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.observation import Batch
from weakspot.core.outputs import UNUSABLE
from weakspot.core.source import Source, Subset, groups_of
from weakspot.core.stateless_random import draw_keys
from weakspot.core.tasks import Task

if TYPE_CHECKING:
    import pyarrow as pa

Target = float | Sequence[float] | np.ndarray


class Labelled:
    """The samples of a source that have a label, with the labels as targets; what targets it had are not looked at.

    source: samples, such as a pool of unlabelled data.
    labels: the target of each labelled sample by its id: a class number, a number, or several of them. A label of a
        sample that the source does not have is refused.
    """

    def __init__(self, source: Source, labels: Mapping[str, Target]):
        self._chosen = Subset.named(source, labels)
        self.ids, self.groups = self._chosen.ids, self._chosen.groups
        shapes = {np.shape(label) for label in labels.values()}
        if len(shapes) > 1:
            raise DataError(f"labels of different shapes: {', '.join(map(str, sorted(shapes)))}; all must be alike")
        values = np.array([labels[name] for name in self.ids])
        if len(values) and values.dtype.kind not in "biuf":
            raise DataError(f"expected labels that are numbers, got {values.dtype}: classes by their numbers")
        self._targets = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, with their labels."""
        batch = self._chosen.read(positions)
        targets = torch.from_numpy(self._targets[positions])
        return Batch(batch.ids, batch.positions, batch.inputs, targets, batch.metadata)

    def fingerprint(self) -> str:
        """Of the samples and of the labels."""
        return digest([self._chosen.fingerprint(), self._targets])


def held_out(source: Source, share: float, *, seed: int = 0) -> tuple[Source, Source]:
    """What to train on, and the share of the samples by which to judge when to stop; drawn by the ids.

    Hold out before samples are repeated or varied, so that none is on both sides. Samples that belong together stay
    together.
    """
    if not 0 < share < 1:
        raise ConfigError(f"expected a share between 0 and 1 to hold out, got {share}")
    count = round(share * len(source.ids))
    if not 0 < count < len(source.ids):
        raise DataError(
            f"{share:g} of {len(source.ids)} samples cannot be held out: label more, or train without (validation 0)"
        )
    groups = groups_of(source)
    order = np.argsort(draw_keys(source.ids if groups is None else groups.names.tolist(), seed), kind="stable")
    if groups is not None:
        count = _whole_groups(groups.names[order], count)
    return Subset(source, np.sort(order[count:])), Subset(source, np.sort(order[:count]))


def _whole_groups(names: np.ndarray, count: int) -> int:
    """The number nearest to the count that parts no group; at least one group is on either side."""
    ends = np.flatnonzero(names[1:] != names[:-1]) + 1
    if not len(ends):
        raise DataError(
            f"all samples belong to {str(names[0])!r}: none can be held out, so train without (validation 0)"
        )
    return int(ends[np.argmin(np.abs(ends - count))])


def targets_of(
    table: "pa.Table", *, task: Task = "classification", classes: Sequence[str] | None = None
) -> dict[str, Target]:
    """The targets in a table with the columns `id` and `label`, without rows of no label or of "unusable".

    A class is its name or its number; labels present are names with ";" between them; numbers are numbers, several of
    them with a space or ";" between them.

    >>> import pyarrow as pa
    >>> targets_of(pa.table({"id": ["a", "b", "c"], "label": ["cat", None, "1"]}), classes=["cat", "dog"])
    {'a': 0, 'c': 1}
    """
    if not {"id", "label"} <= set(table.column_names):
        raise DataError(f"expected the columns id and label, got {', '.join(table.column_names)}")
    pairs = zip(table["id"].to_pylist(), table["label"].to_pylist(), strict=True)
    none = {None, "", UNUSABLE} - set(classes or ())
    return {name: _target(name, label, task, classes) for name, label in pairs if label not in none}


def _target(name: str, label: Any, task: Task, classes: Sequence[str] | None) -> Target:
    if task == "classification":
        return _class_number(name, label, classes)
    if task == "multilabel":
        if classes is None:
            raise ConfigError("labels by name need the classes' names: give them to the subject")
        present = {_class_number(name, part.strip(), classes) for part in str(label).split(";") if part.strip()}
        return [int(number in present) for number in range(len(classes))]
    if task not in ("regression", "keypoints"):
        raise ConfigError(f"labels of a {task} cannot be read from a table: give a source that has its targets")
    try:
        numbers = [float(part) for part in _parts(label)]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not np.isfinite(numbers).all():
        raise DataError(
            f"the label {label!r} of {name!r} is not a number: expected one, or several with spaces between"
        )
    return numbers if len(numbers) > 1 else numbers[0]


def _parts(label: Any) -> Iterable[Any]:
    if isinstance(label, str):
        return label.replace(";", " ").split()
    return label if isinstance(label, Sequence) else [label]


def _class_number(name: str, label: Any, classes: Sequence[str] | None) -> int:
    if classes is not None and label in classes:
        return list(classes).index(label)
    text = str(label)
    if text.isdecimal() and (classes is None or int(text) < len(classes)):
        return int(text)
    expected = "a class number" if classes is None else f"one of {', '.join(classes[:5])}{' …' * (len(classes) > 5)}"
    raise DataError(f"the label {label!r} of {name!r} is not a class: expected {expected}")
