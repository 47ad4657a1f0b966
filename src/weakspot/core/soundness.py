"""Soundness: NaN and infinity that a model gives are reported by the sample's name, and never become a number."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from weakspot.core.errors import SubjectError

_HELD = 8
"""What has not been asked about yet, at most: asking a GPU each time would make it wait each time."""


def sound_rows(values: Tensor) -> Tensor:
    """Which rows hold neither NaN nor infinity, boolean; the sum shows both, and is the fastest to ask."""
    if not values.is_floating_point() or bool(_total(values).isfinite()):
        return torch.ones(len(values), dtype=torch.bool, device=values.device)
    return values.isfinite().flatten(1).all(1) if values.ndim > 1 else values.isfinite()


def _total(values: Tensor) -> Tensor:
    return values.sum(dtype=torch.promote_types(values.dtype, torch.float32))


class Soundness:
    """Asks of all that a model gives whether it is finite: at once on a CPU, a few passes later on a GPU."""

    def __init__(self) -> None:
        self._held: list[tuple[Tensor, Tensor, Sequence[str], Callable[[int], str]]] = []

    def note(self, values: Tensor, ids: Sequence[str], place: Callable[[int], str]) -> None:
        """Remember to ask about `values` (samples, columns, …) of these samples; `place` says where a column lies."""
        if values.is_floating_point() and values.numel():
            self._held.append((_total(values), values, ids, place))
            if values.device.type == "cpu" or len(self._held) > _HELD:
                self.check()

    def check(self) -> None:
        """Raise for the first sample for which something noted is not finite."""
        held, self._held = self._held, []
        if held and not all(torch.stack([total for total, *_ in held]).isfinite().tolist()):
            for _, values, ids, place in held:
                _refuse(values, ids, place)


def _refuse(values: Tensor, ids: Sequence[str], place: Callable[[int], str]) -> None:
    bad = ~values.isfinite()
    if not bool(bad.any()):  # finite values whose sum is not
        return
    row, column = (int(number) for number in (*bad.nonzero()[0].tolist(), 0)[:2])
    kind = "NaN" if bool(values[row].isnan().any()) else "infinity"
    raise SubjectError(
        f"the model gives {kind} for sample {ids[row]!r} in {place(column)}: no number can be trusted that rests on "
        "it; look at that sample and at the weights, or, where infinity is meant, map it to a number with output="
    )
