"""A guard at run time: how far each prediction can be trusted. Needs PyTorch and nothing else; may be copied alone.

from guard_runtime import GuardedModel, load_guard

guarded = GuardedModel(model, load_guard("guard.safetensors"))
answer = guarded(images)          # answer.prediction, answer.verdict, answer.wrong_probability, ...
"""

import json
import math
import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn

FORMAT = "weakspot.guard.1"
VERDICTS = ("trusted", "doubtful", "unfamiliar")
"""What a guard says, by number: not flagged; flagged as probably wrong; unlike the data that it was calibrated on."""
_TINY = 1e-12
_MOST_HEADER = 1 << 24


class GuardError(ValueError):
    """An input or file that a guard cannot be used with."""


class GuardAnswer(NamedTuple):
    """What a guard says of some inputs; tensors with one entry or row per input."""

    outputs: Tensor
    """Of the model, (inputs, classes)."""
    prediction: Tensor
    wrong_probability: Tensor
    """That the prediction is incorrect, if the input is like the calibration data."""
    unusual: Tensor
    """How far the input lies from the reference data: the largest of several standardised distances."""
    familiarity: Tensor
    """The share of calibration inputs that are at least as unusual (a conformal p-value)."""
    prediction_set: Tensor
    """The classes that the promised coverage leaves, boolean (inputs, classes)."""
    flagged: Tensor
    """Whether `wrong_probability` reaches the operating point."""
    verdict: Tensor
    """The number of one of `VERDICTS`."""

    @property
    def verdict_names(self) -> list[str]:
        """The verdict on each input in words."""
        return [VERDICTS[number] for number in self.verdict.tolist()]


