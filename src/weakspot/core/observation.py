"""What a probe is shown: one look at one batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import DataError, ProbeError
from weakspot.core.finite_check import FiniteCheck
from weakspot.core.groups import Groups
from weakspot.core.layers import Layer, Point
from weakspot.core.look import Look
from weakspot.core.needs import Attribution
from weakspot.core.taps import Captured, Channels, Layout, Tap, taken_at
from weakspot.core.tasks import Scores, Task, correct, predicted, probabilities

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Batch:
    """Some samples: their ids, their places in the data, inputs, and what is known of them."""

    ids: tuple[str, ...]
    positions: np.ndarray
    inputs: Tensor
    targets: Tensor | None = None
    metadata: Mapping[str, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known_targets(self) -> Tensor:
        """The labels; an error where the data have none."""
        if self.targets is None:
            raise DataError(
                f"this question needs targets, and the data have no targets: add them (sample {self.ids[0]!r} "
                "has none), or leave the question out"
            )
        return self.targets

    def positions_of(self, ids: Sequence[str]) -> np.ndarray:
        """The places in the data of some of the samples, int64; a KeyError for any other id."""
        if ids is self.ids:
            return self.positions
        return np.fromiter((self._position[name] for name in ids), dtype=np.int64, count=len(ids))

    @cached_property
    def _position(self) -> dict[str, int]:
        return dict(zip(self.ids, self.positions.tolist(), strict=True))

    def select(self, rows: np.ndarray) -> "Batch":
        """The samples where `rows` is true; the batch itself where that is all."""
        if rows.all():
            return self
        where = torch.from_numpy(rows).to(self.inputs.device)
        metadata = None if self.metadata is None else {key: column[rows] for key, column in self.metadata.items()}
        targets = None if self.targets is None else self.targets[where]
        ids = tuple(name for name, chosen in zip(self.ids, rows, strict=True) if chosen)
        return Batch(ids, self.positions[rows], self.inputs[where], targets, metadata)

    def pinned(self) -> "Batch":
        """The same batch in memory that a GPU can copy by itself."""
        targets = None if self.targets is None else self.targets.pin_memory()
        return Batch(self.ids, self.positions, self.inputs.pin_memory(), targets, self.metadata)

    def to(self, device: torch.device) -> "Batch":
        """The same batch with its tensors on `device`."""
        targets = None if self.targets is None else self.targets.to(device, non_blocking=True)
        inputs = self.inputs.to(device, non_blocking=True)
        return Batch(self.ids, self.positions, inputs, targets, self.metadata)


@dataclass(frozen=True)
class Setting:
    """What stays the same over a whole examination; a probe finds it as `self.setting`."""

    task: Task
    scores: Scores | None
    classes: tuple[str, ...] | None
    layers: tuple[Layer, ...]
    ids: Sequence[str]
    groups: Groups | None = None
    """What the samples belong to; None where each stands for itself."""
    device: torch.device = _CPU
    """Where the model runs."""
    _layouts: dict[tuple[object, str], Layout] = field(default_factory=dict, repr=False, compare=False)

    @property
    def here(self) -> torch.device:
        """Where this process works on what a pass left: the model's GPU, or a CPU where there is none."""
        return self.device if self.device.type != "cuda" or torch.cuda.is_available() else _CPU

    def layout(self, tap: Tap) -> Layout:
        """How the neurons of a tap lie side by side; the same object for the same layers and side."""
        key = (tap.layers, tap.side)
        if key not in self._layouts:
            self._layouts[key] = Layout(tap.points(self.layers))
        return self._layouts[key]

    def groups_of(self, ids: Sequence[str]) -> np.ndarray | None:
        """The name of the group of each of some samples; None where each stands for itself."""
        return None if self.groups is None else np.array([self._group[name] for name in ids])

    @cached_property
    def _group(self) -> dict[str, str]:
        names = [] if self.groups is None else self.groups.names.tolist()
        return dict(zip(self.ids, names, strict=True))


