"""Forward passes replayed as CUDA graphs: a small network spends most of its time launching kernels one by one.

Hooks run while a graph is recorded, so what the taps take is part of the graph. Used only where the subject says so.
"""

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.core.errors import SubjectError
from weakspot.core.look import Forward
from weakspot.core.taps import Captured, Recorder

_AS_ALWAYS = 2
"""A shape is recorded when it comes again after so many passes: by then libraries have chosen their kernels."""
_MOST = 8
"""Graphs kept at once: each holds the memory of a pass."""


@dataclass
class _Recorded:
    graph: torch.cuda.CUDAGraph
    inputs: Tensor
    outputs: Tensor
    captured: Captured
    uses: int = 0


class Replays:
    """The graphs recorded so far, by what is tapped and by the shape of the batch.

    asked: whether the user asked for them, and is told where a pass cannot be recorded; else it is run as always.
    """

    def __init__(self, *, asked: bool = True) -> None:
        self._recorded: dict[object, _Recorded] = {}
        self._met: Counter[object] = Counter()
        self._asked = asked
        self._most = _MOST

    def of(self, forward: Forward, recorder: Recorder) -> Forward:
        """A forward that replays where it can; what the taps take is left with the recorder as always."""

        def replayed(inputs: Tensor) -> Tensor:
            key = (recorder.key, inputs.shape, inputs.dtype)
            self._met[key] += 1
            if key not in self._recorded:
                if self._met[key] <= _AS_ALWAYS or len(self._recorded) >= self._most:
                    return forward(inputs)
                try:
                    self._recorded[key] = _record(forward, inputs, recorder)
                except SubjectError:
                    if self._asked:
                        raise
                    self._most = 0
                    return forward(inputs)
            return _replay(self._recorded[key], forward, inputs, recorder)

        return replayed


def _record(forward: Forward, inputs: Tensor, recorder: Recorder) -> _Recorded:
    held_inputs, graph = inputs.clone(), torch.cuda.CUDAGraph()
    try:
        with (
            recorder.recording(len(inputs)) as captured,
            torch.cuda.graph(graph, capture_error_mode="thread_local"),
            recorder.watching(),
        ):
            outputs = forward(held_inputs)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise SubjectError(
            f"the model cannot be replayed as a CUDA graph: {reason}; set cuda_graphs to false"
        ) from error
    return _Recorded(graph, held_inputs, outputs, captured)


def _replay(recorded: _Recorded, forward: Forward, inputs: Tensor, recorder: Recorder) -> Tensor:
    """The recorded pass on other inputs; the first other batch is run both ways and must agree."""
    expected = forward(inputs) if recorded.uses == 1 else None
    recorded.inputs.copy_(inputs)
    recorded.graph.replay()
    recorded.uses += 1
    if expected is not None:
        _check(expected, recorded.outputs)
    if recorder.captured is not None:
        recorder.captured.take_over(recorded.captured)
    return recorded.outputs.clone()


def _check(expected: Tensor, outputs: Tensor) -> None:
    """A graph repeats what one batch made the model do: a model that decides in Python would go wrong silently."""
    largest = float((expected - outputs).abs().max())
    if not largest <= 1e-3 * float(expected.abs().max()) + 1e-6:
        raise SubjectError(
            f"replayed as a CUDA graph the model's outputs differ by {largest:.3g}: it decides in Python what to run; "
            "set cuda_graphs to false"
        )
