"""The digest of a tensor's content, to the last bit, and bits packed into bytes."""

import hashlib

import numpy as np
import torch
from torch import Tensor


def tensor_digest(values: Tensor) -> str:
    """SHA-256 of a tensor's type, shape and bytes; where it lies does not matter."""
    plain = values.detach()
    if plain.is_quantized:
        plain = plain.dequantize()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    there = plain.resolve_conj().resolve_neg().cpu().contiguous()
    sha = hashlib.sha256(f"{values.dtype} {tuple(there.shape)}".encode())
    sha.update(np.ascontiguousarray(there.flatten().view(torch.uint8).numpy()).data)
    return sha.hexdigest()


def packed(bits: Tensor) -> Tensor:
    """Eight to a byte, as `numpy.packbits` does it along axis 1, where they lie: (rows, bits), bool, to uint8.

    >>> packed(torch.tensor([[True, False, False, False, False, False, False, True, True]])).tolist()
    [[129, 128]]
    """
    if bits.device.type == "cpu":
        return torch.from_numpy(np.packbits(bits.numpy(), axis=1))
    weights = 1 << torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device)
    padded = torch.nn.functional.pad(bits.view(torch.uint8), (0, -bits.shape[1] % 8))
    bytes_: Tensor = (padded.unflatten(1, (-1, 8)) * weights).sum(2, dtype=torch.uint8)
    return bytes_