@dataclass(frozen=True)
class PredictionArrays:
    """The predictions of one forward pass, of one look at a batch or of several, where numpy works on them.

    From a GPU they are fetched once for all looks and all probes: every fetching waits for what it is doing.
    """

    outputs: Tensor
    batch: Batch
    setting: Setting

    @cached_property
    def predicted(self) -> np.ndarray:
        """The predictions, shape (looks, samples, …)."""
        return self._fetched(predicted(self.outputs, self.setting.task, self.setting.scores))

    @cached_property
    def correct(self) -> np.ndarray:
        """Which are correct, boolean, shape (looks, samples)."""
        targets = self.batch.known_targets
        looks = len(self.outputs) // max(1, len(self.batch))
        repeated = targets.repeat(looks, *(1 for _ in targets.shape[1:]))
        return self._fetched(correct(self.outputs, repeated, self.setting.task, self.setting.scores))

    def _fetched(self, values: Tensor) -> np.ndarray:
        fetched: np.ndarray = values.unflatten(0, (-1, len(self.batch))).cpu().numpy()
        return fetched


@dataclass(frozen=True)
class LookResult:
    """One look at one batch: what came out, and what was taken on the way, for all probes together.

    predictions: of the forward pass, which several looks may have shared.
    index: which of them this is.
    relevance_start: what each sample's relevance began with, where the method is meant to conserve it.
    """

    batch: Batch
    look: Look
    number: int
    setting: Setting
    outputs: Tensor
    captured: Captured
    relevance: Mapping[Point, Tensor]
    predictions: PredictionArrays
    index: int = 0
    finite_check: FiniteCheck = field(default_factory=FiniteCheck, repr=False)
    relevance_start: Tensor | None = None
    _channels: dict[Tap, Channels] = field(default_factory=dict, repr=False)

    def channels(self, tap: Tap) -> Channels:
        """Channel means at the tapped layers, put together once for all probes that ask."""
        if tap not in self._channels:
            self._channels[tap] = self._scaled(tap) if tap.scaled else self._plain(tap)
        return self._channels[tap]

    def _plain(self, tap: Tap) -> Channels:
        channels = self.captured.channels(self.setting.layout(tap))
        self.finite_check.note(channels.mean, self.batch.ids, channels.layout.where)
        return channels

    def _scaled(self, tap: Tap) -> Channels:
        return self.captured.with_extremes(self.channels(replace(tap, scaled=False)))

    @cached_property
    def predicted(self) -> Tensor:
        """See `Observation`, for all samples; so are the next two."""
        return predicted(self.outputs, self.setting.task, self.setting.scores)

    @cached_property
    def probabilities(self) -> Tensor:
        """Class probabilities."""
        return probabilities(self.outputs, self.setting.task, self.setting.scores)

    @cached_property
    def correct(self) -> Tensor:
        """Which samples are predicted correctly."""
        return correct(self.outputs, self.batch.known_targets, self.setting.task, self.setting.scores)

    def note_finite_check(self) -> None:
        """Have what came out, whole maps and relevance asked about; channel means are when they are put together."""
        self.finite_check.note(self.outputs, self.batch.ids, lambda column: "its output")
        for kind, taken in (("", self.captured.maps), ("the relevance of ", self.relevance)):
            for point, values in taken.items():
                self.finite_check.note(values, self.batch.ids, partial(_named, f"{kind}layer {point.label}"))


