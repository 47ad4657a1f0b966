"""How many samples go through the model at once, where the user does not say."""

import os
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from pathlib import Path

import torch
from torch import nn

from weakspot.core.layers import Layer

MOST = {"cpu": 64, "gpu": 1024}
_ENOUGH_FOR_CPU = 2 << 30
_UNKNOWN_GPU = 16 << 30
_BLACK_BOX = 128
_VALUE = 4


def chosen_batch_size(
    model: object, inputs: torch.Tensor, layers: Sequence[Layer], device: torch.device, *, room: int | None = None
) -> int:
    """The largest power of two for which what one pass holds stays within its share of the memory.

    A sample counts with its own values and with the outputs of all layers that hold no others, four bytes each: that is
    what relevance keeps of a pass. Of a black box nothing is known inside, so 128 times its inputs are counted. On a
    CPU an eighth of the memory may be used, and 2 GiB at most, as larger batches are no faster there; on a GPU a
    quarter, less the parameters. There are never more than 64 samples on a CPU and 1,024 on a GPU.

    inputs: of one sample or more, as they are in the data.
    room: bytes that one pass may hold instead.
    """
    values = inputs[0].numel()
    of_sample = _VALUE * (values + held_values(layers) if layers else values * _BLACK_BOX)
    most = MOST["cpu" if device.type == "cpu" else "gpu"]
    if room is None and device.type == "cpu":
        room = min(_ENOUGH_FOR_CPU, main_memory() // 8)
    elif room is None:
        room = _gpu_memory(device) // 4 - _parameter_bytes(model)
    fitting = max(1, min(most, room // max(1, of_sample)))
    return 1 << (fitting.bit_length() - 1)


def usual_shard_size(batch_size: int, device: torch.device) -> int:
    """Samples per shard where the user does not say: a GPU is idle while the first batch of a shard is read.

    >>> usual_shard_size(64, torch.device("cpu")), usual_shard_size(256, torch.device("cuda"))
    (1024, 4096)
    """
    return 1024 if device.type == "cpu" else max(1024, 16 * batch_size)


def held_values(layers: Sequence[Layer]) -> int:
    """Values in the outputs of all layers that contain no other layer."""
    containers = {name.rpartition(".")[0] for name in (layer.name for layer in layers) if name}
    return sum(prod(layer.shape) for layer in layers if layer.name not in containers)


def _parameter_bytes(model: object) -> int:
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)


def main_memory() -> int:
    """Bytes of memory that this process may use: all of the machine, or what its container is limited to."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # not there, or "max": not limited
            total = min(total, int(Path(limit).read_text(encoding="ascii")))
    return total


def _gpu_memory(device: torch.device) -> int:
    """Of that GPU; a GPU of another machine is taken to have 16 GiB."""
    if device.type != "cuda" or not torch.cuda.is_available():
        return _UNKNOWN_GPU
    return torch.cuda.get_device_properties(device).total_memory
