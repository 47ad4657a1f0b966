"""A monitor beside a model at run time: with every prediction, the probability that the input is weak.

After DeepRobust (Zhong et al. 2021, `zhong2021`).
"""

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

from weakspot.core.errors import ConfigError, DataError, RunError, SubjectError
from weakspot.core.finite_check import finite_rows
from weakspot.core.run import Run
from weakspot.core.sample_check import outside_bounds
from weakspot.core.subject import Subject
from weakspot.core.taps import Layout, Recorder, wanted
from weakspot.core.tasks import predicted, probabilities
from weakspot.robustness.detector_data import normalised, query_columns
from weakspot.robustness.detector_probes import WeakDetector
from weakspot.robustness.detectors import Detector, Mode


class MonitorResult(NamedTuple):
    """What the model predicts for some inputs, and what the monitor says of them."""

    prediction: NDArray[np.generic]
    """The model's predictions: classes, or numbers."""
    probability: NDArray[np.float64]
    """The probability that each input is weak; NaN where it cannot be known."""
    flagged: NDArray[np.bool_]
    """Whether the monitor flags the input as weak; true also where that cannot be known."""


class RuntimeMonitor:
    """Flags weak inputs at run time, with a detector of a Run and the model that it was trained on.

    Used in `with`, the model is borrowed and its layer tapped once; called without it, at every call.

    An input with NaN or infinity or outside the subject's bounds, or one for which the model outputs NaN or infinity,
    is unlike all that the detector has seen: it is flagged, with a probability of NaN.

    detector: the trained detector.
    subject: the model.
    mode: "white_box", one forward pass and a small network on the features; "queries", one more forward pass for each
        query, and a network on their predictions; "together", both; "black_box", the diversity λ of these predictions.
    """

    def __init__(self, detector: Detector, subject: Subject, *, mode: Mode | None = None):
        made = detector.finding.provenance
        if subject.fingerprint() not in (made.get("subject"), made.get("code_and_weights")):
            raise SubjectError(
                "this model is not the one that the detector was trained on (their fingerprints differ: by weights, "
                "code, settings, or the versions of Python and packages): train a detector for it, or load what was "
                "examined"
            )
        self.detector, self.subject = detector, subject
        self.mode: Mode = mode or ("white_box" if subject.white_box else "queries")
        _check_mode(self.mode, detector, subject)
        self._looks = detector.looks(black_box=self.mode in ("queries", "black_box"))
        self._look = self._looks.look.within(subject.bounds)
        self._recorder: Recorder | None = None
        self._layout: Layout | None = None
        self._stack: ExitStack | None = None

    @classmethod
    def load(
        cls, run: Run | str | Path, subject: Subject, *, mode: Mode | None = None, name: str | None = None
    ) -> Self:
        """The monitor for a Run's detector; `name` says which Finding of `WeakDetector`, where there are several."""
        opened = run if isinstance(run, Run) else Run.open(run)
        usual = WeakDetector.name()
        if name is None and usual not in opened:
            raise RunError(f"{opened.folder} holds no detector: ask robustness with detector: true, then load again")
        return cls(Detector(opened[name or usual]), subject, mode=mode)

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

    def __call__(self, inputs: Tensor | np.ndarray, ids: Sequence[str] | None = None) -> MonitorResult:
        """Predict, and flag weak inputs.

        inputs: as they are in the data.
        ids: choose the queries; by default they are made from the inputs.
        """
        if self._stack is None:
            with self:
                return self(inputs, ids)
        batch = torch.as_tensor(inputs)
        self._check_shape(batch)
        on_device = batch.to(self.subject.device)
        with torch.no_grad():
            outputs, columns = self._original(on_device)
            if self.mode != "white_box":
                columns |= self._queries(on_device, outputs, ids or content_ids(batch))
        prediction = predicted(outputs, self.subject.task, self.subject.scores).cpu().numpy()
        valid = (self._valid_inputs(on_device) & finite_rows(outputs)).cpu().numpy()
        return MonitorResult(prediction, *self._judge(columns, valid))

    def _check_shape(self, inputs: Tensor) -> None:
        expected = self.detector.finding.arrays.get("input_shape")
        if expected is not None and list(inputs.shape[1:]) != expected.tolist():
            raise DataError(
                f"expected inputs of shape (inputs, {', '.join(map(str, expected.tolist()))}), got "
                f"{tuple(inputs.shape)}: resize or crop them as the training data were"
            )

    def _valid_inputs(self, inputs: Tensor) -> Tensor:
        """Which inputs an examination would accept, boolean."""
        finite, bounds = finite_rows(inputs), self.subject.bounds
        return finite if bounds is None else finite & ~outside_bounds(inputs, bounds)

    def _judge(self, columns: dict[str, np.ndarray], valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for values in columns.values():
            valid = valid & np.isfinite(values.reshape(len(valid), -1)).all(1)
        blanked = {name: values.copy() for name, values in columns.items()}
        for values in blanked.values():
            values[~valid] = 0
        probability, flagged = self.detector.judge(self.mode, blanked)
        return np.where(valid, probability, np.nan), flagged | ~valid

    def _original(self, inputs: Tensor) -> tuple[Tensor, dict[str, np.ndarray]]:
        """The outputs for the original, with its features where they are needed."""
        tap = self._looks.tap
        if tap is None:
            return self.subject.forward(inputs), {}
        recorder, layout = self._tapped(inputs)
        with recorder.recording(len(inputs)) as captured, recorder.watching():
            outputs = self.subject.forward(inputs)
        values = captured.channels(layout).mean.double().cpu()
        return outputs, {"features": normalised(values, self.subject.task).numpy().astype(np.float32)}

    def _tapped(self, inputs: Tensor) -> tuple[Recorder, Layout]:
        """The hooks on the layer that is read, found by one forward pass and then kept."""
        if self._recorder is None or self._layout is None:
            tap = self._looks.tap
            assert tap is not None
            self._layout = Layout(tap.points(self.subject.layers(inputs[:1])))
            self._recorder = Recorder(cast(nn.Module, self.subject.model), wanted([(tap, self._layout.points)]))
            if self._stack is not None:
                self._stack.enter_context(self._recorder.hooked())
        return self._recorder, self._layout

    def _queries(self, inputs: Tensor, outputs: Tensor, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """What the detector sees of the predictions for the queries."""
        numbers = self._look.numbers(self._looks.queries)
        looks = [outputs, *(self._look.outputs(self.subject.forward, inputs, ids, number) for number in numbers)]
        of_looks = [
            probabilities(look, self.subject.task, self.subject.scores).double().cpu().numpy() for look in looks
        ]
        return query_columns(np.stack(of_looks, 1))


def content_ids(inputs: Tensor) -> list[str]:
    """An id per input from its values, so that the same input always gets the same queries."""
    return [blake2b(np.ascontiguousarray(values).data, digest_size=16).hexdigest() for values in inputs.cpu().numpy()]


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
