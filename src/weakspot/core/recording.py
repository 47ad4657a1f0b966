"""Whether passes are recorded on a GPU where the user does not say: only small ones, of models that cannot branch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from weakspot.core.batch_size import held_values
from weakspot.core.inference_options import InferenceOptions
from weakspot.core.layers import Layer
from weakspot.core.look import Forward
from weakspot.core.subject import Subject

MOST_VALUES = 1 << 31
"""Values of all layers of one batch from which on a GPU computes longer than launching its kernels takes."""


class Recording(NamedTuple):
    """Whether passes are recorded, and what the user should know where a small pass is not."""

    chosen: bool
    trouble: str = ""


def recording(subject: Subject, inputs: Tensor, layers: Sequence[Layer], batch_size: int) -> Recording:
    """As the user asked; else where a pass is small and the model's operations cannot depend on its data.

    inputs: a few samples, as they are in the data.
    """
    if subject.cuda_graphs is not None or subject.device.type != "cuda":
        return Recording(bool(subject.cuda_graphs) and subject.device.type == "cuda")
    plain = subject.white_box and subject.inference_options == InferenceOptions()
    if not plain or batch_size * held_values(layers) > MOST_VALUES:
        return Recording(False)
    key = (tuple(inputs.shape), inputs.dtype)
    if key not in subject.traced:
        subject.traced[key] = what_depends_on_data(subject, inputs)
    trouble = subject.traced[key]
    note = f"passes are not recorded, which small models would gain from: {trouble}" if trouble else ""
    return Recording(not trouble, note)


def what_depends_on_data(subject: Subject, inputs: Tensor) -> str:
    """Why the model may do something else for other inputs, in words; empty where it cannot.

    The model is run on tensors that have shapes and no values. A model that asks for a value fails; one that does not
    never learns what its data are. It runs twice, as one that counts its calls or draws in Python does not repeat.
    """
    try:
        with subject.borrowed() as forward:
            first, again = (_operations(forward, inputs.to(subject.device)) for _ in range(2))
    except Exception as error:  # any may come of a tensor without values
        reason = str(error).strip().partition("\n")[0]
        return f"the model asks for values while it runs ({type(error).__name__}: {reason[:120]})"
    if first != again:
        return "the model does not do the same twice"
    other = {device for _, device in first} - {subject.device.type}
    return f"the model computes on {', '.join(sorted(other))} too" if other else ""


def _operations(forward: Forward, inputs: Tensor) -> list[tuple[str, str]]:
    """Every operation of a pass, and the device of what comes out."""
    seen = _Seen()
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as fake, seen:
        forward(fake.from_tensor(inputs))
    return seen.operations


class _Seen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[tuple[str, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple | list) and result else result
        if isinstance(first, Tensor):
            self.operations.append((f"{func} {tuple(first.shape)}", first.device.type))
        return result
