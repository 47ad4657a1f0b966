"""FiniteCheck: NaN and infinity that a model gives are reported by the sample's name, and never become a number."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from weakspot.core.async_copy import AsyncCopy
from weakspot.core.errors import SubjectError

_HELD = 4
"""What a GPU is asked about at once; its answer is waited for when as much has come again."""


def finite_rows(values: Tensor) -> Tensor:
    """Which rows hold neither NaN nor infinity, boolean; the sum shows both, and is the fastest to ask."""
    if not values.is_floating_point() or bool(_total(values).isfinite()):
        return torch.ones(len(values), dtype=torch.bool, device=values.device)
    return values.isfinite().flatten(1).all(1) if values.ndim > 1 else values.isfinite()


def _total(values: Tensor) -> Tensor:
    return values.sum(dtype=torch.promote_types(values.dtype, torch.float32))


_Noted = tuple[Tensor, Tensor, Sequence[str], Callable[[int], str]]


class FiniteCheck:
    """Asks of all that a model gives whether it is finite: at once on a CPU, a few passes later on a GPU."""

    def __init__(self) -> None:
        self._held: list[_Noted] = []
        self._asked: list[tuple[AsyncCopy, list[_Noted]]] = []

    def note(self, values: Tensor, ids: Sequence[str], where: Callable[[int], str]) -> None:
        """Remember to ask about `values` (samples, columns, …) of these samples; `where` says where a column lies."""
        if values.is_floating_point() and values.numel():
            self._held.append((_total(values), values, ids, where))
            if values.device.type == "cpu" or len(self._held) == _HELD:
                self._ask(waiting=0 if values.device.type == "cpu" else 1)

    def check(self) -> None:
        """Raise for the first sample for which something noted is not finite."""
        self._ask(waiting=0)

    def _ask(self, *, waiting: int) -> None:
        """Ask about what is held, and look at all answers but the latest `waiting`."""
        if self._held:
            totals = torch.stack([total for total, *_ in self._held])
            self._asked.append((AsyncCopy({"sound": totals.isfinite()}), self._held))
            self._held = []
        while len(self._asked) > waiting:
            answer, noted = self._asked.pop(0)
            if not answer.wait()["sound"].all():
                for _, values, ids, where in noted:
                    _refuse(values, ids, where)


def _refuse(values: Tensor, ids: Sequence[str], where: Callable[[int], str]) -> None:
    bad = ~values.isfinite()
    if not bool(bad.any()):  # finite values whose sum is not
        return
    row, column = (int(number) for number in (*bad.nonzero()[0].tolist(), 0)[:2])
    kind = "NaN" if bool(values[row].isnan().any()) else "infinity"
    raise SubjectError(
        f"the model gives {kind} for sample {ids[row]!r} in {where(column)}: no number computed from it can be "
        "trusted; check that sample and the weights, or, if infinity is intended, map it to a number with output="
    )
