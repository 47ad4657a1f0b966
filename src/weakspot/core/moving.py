"""Batches on their way to the device: on a GPU the next one is copied while the model works on this one."""

from collections.abc import Iterable, Iterator

import torch

from weakspot.core.observation import Batch


def moved(batches: Iterable[Batch], device: torch.device) -> Iterator[Batch]:
    """Each batch on the device, one copied ahead where that is a GPU."""
    if device.type != "cuda":
        yield from (batch.to(device) for batch in batches)
        return
    stream, waiting = torch.cuda.Stream(device), None
    for batch in batches:
        with torch.cuda.stream(stream):
            coming = batch.to(device), stream.record_event()
        if waiting is not None:
            yield _arrived(*waiting)
        waiting = coming
    if waiting is not None:
        yield _arrived(*waiting)


def _arrived(batch: Batch, copied: torch.cuda.Event) -> Batch:
    """The batch, once whoever uses it next waits for the copy; its memory is not used again before."""
    current = torch.cuda.current_stream(batch.inputs.device)
    current.wait_event(copied)
    for values in (batch.inputs, batch.targets):
        if values is not None:
            values.record_stream(current)
    return batch