class GuardModule(nn.Module):
    """Scores, and thresholds that were set on held-out data.

    about: the settings: which scores, input shape, layer, thresholds and what they promise.
    tensors: the fitted numbers by their names.
    """

    def __init__(self, about: Mapping[str, Any], tensors: Mapping[str, Tensor]):
        super().__init__()
        self.about = dict(about)
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def scores(self, inputs: Tensor, outputs: Tensor, features: Tensor | None) -> dict[str, Tensor]:
        """Each score, higher for what is more suspicious: of confidence, and of being unlike the reference data."""
        return self.scored(input_statistics(inputs), outputs, features)

    def scored(self, statistics: Tensor, outputs: Tensor, features: Tensor | None) -> dict[str, Tensor]:
        """The same from `input_statistics`."""
        logits = self.logits(outputs)
        found = {**confidence_scores(logits), "pixels": self._far("pixel", self.appearance(statistics))}
        if self.about["outputs"] == "probabilities":  # their logarithms have lost what energy and max logit measure
            del found["energy"], found["max_logit"]
        if features is not None:
            found["mahalanobis"] = self._far_from_classes(features)
            found["knn"] = self._neighbour_distance(features)
        return found

    def logits(self, outputs: Tensor) -> Tensor:
        """The outputs as logits."""
        return outputs.clamp_min(_TINY).log() if self.about["outputs"] == "probabilities" else outputs

    def appearance(self, statistics: Tensor) -> Tensor:
        """`input_statistics` with all but the means on a logarithmic scale."""
        means = self.about["input_shape"][0] if len(self.about["input_shape"]) > 1 else 1
        return torch.cat([statistics[:, :means], statistics[:, means:].add(1e-4).log()], 1)

    def _far(self, name: str, values: Tensor) -> Tensor:
        """log of the squared Mahalanobis distance from the reference data."""
        centred = (values - self.get_buffer(f"{name}_mean")) @ self.get_buffer(f"{name}_whitening")
        return centred.square().sum(1).add(_TINY).log()

    def _far_from_classes(self, features: Tensor) -> Tensor:
        """log of the squared Mahalanobis distance from the nearest class."""
        white = self.get_buffer("feature_whitening")
        means = self.get_buffer("class_means") @ white
        placed = features @ white
        squares = placed.square().sum(1, keepdim=True) - 2 * placed @ means.T + means.square().sum(1)
        return squares.amin(1).clamp_min(_TINY).log()

    def _neighbour_distance(self, features: Tensor) -> Tensor:
        """log of the distance to the k-th nearest reference input, all features of length 1."""
        bank = self.get_buffer("bank")
        unit = nn.functional.normalize(features, dim=1)
        nearest = (unit @ bank.T).topk(int(self.about["neighbours"]), dim=1).values[:, -1]
        return (2 - 2 * nearest).clamp_min(_TINY).log() / 2

    def judged(self, scores: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """From scores to the probability of being wrong, and to how unusual the input is."""
        stacked = torch.stack([scores[name] for name in self.about["inputs"]], 1)
        centre, scale = self.get_buffer("score_mean"), self.get_buffer("score_scale")
        clipped = torch.minimum(torch.maximum(stacked, self.get_buffer("score_low")), self.get_buffer("score_high"))
        wrong = torch.sigmoid((clipped - centre) / scale @ self.get_buffer("weights") + self.get_buffer("offset"))
        strange = torch.stack([scores[name] for name in self.about["strangeness"]], 1)
        centre, scale = self.get_buffer("strange_mean"), self.get_buffer("strange_scale")
        return wrong, ((strange - centre) / scale).amax(1)

    @torch.no_grad()
    def forward(self, inputs: Tensor, outputs: Tensor, features: Tensor | None = None) -> GuardAnswer:
        """What the guard says of inputs as they are in the data, the model's outputs and the layer's features."""
        self.check(inputs, outputs, features)
        scores = self.scores(inputs.double(), outputs.double(), None if features is None else features.double())
        wrong, unusual = self.judged(scores)
        seen = self.get_buffer("calibration_unusual")
        familiarity = (1 + (seen[None] >= unusual[:, None]).sum(1)) / (len(seen) + 1)
        flagged = wrong >= self.about["flag_threshold"]
        sets = prediction_sets(self.logits(outputs.double()).softmax(1), **self.about["set"])
        verdict = torch.where(familiarity <= self.about["unfamiliar_rate"], 2, flagged.long())
        return GuardAnswer(outputs, outputs.argmax(1), wrong, unusual, familiarity, sets, flagged, verdict)

    def check(self, inputs: Tensor, outputs: Tensor, features: Tensor | None) -> None:
        """Refuse what the guard was not made for."""
        if torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
            return  # an exported graph has fixed shapes, and cannot ask about values
        check_inputs(inputs, self.about["input_shape"])
        if outputs.ndim != 2 or outputs.shape[1] != self.about["classes"]:
            raise GuardError(
                f"the model gives outputs of shape {tuple(outputs.shape)}: expected (inputs, {self.about['classes']})"
            )
        if (features is None) != (self.about["layer"] is None):
            raise GuardError("this guard reads a layer: give its features, or use GuardedModel")
        bad = ~torch.isfinite(outputs).all(1)
        if bad.any():
            raise GuardError(f"the model's output for input {int(bad.nonzero()[0])} is NaN or infinite")


def check_inputs(inputs: Tensor, shape: list[int]) -> None:
    """Refuse inputs of another shape, or with NaN or infinity, before a model meets them."""
    if list(inputs.shape[1:]) != list(shape):
        raise GuardError(
            f"expected inputs of shape (inputs, {', '.join(map(str, shape))}), got {tuple(inputs.shape)}: resize or "
            "crop them as the calibration data were"
        )
    bad = ~torch.isfinite(inputs.flatten(1)).all(1)
    if bad.any():
        raise GuardError(f"input {int(bad.nonzero()[0])} holds NaN or infinity: expected finite numbers")


def confidence_scores(logits: Tensor) -> dict[str, Tensor]:
    """Scores of the outputs alone, higher where the model is less sure; logits (inputs, classes)."""
    ranked = logits.sort(1, descending=True).values
    logs = logits.log_softmax(1)
    return {
        "max_softmax": ranked[:, 1:].logsumexp(1) - ranked[:, 0],
        "margin": ranked[:, 1] - ranked[:, 0],
        "entropy": -(logs.exp() * logs).sum(1),
        "energy": -logits.logsumexp(1),
        "max_logit": -ranked[:, 0],
    }


def input_statistics(inputs: Tensor) -> Tensor:
    """A few numbers that say what kind of input it is: mean and spread of each channel, and roughness along each axis.

    Roughness is the mean absolute difference of values one and two apart, by which noise differs from what is smooth.
    """
    flat = inputs.flatten(2) if inputs.ndim > 2 else inputs[:, None]
    mean = flat.mean(2)
    spread = (flat.square().mean(2) - mean.square()).clamp_min(0).sqrt()
    apart = [(axis, step) for axis in range(2, inputs.ndim) for step in (1, 2) if inputs.shape[axis] > step]
    steps = [_difference(inputs, axis, step).abs().flatten(1).mean(1, keepdim=True) for axis, step in apart]
    return torch.cat([mean, spread, *steps], 1)


def _difference(inputs: Tensor, axis: int, step: int) -> Tensor:
    length = inputs.shape[axis] - step
    return inputs.narrow(axis, step, length) - inputs.narrow(axis, 0, length)


def prediction_sets(probabilities: Tensor, method: str, quantile: float, penalty: float, free: int) -> Tensor:
    """The classes whose conformity score is at most the quantile, boolean (inputs, classes)."""
    return conformity(probabilities, method, penalty, free) <= quantile


def conformity(probabilities: Tensor, method: str, penalty: float, free: int) -> Tensor:
    """How badly each class fits: 1 − p (LAC), or the probability of all classes down to it (APS; RAPS adds a penalty).

    penalty: of RAPS, for each class beyond the first `free`.
    """
    if method == "lac":
        return 1 - probabilities
    ranked, order = probabilities.sort(dim=1, descending=True)
    down_to = ranked.cumsum(1)
    if method == "raps":
        place = torch.arange(1, probabilities.shape[1] + 1, device=probabilities.device)
        down_to = down_to + penalty * (place - free).clamp_min(0)
    return torch.empty_like(down_to).scatter(1, order, down_to)


class GuardedModel(nn.Module):
    """A model and its guard as one module, from inputs to `GuardAnswer`.

    model: as it was examined.
    preprocess: what is done to the data's inputs before the model, if anything.
    """

    def __init__(self, model: nn.Module, guard: GuardModule, *, preprocess: Callable[[Tensor], Tensor] | None = None):
        super().__init__()
        self.model, self.guard, self._preprocess = model, guard, preprocess
        layer = guard.about["layer"]
        if layer is not None and layer["name"] not in dict(model.named_modules()):
            raise GuardError(f"the model has no layer {layer['name']!r}: expected the model that was examined")

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> GuardAnswer:
        """Predict and judge."""
        if self.model.training:
            raise GuardError("the model is in training mode, in which its guard was not fitted: call eval() first")
        if not (torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export()):
            check_inputs(inputs, self.guard.about["input_shape"])
        given = inputs if self._preprocess is None else self._preprocess(inputs)
        layer = self.guard.about["layer"]
        if layer is None:
            return cast(GuardAnswer, self.guard(inputs, self.model(given), None))
        with _Taken(self.model.get_submodule(layer["name"]), layer["side"]) as taken:
            outputs = self.model(given)
        values = taken.values
        if values is None:
            raise GuardError(f"the layer {layer['name']!r} did not run: expected the model that was examined")
        axis = layer["channel_dim"] % values.ndim
        others = [dim for dim in range(1, values.ndim) if dim != axis]
        return cast(GuardAnswer, self.guard(inputs, outputs, values.mean(others) if others else values))


class _Taken(AbstractContextManager["_Taken"]):
    """Takes the input or output of a module while it runs, the first time it does."""

    def __init__(self, module: nn.Module, side: str):
        self._module, self._side = module, side
        self.values: Tensor | None = None

    def __enter__(self) -> Self:
        hook = self._before if self._side == "input" else self._after
        register = "register_forward_pre_hook" if self._side == "input" else "register_forward_hook"
        self._handle = getattr(self._module, register)(hook)
        return self

    def _before(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        self.values = arguments[0] if self.values is None else self.values

    def _after(self, module: nn.Module, arguments: Any, output: Tensor) -> None:
        self.values = output if self.values is None else self.values

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.remove()


class DriftAlarm:
    """Watches a guard's scores one by one, and alarms when they are no longer like those of the calibration data.

    A conformal test martingale: each score's rank among the calibration scores and all earlier ones is bet on. While
    the inputs are exchangeable with the calibration data, the chance of ever alarming is at most `rate`, however long
    the stream (Ville's inequality).

    calibration: the scores of calibration inputs, one list per kind of score.
    rate: the false-alarm rate.
    """

    BETS = (-1.0, -0.5, 0.0, 0.5, 1.0)
    SWITCH = 0.01

    def __init__(self, calibration: list[list[float]], *, rate: float = 0.01, seed: int = 0):
        self.rate, self.seen = rate, 0
        self._sorted = [sorted(scores) for scores in calibration]
        self._capital = [[1 / len(self.BETS)] * len(self.BETS) for _ in calibration]
        self._random = torch.Generator().manual_seed(seed)
        self.first_alarm: int | None = None

    def add(self, scores: list[float]) -> float:
        """Add the scores of one input; the evidence against "nothing has changed": alarm at 1/rate."""
        totals = []
        for known, capital, score in zip(self._sorted, self._capital, scores, strict=True):
            p = self._p_value(known, score)
            mixed = sum(capital) * self.SWITCH / len(capital)
            for place, bet in enumerate(self.BETS):
                capital[place] = max(((1 - self.SWITCH) * capital[place] + mixed) * (1 + bet * (p - 0.5)), 1e-300)
            totals.append(sum(capital))
        evidence = sum(totals) / len(totals)
        if self.first_alarm is None and evidence >= 1 / self.rate:
            self.first_alarm = self.seen
        self.seen += 1
        return evidence

    def _p_value(self, known: list[float], score: float) -> float:
        """The share of scores above it, ties broken at random: uniform while nothing has changed."""
        insort(known, score)
        above = len(known) - bisect_right(known, score)
        ties = bisect_right(known, score) - bisect_left(known, score)
        return (above + float(torch.rand((), generator=self._random)) * ties) / len(known)


def drift_alarm(guard: GuardModule, *, rate: float = 0.01) -> DriftAlarm:
    """The alarm for a guard: give it `wrong_probability` and `unusual` of each input, as they come."""
    calibration = [guard.get_buffer(name).tolist() for name in ("calibration_wrong", "calibration_unusual")]
    return DriftAlarm(calibration, rate=rate)


def load_guard(path: str | Path) -> GuardModule:
    """A guard from the safetensors file that weakspot wrote; reads the format itself."""
    content = Path(path).read_bytes()
    try:
        (length,) = struct.unpack("<Q", content[:8])
        if length > min(_MOST_HEADER, len(content) - 8):
            raise ValueError("its header does not fit into it")
        header = json.loads(content[8 : 8 + length])
        about = json.loads(header.pop("__metadata__")["guard"])
        tensors = {name: _tensor(content, 8 + length, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, struct.error, RuntimeError) as error:
        raise GuardError(
            f"{path} holds no guard ({error}): expected a file that `weakspot robustness export` wrote"
        ) from error
    if about.get("format") != FORMAT:
        raise GuardError(f"{path} has the format {about.get('format')!r}: expected {FORMAT}")
    return GuardModule(about, tensors)


def _tensor(content: bytes, start: int, entry: Mapping[str, Any]) -> Tensor:
    if entry["dtype"] != "F64":
        raise ValueError(f"a tensor is {entry['dtype']}, expected F64")
    first, last = entry["data_offsets"]
    shape = [int(size) for size in entry["shape"]]
    if not 0 <= first <= last <= len(content) - start or last - first != 8 * math.prod(shape):
        raise ValueError("a tensor's place does not fit its shape")
    values = bytearray(content[start + first : start + last])
    return torch.frombuffer(values, dtype=torch.float64).reshape(shape) if values else torch.zeros(shape).double()
