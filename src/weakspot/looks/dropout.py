"""Monte-Carlo dropout with masks that depend on seed, sample, look and call alone, not on the batch.

Nothing of the model is switched: its dropout calls, modules or functions, are met on their way to torch, so batch
normalisation stays in evaluation and training flags are not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from weakspot.core.errors import SubjectError
from weakspot.core.look import Forward, Look
from weakspot.core.stateless_random import draw_keys, further_keys, keep_mask

_ELEMENT = frozenset({F.dropout, torch.dropout})
_CHANNEL = frozenset({F.dropout1d, F.dropout2d, F.dropout3d, torch.feature_dropout})
_UNSUPPORTED = frozenset({F.alpha_dropout, F.feature_alpha_dropout})
_DROPOUTS = _ELEMENT | _CHANNEL | _UNSUPPORTED


@dataclass(frozen=True)
class McDropout(Look):
    """A look with the model's dropout on (Gal and Ghahramani 2016); everything else stays in evaluation.

    Dropout calls are reached, modules and functions alike; what torch drops inside one of its own operations, as in
    nn.MultiheadAttention, scaled_dot_product_attention and recurrent layers, is not.
    """

    seed: int = 0

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward with one draw of every dropout mask."""
        with StatelessDropout(ids, self.seed, number) as dropout:
            outputs = forward(inputs)
        if dropout.calls == 0:
            raise SubjectError(
                "the model met no dropout in its forward pass, so its samples would all be equal: use an ensemble, "
                "test-time variations or stored samples instead (dropout inside nn.MultiheadAttention and recurrent "
                "layers is not reached)"
            )
        return outputs


class StatelessDropout(TorchFunctionMode):
    """Replaces the masks of dropout calls, whatever their training flag says.

    A model may cut its samples into pieces, as one that sees the slices of a volume as a batch does: with k rows per
    sample, row i belongs to sample i // k, which is how reshaping lays them out, and each row has masks of its own.
    """

    def __init__(self, ids: Sequence[str], seed: int, number: int):
        super().__init__()
        self.calls = 0
        self._ids = ids
        self._keys = draw_keys(ids, seed, number)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _DROPOUTS:
            return func(*args, **kwargs) if kwargs else func(*args)
        if func in _UNSUPPORTED:
            raise SubjectError(
                f"{func.__name__} has no stateless form yet: Monte-Carlo dropout cannot sample this model"
            )
        values, drop, inplace = _arguments(*args, **(kwargs or {}))
        return self._dropped(values, drop, inplace, whole_channels=func in _CHANNEL)

    def _dropped(self, values: Tensor, drop: float, inplace: bool, *, whole_channels: bool) -> Tensor:
        if drop == 0:
            return values
        self.calls += 1
        rows, samples = values.shape[0], len(self._ids)
        if rows % samples:
            raise SubjectError(
                f"dropout meets {rows} rows for {samples} samples: the model mixes samples before dropout, so masks "
                "cannot be drawn per sample; examine with batches of 1"
            )
        shape = values.shape[:2] if whole_channels else values.shape
        factor = self._factor(shape.numel() // samples, drop, values, on_host=whole_channels)
        factor = factor.view(*shape, *(1,) * (values.ndim - len(shape)))
        return values.mul_(factor) if inplace else values * factor

    def _factor(self, count: int, drop: float, values: Tensor, *, on_host: bool) -> Tensor:
        """0 or 1/(1 − p), `count` per sample; shape (samples, count).

        The few numbers of channel dropout are drawn on the host and sent along, so that a GPU need not be waited for.
        """
        keys, scale = further_keys(self._keys, self.calls), 1 / (1 - drop) if drop < 1 else 0.0
        keep = keep_mask(keys, count, drop, torch.device("cpu") if on_host else values.device)
        factor = keep.to(values.dtype).mul_(scale)
        return factor.pin_memory().to(values.device, non_blocking=True) if on_host and values.is_cuda else factor


def _arguments(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool = True
) -> tuple[Tensor, float, bool]:
    """The arguments of a dropout call under their torch names; whether it is training is not asked."""
    return input, p, inplace
