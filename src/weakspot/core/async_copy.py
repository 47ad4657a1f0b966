"""Copies values from a GPU without waiting for each one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor


class AsyncCopy:
    """Some values as arrays, once they have come; they are not copied where all of them lie here already."""

    def __init__(self, values: Mapping[str, Any]):
        devices = {part.device for part in values.values() if isinstance(part, Tensor) and part.is_cuda}
        self.arrays = {name: _array(part, copy=bool(devices)) for name, part in values.items()}
        """Their types and shapes are known at once, what they hold only after `wait`."""
        self._events = [torch.cuda.current_stream(device).record_event() for device in devices]

    @property
    def copied(self) -> bool:
        """Whether the arrays are copies, which nobody else can change."""
        return bool(self._events)

    def here(self) -> bool:
        """Whether all of it has come."""
        return all(event.query() for event in self._events)

    def wait(self) -> dict[str, np.ndarray]:
        """The arrays, filled."""
        for event in self._events:
            event.synchronize()
        return self.arrays


def _array(values: Any, *, copy: bool) -> np.ndarray:
    if isinstance(values, Tensor):
        wide = values.float() if values.dtype == torch.bfloat16 else values  # numpy has no bfloat16; float32 holds it
        return wide.detach().to("cpu", non_blocking=wide.is_cuda, copy=copy).numpy()
    return np.array(values, copy=copy or None)
