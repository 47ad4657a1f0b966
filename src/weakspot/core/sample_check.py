"""Checks of every batch that is read, so that a bad sample is named and never becomes a number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import BadSample, DataError
from weakspot.core.finite_check import finite_rows
from weakspot.core.observation import Batch
from weakspot.core.progress import Progress
from weakspot.core.source import Source, Subset, check_ids, read_ahead
from weakspot.core.subject import Subject
from weakspot.core.tasks import Task

_ROUNDING = 1e-3
"""By what share of their span values may lie outside the bounds: resizing and decoding round."""


class CheckedSource:
    """A source whose samples are looked at as they are read: what cannot be right is refused by the sample's name.

    Class numbers and labels are handed on as whole numbers, whatever they came as.

    classes: how many there are, where that is known.
    bounds: the smallest and largest value an input may have, where the subject says so.
    stored: refuses a sample, by its id and the shape of its input without channels, of which the model, such as stored
        predictions, has none.
    """

    def __init__(
        self,
        source: Source,
        task: Task,
        classes: int | None,
        *,
        bounds: tuple[float, float] | None = None,
        stored: Callable[[str, Sequence[int]], None] | None = None,
    ):
        self.original = source
        self._stored = stored
        self._task: Task = task
        self._classes = classes
        self._bounds = bounds

    @property
    def ids(self) -> Sequence[str]:
        """As in the source."""
        return self.original.ids

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, once they have passed every check."""
        batch = self.original.read(positions)
        if not len(batch.ids) == len(batch.inputs) == len(positions):
            raise DataError(
                f"the source gave {len(batch.ids)} ids and {len(batch.inputs)} inputs for {len(positions)} places: "
                "its read() must return one of each per place"
            )
        _refuse(~finite_rows(batch.inputs), batch, "holds NaN or infinity")
        if self._bounds is not None:
            _check_bounds(batch, self._bounds)
        for name in batch.ids if self._stored is not None else ():
            self._stored(name, tuple(batch.inputs.shape[2:]))  # type: ignore[misc]
        if batch.targets is None:
            return batch
        _check_targets(batch, batch.targets, self._task, self._classes)
        whole = self._task in ("classification", "multilabel")
        return replace(batch, targets=batch.targets.long()) if whole else batch

    def fingerprint(self) -> str:
        """As of the source."""
        return self.original.fingerprint()


def outside_bounds(inputs: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Which inputs have values below or above the bounds, boolean, shape (samples,)."""
    slack = _ROUNDING * (bounds[1] - bounds[0])
    low, high = bounds[0] - slack, bounds[1] + slack
    least, most = inputs.aminmax()
    if least >= low and most <= high:
        return torch.zeros(len(inputs), dtype=torch.bool, device=inputs.device)
    rows = inputs.flatten(1)
    return (rows.amin(1) < low) | (rows.amax(1) > high)


def _check_bounds(batch: Batch, bounds: tuple[float, float]) -> None:
    """Variations keep to the bounds, so an input that lies outside would not be like its own neighbours."""
    outside = outside_bounds(batch.inputs, bounds)
    if not bool(outside.any()):
        return
    least, most = batch.inputs[int(outside.int().argmax())].aminmax()
    reach = f"has values from {least.item():g} to {most.item():g}"
    trouble = f"{reach}, outside the subject's bounds {bounds} for data before pre-processing"
    _refuse(outside, batch, trouble, correct="it or the bounds")


def _check_targets(batch: Batch, targets: Tensor, task: Task, classes: int | None) -> None:
    if len(targets) != len(batch):
        raise DataError(f"the source gave {len(targets)} targets for {len(batch)} samples: one per sample is needed")
    _refuse(~finite_rows(targets), batch, "has a target that is NaN or infinite")
    if task == "classification":
        if targets.ndim != 1:
            raise DataError(
                f"targets have shape {tuple(targets.shape)}, expected one class number per sample: for one-hot "
                "targets give the index of the 1; for several labels per sample set task='multilabel', for numbers "
                "task='regression'"
            )
        _refuse(targets != targets.long(), batch, "has a target that is not a class number", targets)
        most = classes if classes is not None else int(targets.max()) + 1
        expected = "a class number of 0 or more" if classes is None else f"a class number from 0 to {classes - 1}"
        _refuse((targets < 0) | (targets >= most), batch, f"needs {expected} as target", targets)
    if task == "multilabel":
        _refuse(((targets != 0) & (targets != 1)).flatten(1).any(1), batch, "has labels other than 0 and 1")


def _refuse(bad: Tensor, batch: Batch, trouble: str, values: Tensor | None = None, *, correct: str = "it") -> None:
    if bool(bad.any()):
        row = int(bad.int().argmax())
        got = "" if values is None else f", got {values[row].item():g}"
        advice = f"correct {correct}, or leave such samples out (on_bad_sample 'skip')"
        raise BadSample(batch.ids[row], f"sample {batch.ids[row]!r} {trouble}{got}: {advice}")


class ValidSubset(Subset):
    """The samples of a source that can be used; `skipped` says of each of the others why not."""

    def __init__(self, source: Source, skipped: Mapping[str, str]):
        self.skipped = dict(skipped)
        if len(self.skipped) == len(source.ids):
            raise DataError(
                f"none of the {len(source.ids)} samples can be used; the first: {next(iter(skipped.values()))}"
            )
        super().__init__(source, [index for index, name in enumerate(source.ids) if name not in self.skipped])


def usable(subject: Subject, source: Source, *, batch_size: int, workers: int, progress: Progress) -> ValidSubset:
    """What is left of a source when every sample was read once and those that cannot be used are left out."""
    check_ids(source)
    stored = getattr(subject.model, "check_case", None)
    readable = CheckedSource(source, subject.task, None, bounds=subject.bounds, stored=stored)
    first = next((index for index in range(len(source.ids)) if not _troubles(readable, np.array([index]))), 0)
    outputs, _ = subject.tried(source.read(np.array([first])).inputs)
    known: dict[str, Any] = {"bounds": subject.bounds, "stored": stored}
    checked = CheckedSource(source, subject.task, subject.class_count(outputs), **known)
    total = len(source.ids)
    batches = [np.arange(start, min(start + batch_size, total)) for start in range(0, total, batch_size)]
    skipped: dict[str, str] = {}
    progress.begin("checking the samples", total=total)
    try:
        for places, troubles in zip(batches, read_ahead(partial(_troubles, checked), batches, workers), strict=True):
            skipped |= troubles
            progress.advance(len(places))
    finally:
        progress.end()
    return ValidSubset(source, skipped)


def _troubles(source: Source, places: np.ndarray) -> dict[str, str]:
    """Why each bad sample of a batch is bad, by id; sample by sample where the whole cannot be read."""
    try:
        source.read(places)
    except BadSample as error:
        if len(places) == 1:
            return {error.sample: str(error)}
        return {name: why for index in places for name, why in _troubles(source, index[None]).items()}
    return {}
