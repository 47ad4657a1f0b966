"""A guard as arrays of a Finding, as one safetensors file that needs PyTorch alone, and with its model as ONNX."""

import inspect
import json
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from weakspot.core.errors import ConfigError, RunError, SubjectError
from weakspot.core.files import whole_folder, write_text
from weakspot.core.finding import Finding
from weakspot.core.run import Run
from weakspot.core.subject import Subject
from weakspot.robustness import guard_runtime
from weakspot.robustness.guard_runtime import VERDICTS, GuardedModel, GuardModule

FINDING = "robustness.prediction_guard"
_PREFIX = "guard_"
_ABOUT = "guard_about"
GUARD_FILE, ABOUT_FILE, LOADER_FILE, ONNX_FILE = "guard.safetensors", "guard.json", "guard_runtime.py", "guarded.onnx"


def guard_arrays(guard: GuardModule) -> dict[str, np.ndarray]:
    """Everything of a guard, for a Finding."""
    tensors = {f"{_PREFIX}{name}": tensor.numpy() for name, tensor in guard.named_buffers()}
    return {_ABOUT: np.array(json.dumps(guard.about)), **tensors}


def guard_of(finding: Finding) -> GuardModule:
    """The guard that a Finding of `PredictionGuard` holds."""
    if _ABOUT not in finding.arrays:
        why = finding.summary.get("guard")
        raise RunError(f"{finding.name} holds no guard" + (f": {why.about}" if why is not None else ""))
    names = [name for name in finding.arrays if name.startswith(_PREFIX) and name != _ABOUT]
    tensors = {name.removeprefix(_PREFIX): torch.tensor(np.asarray(finding.arrays[name])) for name in names}
    return GuardModule(json.loads(str(finding.arrays[_ABOUT])), tensors)


def prediction_guard(run: Run) -> Finding:
    """The Finding of a Run that holds its guard."""
    if FINDING not in run:
        raise RunError(f"{run.folder} holds no guard: ask robustness with guard: {{from: SPLIT}}, then try again")
    return run[FINDING]


def guarded_model(run: Run | str | Path, subject: Subject) -> GuardedModel:
    """The model with the guard of a Run, from inputs as they are in the data to `GuardAnswer`.

    The model must be the one that the guard was fitted for; it is put into evaluation mode.
    """
    finding = prediction_guard(run if isinstance(run, Run) else Run.open(run))
    made = finding.provenance
    if subject.fingerprint() not in (made.get("subject"), made.get("code_and_weights")):
        raise SubjectError(
            "this model is not the one that the guard was fitted for (their fingerprints differ): examine it again"
        )
    guard = guard_of(finding)
    layer = guard.about["layer"]
    if layer is not None and (layer["use"] != 1 or layer["side"] == "activated"):
        raise SubjectError(f"the guard reads {layer}, which a hook on one module cannot: fit it with another `read`")
    return GuardedModel(_AsExamined(subject), guard.to(subject.device)).eval()


class _AsExamined(nn.Module):
    """The model with its preprocessing and choice of output, as the examination ran it."""

    def __init__(self, subject: Subject):
        super().__init__()
        self._subject = [subject]  # in a list, so that its model is registered once
        if isinstance(subject.model, nn.Module):
            self.model = subject.model

    def get_submodule(self, target: str) -> nn.Module:
        """A layer by its name in the user's model."""
        return cast(nn.Module, self._subject[0].model).get_submodule(target)

    def named_modules(self, *args: Any, **options: Any) -> Any:
        """Of the user's model."""
        model = self._subject[0].model
        return model.named_modules(*args, **options) if isinstance(model, nn.Module) else iter(())

    def forward(self, inputs: Tensor) -> Tensor:
        return self._subject[0].forward(inputs)


def export_guard(finding: Finding, folder: str | Path, *, guarded: GuardedModel | None = None) -> list[Path]:
    """Write `guard.safetensors`, `guard.json` and the loader `guard_runtime.py`; together they need PyTorch alone.

    guarded: the model with the guard, to write them together as `guarded.onnx` besides.

    An existing folder is not written to.
    """
    target, guard = Path(folder), guard_of(finding)
    if target.exists():
        raise ConfigError(f"{target} exists already: choose another folder, or remove it")
    about = json.dumps(guard.about)
    tensors = {name: tensor.contiguous() for name, tensor in guard.named_buffers()}
    readable = {**guard.about, "verdicts": list(VERDICTS), "subject": finding.provenance.get("subject")}
    with whole_folder(target, first_wins=True) as made:
        (made / GUARD_FILE).write_bytes(save(tensors, metadata={"guard": about}))
        write_text(made / ABOUT_FILE, json.dumps(readable, indent=1) + "\n")
        write_text(made / LOADER_FILE, inspect.getsource(guard_runtime))
        if guarded is not None:
            export_onnx(guarded, made / ONNX_FILE)
    written = [GUARD_FILE, ABOUT_FILE, LOADER_FILE, *([] if guarded is None else [ONNX_FILE])]
    return [target / name for name in written]


def export_onnx(guarded: GuardedModel, path: str | Path) -> None:
    """Write model and guard as one ONNX file: from `inputs` to the fields of `GuardAnswer`, for any number of inputs.

    Shapes and NaN are not checked there.
    """
    if find_spec("onnx") is None:
        raise ConfigError("writing ONNX needs the package onnx: pip install onnx")
    shape = guarded.guard.about["input_shape"]
    device = guarded.guard.get_buffer("weights").device
    names = list(guard_runtime.GuardAnswer._fields)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what tracing warns of are checks of shapes, which the file does not have
        torch.onnx.export(
            guarded.eval(),
            (torch.zeros(2, *shape, device=device),),
            str(path),
            input_names=["inputs"],
            output_names=names,
            dynamic_axes={name: {0: "batch"} for name in ("inputs", *names)},
            dynamo=False,
        )
