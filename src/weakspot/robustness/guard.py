"""A guard beside a model at run time: with every answer, how probably the input is weak (Zhong et al. 2021)."""

from collections.abc import Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weakspot.core.checking import outside_bounds
from weakspot.core.errors import ConfigError, RunError, SubjectError
from weakspot.core.run import Run
from weakspot.core.soundness import sound_rows
from weakspot.core.subject import Subject
from weakspot.core.taps import Layout, Recorder, wanted
from weakspot.core.tasks import predicted, probabilities
from weakspot.robustness.detectors import WeakDetector
from weakspot.robustness.gathering import normalised, query_columns
from weakspot.robustness.learning import Detector, Mode


class Judgement(NamedTuple):
    """What the model and its guard say of some inputs."""

    predicted: NDArray[np.generic]
    """The model's answers: classes, or the numbers themselves."""
    probability: NDArray[np.float64]
    """How probably each input is weak; NaN where that cannot be known."""
    weak: NDArray[np.bool_]
    """Whether the guard calls it weak; true also where that cannot be known."""


class Guard:
    """Judges inputs as they come in, with a detector of a Run and the very model that it was trained on.

    mode: "white_box", one pass and a small network on the features; "queries", as many passes more as the detector
    has queries, and a network on the answers; "together", both; "black_box", the diversity λ of these answers alone.

    Used in `with`, the model is borrowed and its layer tapped once; called without, at every call.

    An input with NaN or infinity or outside the subject's bounds, or one that the model answers so, is like none that
    the detector has seen: it is called weak, with a probability of NaN.
    """

    def __init__(self, detector: Detector, subject: Subject, *, mode: Mode | None = None):
        trained = detector.finding.provenance.get("subject")
        if trained is None or subject.fingerprint() != trained:
            raise SubjectError(
                "this model is not the one that the detector was trained on (their fingerprints differ): train a "
                "detector for it, or load the weights that were examined"
            )
        self.detector, self.subject = detector, subject
        self.mode: Mode = mode or ("white_box" if subject.white_box else "queries")
        _check_mode(self.mode, detector, subject)
        self._manner = detector.manner(black_box=self.mode in ("queries", "black_box"))
        self._look = self._manner.look.within(subject.bounds)
        self._recorder: Recorder | None = None
        self._layout: Layout | None = None
        self._stack: ExitStack | None = None

    @classmethod
    def load(
        cls, run: Run | str | Path, subject: Subject, *, mode: Mode | None = None, name: str | None = None
    ) -> Self:
        """The guard that a Run holds; `name` says which Finding of `WeakDetector`, where there are several."""
        opened = run if isinstance(run, Run) else Run.open(run)
        own = WeakDetector.name()
        if name is None and own not in opened:
            raise RunError(f"{opened.folder} holds no detector: ask robustness with detector: true, then load again")
        return cls(Detector(opened[name or own]), subject, mode=mode)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(self.subject.borrowed())
        if self._recorder is not None:
            self._stack.enter_context(self._recorder.hooked())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def __call__(self, inputs: Tensor | np.ndarray, ids: Sequence[str] | None = None) -> Judgement:
        """Judge inputs as they are in the data; their ids, which choose the queries, are made of them if not given."""
        if self._stack is None:
            with self:
                return self(inputs, ids)
        given = torch.as_tensor(inputs)
        there = given.to(self.subject.device)
        with torch.no_grad():
            outputs, columns = self._original(there)
            if self.mode != "white_box":
                columns |= self._queried(there, outputs, ids or content_ids(given))
        answers = predicted(outputs, self.subject.task, self.subject.scores).cpu().numpy()
        known = (self._like_any_seen(there) & sound_rows(outputs)).cpu().numpy()
        return Judgement(answers, *self._judged(columns, known))

    def _like_any_seen(self, inputs: Tensor) -> Tensor:
        """Which inputs are such as an examination would have taken, boolean."""
        sound, bounds = sound_rows(inputs), self.subject.bounds
        return sound if bounds is None else sound & ~outside_bounds(inputs, bounds)

    def _judged(self, columns: dict[str, np.ndarray], known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for values in columns.values():
            known = known & np.isfinite(values.reshape(len(known), -1)).all(1)
        blanked = {name: values.copy() for name, values in columns.items()}
        for values in blanked.values():
            values[~known] = 0
        probability, weak = self.detector.judged(self.mode, blanked)
        return np.where(known, probability, np.nan), weak | ~known

    def _original(self, inputs: Tensor) -> tuple[Tensor, dict[str, np.ndarray]]:
        """The answer to the original, with its features where they are wanted."""
        tap = self._manner.tap
        if tap is None:
            return self.subject.forward(inputs), {}
        recorder, layout = self._tapped(inputs)
        with recorder.recording(len(inputs)) as captured:
            outputs = self.subject.forward(inputs)
        values = captured.channels(layout).mean.double().cpu()
        return outputs, {"features": normalised(values, self.subject.task).numpy().astype(np.float32)}

    def _tapped(self, inputs: Tensor) -> tuple[Recorder, Layout]:
        """The hooks on the layer that is read, found by watching one pass and then kept."""
        if self._recorder is None or self._layout is None:
            tap = self._manner.tap
            assert tap is not None
            self._layout = Layout(tap.points(self.subject.layers(inputs[:1])))
            self._recorder = Recorder(cast(nn.Module, self.subject.model), wanted([(tap, self._layout.points)]))
            if self._stack is not None:
                self._stack.enter_context(self._recorder.hooked())
        return self._recorder, self._layout

    def _queried(self, inputs: Tensor, outputs: Tensor, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """What the answers to the queries tell."""
        numbers = self._look.numbers(self._manner.queries)
        answers = [outputs, *(self._look.outputs(self.subject.forward, inputs, ids, number) for number in numbers)]
        told = [probabilities(each, self.subject.task, self.subject.scores).double().cpu().numpy() for each in answers]
        return query_columns(np.stack(told, 1))


def content_ids(inputs: Tensor) -> list[str]:
    """An id per input from its values: the same input is always asked with the same queries."""
    return [blake2b(np.ascontiguousarray(each).data, digest_size=16).hexdigest() for each in inputs.cpu().numpy()]


def _check_mode(mode: str, detector: Detector, subject: Subject) -> None:
    if mode not in get_args(Mode):
        raise ConfigError(f"mode {mode!r} is not known: choose one of {', '.join(get_args(Mode))}")
    if detector.why_none is not None:
        raise ConfigError(f"the Run's detector has learnt nothing: {detector.why_none}")
    if mode not in detector.modes:
        have = ", ".join(detector.modes)
        raise ConfigError(f"the detector has no mode {mode!r}, only {have}: train it with layers, queries or both")
    if mode in ("white_box", "together") and not subject.white_box:
        raise SubjectError(f"mode {mode!r} reads a layer, which a black box does not show: use 'queries'")
