"""Which tensor of what a model returns is its output."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import SubjectError

OutputChoice = str | int | Callable[[Any], Tensor]


def picked(raw: Any, choice: OutputChoice | None, device: torch.device) -> Tensor:
    """The output of a model in what it returned: the part that was chosen, or the only one that there is."""
    try:
        if choice is None:
            part = _only_part(raw)
        elif callable(choice):
            part = choice(raw)
        elif isinstance(choice, str) and not isinstance(raw, Mapping):
            part = getattr(raw, choice)
        else:
            part = raw[choice]
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        raise SubjectError(f"output={choice!r} is not in the model's {type(raw).__name__}: {error}") from error
    if isinstance(part, np.ndarray) and part.dtype.kind in "biuf":  # as a black box that knows no torch answers
        return torch.tensor(part, device=device)
    if not isinstance(part, Tensor):
        raise SubjectError(
            f"the model gave {_describe_output(part)}, expected a tensor: say which one with output= (an index, a "
            "name, or a function)"
        )
    return part


def _only_part(raw: Any) -> Any:
    """What a mapping or tuple of one part holds, as Hugging Face's models give their logits; all else as it is."""
    parts = list(raw.values()) if isinstance(raw, Mapping) else raw if isinstance(raw, tuple | list) else []
    return parts[0] if len(parts) == 1 else raw


def _describe_output(raw: Any) -> str:
    if isinstance(raw, Mapping):
        return f"a mapping with {', '.join(map(repr, raw))}"
    return f"a {type(raw).__name__} of {len(raw)}" if isinstance(raw, tuple | list) else f"a {type(raw).__name__}"