@dataclass(frozen=True)
class Observation:
    """One look at one batch, as one probe sees it: only the samples it still wants to look at."""

    seen: LookResult
    rows: np.ndarray
    """Which samples of the pass, boolean."""

    @cached_property
    def batch(self) -> Batch:
        """The samples."""
        return self.seen.batch if self._all else self.seen.batch.select(self.rows)

    @property
    def ids(self) -> tuple[str, ...]:
        """The samples' ids."""
        return self.batch.ids

    @property
    def look(self) -> Look:
        """How the samples were looked at."""
        return self.seen.look

    @property
    def number(self) -> int:
        """Which look it is: 0 for the original, 1 … count for any other kind."""
        return self.seen.number

    @property
    def inputs(self) -> Tensor:
        """The samples as they are in the data, before any variation and pre-processing."""
        return self.batch.inputs

    @property
    def targets(self) -> Tensor:
        """The labels; an error where the data have none."""
        return self.batch.known_targets

    @cached_property
    def correct(self) -> Tensor:
        """Which samples are predicted correctly, boolean; for classes and labels."""
        return self._mine(self.seen.correct)

    @property
    def predicted_array(self) -> np.ndarray:
        """`predicted` as a numpy array."""
        return self._here(self.seen.predictions.predicted)

    @property
    def correct_array(self) -> np.ndarray:
        """`correct` as a numpy array."""
        return self._here(self.seen.predictions.correct)

    @property
    def metadata(self) -> Mapping[str, np.ndarray]:
        """Whatever else is known of each sample, by column."""
        return self.batch.metadata or {}

    @cached_property
    def outputs(self) -> Tensor:
        """The outputs of the subject."""
        return self._mine(self.seen.outputs)

    @cached_property
    def predicted(self) -> Tensor:
        """The prediction: class, labels present, or the numbers themselves, according to the task."""
        return self._mine(self.seen.predicted)

    def prediction_columns(self, *, labelled: bool = False) -> dict[str, Tensor]:
        """Each sample's `prediction` and, where the data have targets, `target` and `correct`; for classes and labels.

        labelled: refuse data without targets.
        """
        if self.batch.targets is None and not labelled:
            return {"prediction": self.predicted}
        return {"prediction": self.predicted, "target": self.targets.long(), "correct": self.correct}

    @cached_property
    def probabilities(self) -> Tensor:
        """Class probabilities; the subject must say whether its outputs are logits or probabilities."""
        return self._mine(self.seen.probabilities)

    def channels(self, tap: Tap) -> Channels:
        """Channel means of the tapped layers side by side, shape (samples, neurons)."""
        channels = self.seen.channels(tap)
        return channels if self._where is None else channels.select(self._where)

    def maps(self, tap: Tap) -> dict[str, Tensor]:
        """The whole maps of the tapped layers, by the layer's label."""
        points = self.seen.setting.layout(tap).points
        return {point.label: self._mine(taken_at(self.seen.captured.maps, point)) for point in points}

    def relevance(self, attribution: Attribution) -> dict[str, Tensor]:
        """The relevance of the attribution's layers, by label, of the shape of their values."""
        points = self.seen.setting.layout(attribution.tap).points
        return {point.label: self._mine(taken_at(self.seen.relevance, point)) for point in points}

    @property
    def relevance_start(self) -> Tensor | None:
        """What each sample's relevance began with, where the method is meant to conserve it."""
        return None if self.seen.relevance_start is None else self._mine(self.seen.relevance_start)

    def _here(self, values: np.ndarray) -> np.ndarray:
        mine: np.ndarray = values[self.seen.index]
        return mine if self._all else mine[self.rows]

    @cached_property
    def _all(self) -> bool:
        return bool(self.rows.all())

    @cached_property
    def _where(self) -> Tensor | None:
        return None if self._all else torch.from_numpy(self.rows).to(self.seen.outputs.device)

    def _mine(self, values: Tensor) -> Tensor:
        return values if self._where is None else values[self._where]


def _named(name: str, column: int) -> str:
    return name


def released_rows(ids: Sequence[str], released: Any) -> np.ndarray:
    """Which of `ids` are among the released ones, boolean."""
    names = frozenset(() if isinstance(released, str) else released)
    if isinstance(released, str) or not names <= frozenset(ids):
        raise ProbeError(f"observe may return ids of the batch it was shown, got {released!r}")
    return np.fromiter((name in names for name in ids), dtype=bool, count=len(ids))
