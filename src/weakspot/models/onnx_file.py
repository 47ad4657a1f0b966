"""An ONNX file as a black box: its outputs can be asked for, its layers cannot be looked into."""

from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.models.batches import in_batches_of
from weakspot.models.onnx_parts import digests

_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_OTHERS = {
    "tensor(uint8)": torch.uint8,
    "tensor(int8)": torch.int8,
    "tensor(int32)": torch.int32,
    "tensor(int64)": torch.int64,
    "tensor(bool)": torch.bool,
}


class OnnxModel:
    """A callable from a batch of inputs to the outputs of an ONNX file, run by onnxruntime.

    path: the file.
    channels: where the file wants the channels of an image, "first" or "last".
    device: "cpu", "cuda", "cuda:1"; "auto" for a GPU where onnxruntime can use one.
    """

    def __init__(self, path: str | Path, *, channels: Literal["first", "last"] = "first", device: str = "auto"):
        if channels not in ("first", "last"):
            raise ConfigError(f"channels is {channels!r}: expected 'first' or 'last'")
        self._path, self._channels, self._device = Path(path), channels, device
        self._session, self._threads = _session(self._path, device), torch.get_num_threads()
        self._input = _only_input(self._path, self._session.get_inputs())
        self._outputs = [output.name for output in self._session.get_outputs()]
        self.fixed_batch = self._input.shape[0] if self._input.shape and type(self._input.shape[0]) is int else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the file again."""
        return partial(OnnxModel, self._path, channels=self._channels, device=self._device), ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying: that layers are out of reach, and what a fixed batch size costs."""
        said = [f"{self._path.name} is a black box: questions about layers cannot be asked"]
        if self.fixed_batch is not None:
            how = "one by one" if self.fixed_batch == 1 else f"{self.fixed_batch} at a time"
            said.append(f"{self._path.name} has a fixed batch size: samples are run {how}, which is slower")
        return tuple(said)

    def fingerprint(self) -> str:
        """Of the file, of every file in which it keeps weights, and of how it is run."""
        import onnxruntime

        how = f"channels {self._channels}, onnxruntime {onnxruntime.__version__}"
        return " ".join([*digests(self._path), how])

    def __call__(self, inputs: Tensor) -> Any:
        """The output, or a mapping of the outputs by name where there are several; on the device of the inputs."""
        arranged = inputs.movedim(1, -1).contiguous() if self._channels == "last" else inputs
        self._check_shape(tuple(arranged.shape))
        if self.fixed_batch is None:
            return self._run(arranged)
        return in_batches_of(self.fixed_batch, self._run, arranged)

    def _run(self, inputs: Tensor) -> Any:
        array = self._as_wanted(inputs)
        if self._threads != torch.get_num_threads():  # a session keeps the number that it began with
            self._session, self._threads = _session(self._path, self._device), torch.get_num_threads()
        try:
            values = self._session.run(self._outputs, {self._input.name: array})
        except Exception as error:  # onnxruntime has exceptions of its own, which share no base
            raise SubjectError(
                f"{self._path.name} cannot be run: {str(error).strip().partition(chr(10))[0]}"
            ) from error
        outputs = {
            name: torch.from_numpy(np.array(value)).to(inputs.device)
            for name, value in zip(self._outputs, values, strict=True)
            if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        }
        return next(iter(outputs.values())) if len(self._outputs) == len(outputs) == 1 else outputs

    def _as_wanted(self, inputs: Tensor) -> np.ndarray:
        values, kind = inputs.detach().cpu(), self._input.type
        if kind in _FLOATS and values.is_floating_point():
            return values.numpy().astype(_FLOATS[kind])
        if _OTHERS.get(kind) == values.dtype:
            return values.numpy()
        raise SubjectError(
            f"{self._path.name} wants {kind} and gets {str(values.dtype).removeprefix('torch.')}: give the subject a "
            "preprocess that returns what it wants"
        )

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        wanted = self._input.shape[1:]
        fits = len(shape) - 1 == len(wanted) and all(
            type(size) is not int or size == have for size, have in zip(wanted, shape[1:], strict=True)
        )
        if self._input.shape and not fits:
            raise SubjectError(
                f"{self._path.name} wants samples of shape {_shown(wanted)} and gets {_shown(shape[1:])}"
                f"{self._hint(shape)}"
            )

    def _hint(self, shape: tuple[int, ...]) -> str:
        turned = (*shape[2:], shape[1]) if self._channels == "first" else (shape[-1], *shape[1:-1])
        if len(shape) == 4 and turned == tuple(self._input.shape[1:]):
            other = "last" if self._channels == "first" else "first"
            return f": it wants the channels {other}; give arguments: {{channels: {other}}}"
        return ": give the data that size (of images, size: [height, width] under the split), or a preprocess"


def _session(path: Path, device: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError("an ONNX file needs onnxruntime: pip install 'weakspot[onnx]'") from error
    if not path.is_file():
        raise ConfigError(f"cannot read the model {path}: there is no such file")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=_providers(onnxruntime, device))
    except Exception as error:  # onnxruntime has exceptions of its own, which share no base
        raise ConfigError(f"{path} is not an ONNX file that onnxruntime can run: {str(error).strip()[:300]}") from error


def _providers(onnxruntime: Any, device: str) -> list[Any]:
    name, _, number = device.partition(":")
    can_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    if name == "cuda" and not can_cuda:
        raise ConfigError(
            f"device {device!r} was asked for, but this onnxruntime has no CUDA: pip install onnxruntime-gpu, or use "
            "device: cpu"
        )
    if can_cuda and name in ("cuda", "auto"):
        return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), "CPUExecutionProvider"]
    return ["CPUExecutionProvider"]


def _only_input(path: Path, inputs: list[Any]) -> Any:
    if len(inputs) != 1:
        names = ", ".join(entry.name for entry in inputs) or "none"
        raise ConfigError(f"{path.name} has {len(inputs)} inputs ({names}): export the model with one, for the samples")
    return inputs[0]


def _shown(shape: Any) -> str:
    return "×".join(str(size) if type(size) is int else "any" for size in shape) or "one number"
