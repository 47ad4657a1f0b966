"""Kernels for GPUs, written in Triton, which torch for CUDA brings along.

Plain torch operations do the same wherever they cannot be used; each caller has both.
"""

import warnings
from functools import lru_cache

import torch
from torch import Tensor


def usable(values: Tensor) -> bool:
    """Whether the kernels work on such values: numbers of up to 32 bits on a GPU for which kernels can be built."""
    return values.is_cuda and values.dtype in (torch.float32, torch.float16, torch.bfloat16) and _built(values.device)


@lru_cache(64)
def _built(device: torch.device) -> bool:
    """Whether a kernel can be built and run there; said once where it cannot."""
    try:
        from weakspot.kernels.reducing import by_channel

        by_channel(torch.zeros((1, 1, 1), device=device))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # no Triton, no C compiler, a GPU that is too old: each has an error of its own
        reason = str(error).partition("\n")[0] or type(error).__name__
        warnings.warn(
            f"GPU kernels cannot be built on {device} ({reason}): plain operations are used, which take longer and "
            "agree but for rounding; Triton and a C compiler are needed",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


@lru_cache(32)
def starts_of(widths: tuple[int, ...], device: torch.device) -> Tensor:
    """Where the columns of each layer begin, and where those of the last one end; int32, shape (layers + 1,)."""
    return torch.tensor([0, *widths], device=device).cumsum(0).int()
