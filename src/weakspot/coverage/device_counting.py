"""What random subsets cover, counted on a GPU: all subsets of a criterion in a few launches."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from weakspot.coverage.metrics_agreement import Floats, subset_coverage
from weakspot.coverage.reached_targets import Bits, Cells, Places, Reach

_BLOCK = 1 << 26
"""Values of one block on the device."""


def coverage_of(reach: Reach, subsets: Sequence[Places], device: torch.device) -> Floats:
    """Share of the targets that each subset reaches: the numbers that `subset_coverage` gives, to the last bit."""
    if device.type == "cpu" or not isinstance(reach, Bits | Cells):
        return subset_coverage(reach, list(subsets))
    places = torch.from_numpy(np.stack(subsets)).to(device)
    counted = bits_covered(reach, places) if isinstance(reach, Bits) else cells_covered(reach, places)
    return np.asarray(counted.cpu().numpy() / reach.targets)


def shares_of(reach: Reach, places: Places, device: torch.device) -> Floats:
    """What each input contributes to the coverage of all, as `Reach.shares`; summed in another order on a GPU."""
    if device.type == "cpu" or not isinstance(reach, Bits | Cells):
        return reach.shares(places)
    there = torch.from_numpy(places).to(device)
    share = bits_shares(reach, there) if isinstance(reach, Bits) else cells_shares(reach, there)
    return np.asarray(share.cpu().numpy())


def bits_covered(reach: Bits, places: Tensor) -> Tensor:
    """How many targets each row of places reaches: subsets × size to (subsets,)."""
    chosen = torch.zeros((len(places), reach.inputs), dtype=torch.uint8, device=places.device).scatter_(1, places, 1)
    covered = places.new_zeros(len(places))
    for bits in _unpacked(reach, places.device):
        covered += (chosen.float() @ bits > 0).sum(1)
    return covered


def bits_shares(reach: Bits, places: Tensor) -> Tensor:
    """Σ over an input's targets of 1/(inputs that reach it)."""
    share = torch.zeros(len(places), dtype=torch.float64, device=places.device)
    for bits in _unpacked(reach, places.device):
        mine = bits[places].double()
        share += mine @ mine.sum(0).clamp_min(1).reciprocal()
    return share


def cells_covered(reach: Cells, places: Tensor) -> Tensor:
    """Different cells that each row of places reaches, those that are no targets aside."""
    numbers, cells = torch.from_numpy(np.array(reach.numbers)).to(places.device), reach.each + 2
    first = torch.arange(0, reach.width * cells, cells, device=places.device)
    reached = torch.zeros(reach.width * cells, dtype=torch.uint8, device=places.device)
    covered = []
    for subset in places:
        reached.zero_().index_fill_(0, (numbers[subset] + first).flatten(), 1)
        covered.append(reached.view(-1, cells)[:, 1:-1].sum())
    return torch.stack(covered)


def cells_shares(reach: Cells, places: Tensor) -> Tensor:
    """Σ over an input's cells of 1/(inputs in the cell)."""
    cells = reach.each + 2
    share = torch.zeros(len(places), dtype=torch.float64, device=places.device)
    step = max(1, _BLOCK // (len(places) + cells))
    for start in range(0, reach.width, step):
        part = np.array(reach.numbers[:, start : start + step])
        numbers = torch.from_numpy(part).to(places.device)[places].long()
        counts = numbers.new_zeros((part.shape[1], cells))
        counts.scatter_add_(1, numbers.T, numbers.new_ones(()).expand(numbers.T.shape))
        value = counts.clamp_min(1).double().reciprocal()
        value[:, [0, -1]] = 0
        share += value.gather(1, numbers.T).sum(0)
    return share


def _unpacked(reach: Bits, device: torch.device) -> Iterator[Tensor]:
    """The bits as 0 and 1, float32 (inputs, targets), a block of bytes at a time."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)
    step = max(1, _BLOCK // (8 * max(1, reach.inputs)))
    for start in range(0, reach.packed.shape[1], step):
        packed = torch.from_numpy(np.array(reach.packed[:, start : start + step])).to(device)
        yield ((packed[..., None] >> shifts) & 1).flatten(1).float()
