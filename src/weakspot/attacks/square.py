"""Square attack: random search over squares, which needs outputs alone."""

import math

import numpy as np
import torch
from torch import Tensor

from weakspot.attacks.balls import Norm, size, unit
from weakspot.attacks.margins import margin
from weakspot.core.look import Forward
from weakspot.core.stateless_random import device_words, further_keys

_SHARE = 0.8
_SMALL = 1e-12
_STAGES = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)
"""After so many queries the squares have half the area."""
_AT_ONCE = 64
"""So many queries' random numbers are drawn at once."""
_START, _SEARCH = 0, 1
"""Places in the draw."""


def square_attack(
    forward: Forward, inputs: Tensor, classes: Tensor, keys: np.ndarray, *, epsilon: float, norm: Norm, queries: int
) -> Tensor:  # fmt: skip
    """Square attack [andriushchenko2020]: a change in a random square is kept where the margin falls.

    L∞: stripes at first; then a square is moved by ±2 ε in each channel, and pulled back within ε. L2: what a square
    has is spent anew on another. Each sample has its own squares and leaves once it is predicted incorrectly. inputs
    (samples, channels, height, width) from 0 to 1; keys: a word per sample.
    """
    search = _InBox(epsilon) if norm == "linf" else _InSphere(epsilon)
    made = search.start(inputs, further_keys(keys, _START)).clamp_(0, 1)
    best, count = margin(forward(made), classes), search.words(inputs.shape[1])
    rows = (best > 0).nonzero()[:, 0]
    there, here, wanted, best = inputs[rows], made[rows], classes[rows], best[rows]
    for query in range(queries):
        if not len(rows):
            break
        if query % _AT_ONCE == 0:
            chosen = further_keys(keys[rows.cpu().numpy()], _SEARCH, query)
            words = device_words(chosen, _AT_ONCE * count, inputs.device).view(len(rows), _AT_ONCE, count)
        changed = search.change(there, here, side_of(query, inputs.shape), words[:, query % _AT_ONCE])
        found = margin(forward(changed), wanted)
        better = (found < best) | (found <= 0)
        here, best = torch.where(better.view(-1, 1, 1, 1), changed, here), torch.where(better, found, best)
        going = best > 0
        if not going.all():
            made[rows[~going]] = here[~going]
            rows, there, here, wanted, best, words = (part[going] for part in (rows, there, here, wanted, best, words))
    made[rows] = here
    return made


def side_of(query: int, shape: torch.Size) -> float:
    """The side of a square before rounding: √(share of the area), the share halved again and again."""
    share = _SHARE / 2 ** sum(query > stage for stage in _STAGES)
    return math.sqrt(share * shape[2] * shape[3])


class _InBox:
    """Squares within L∞."""

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def words(self, channels: int) -> int:
        """How many random words a query takes."""
        return 2 + channels

    def start(self, inputs: Tensor, keys: np.ndarray) -> Tensor:
        """Upright stripes one pixel wide, ±ε."""
        channels, width = inputs.shape[1], inputs.shape[3]
        signs = _signs(device_words(keys, channels * width, inputs.device))
        return inputs + self.epsilon * signs.view(-1, channels, 1, width).to(inputs.dtype)

    def change(self, inputs: Tensor, points: Tensor, side: float, words: Tensor) -> Tensor:
        """A square of ±2 ε on top, pulled back within ε."""
        height, width = inputs.shape[-2:]
        whole = min(max(round(side), 1), height, width)
        top, left = _below(words[:, 0], height - whole), _below(words[:, 1], width - whole)
        rows, columns = (
            torch.arange(end, device=inputs.device) - at[:, None] for end, at in ((height, top), (width, left))
        )
        within = ((rows >= 0) & (rows < whole))[:, :, None] & ((columns >= 0) & (columns < whole))[:, None]
        moves = 2 * self.epsilon * _signs(words[:, 2:]).to(inputs.dtype)[:, :, None, None]
        moved = points + moves * within[:, None]
        return torch.minimum(torch.maximum(moved, inputs - self.epsilon), inputs + self.epsilon).clamp_(0, 1)


class _InSphere:
    """Squares within L2."""

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def words(self, channels: int) -> int:
        """How many random words a query takes."""
        return 5 + channels

    def start(self, inputs: Tensor, keys: np.ndarray) -> Tensor:
        """Five by five bumps, each with a random sign per channel."""
        height, width = inputs.shape[-2:]
        side, channels = max(1, min(height, width) // 5), inputs.shape[1]
        bump, change = two_bumps(side).to(inputs), torch.zeros_like(inputs)
        signs = _signs(device_words(keys, channels * 25 + 25, inputs.device)).to(inputs.dtype)
        for number in range(25):
            row, column = (part * side for part in divmod(number, 5))
            if row + side > height or column + side > width:
                continue
            turned = torch.where(signs[:, channels * 25 + number, None, None] > 0, bump, bump.T)[:, None]
            sign = signs[:, number * channels : (number + 1) * channels, None, None]
            change[..., row : row + side, column : column + side] = turned * sign
        return inputs + self.epsilon * unit(change, "l2")

    def change(self, inputs: Tensor, points: Tensor, side: float, words: Tensor) -> Tensor:
        """What two squares have, and what is left of ε, is spent on the first of them."""
        height, width = inputs.shape[-2:]
        whole = max(round(side), 3)
        whole = min(whole + (whole % 2 == 0), height, width)
        first, second = (
            _window(_below(words[:, at], height - whole), _below(words[:, at + 1], width - whole), whole, inputs)
            for at in (0, 2)
        )
        flat = (points - inputs).flatten(2)
        mask = torch.zeros_like(flat).scatter_(2, first, 1).scatter_(2, second, 1)
        left = (self.epsilon**2 - size(flat, "l2").square()).clamp(min=0)[:, None, None]
        budget = (left / flat.shape[1] + (flat * mask).square().sum(2, keepdim=True)).sqrt()
        old = flat.gather(2, first)
        bump = two_bumps(whole).to(inputs)
        turned = torch.where(_signs(words[:, 4:5])[:, :, None] > 0, bump, bump.T).flatten(1)[:, None]
        new = turned * _signs(words[:, 5:])[:, :, None].to(inputs.dtype)
        new = new + old / (old.square().sum(2, keepdim=True).sqrt() + _SMALL)
        new = new / (new.square().sum(2, keepdim=True).sqrt() + _SMALL) * budget
        flat = flat.scatter(2, second, 0).scatter_(2, first, new)
        changed = flat.view_as(inputs)
        return (inputs + changed * (self.epsilon / size(changed, "l2").clamp(min=_SMALL)).view(-1, 1, 1, 1)).clamp_(
            0, 1
        )


def two_bumps(side: int) -> Tensor:
    """Two pyramids side by side, one up and one down, of norm 1; shape (side, side)."""
    half = side // 2
    both = np.zeros((side, side))
    if half:
        both[:half] = _pyramid(half, side)
    both[half:] = -_pyramid(side - half, side)
    return torch.from_numpy(both / np.sqrt((both**2).sum()))


def _pyramid(height: int, width: int) -> np.ndarray:
    """Rectangles about the middle, each weighing 1 / (its number)²."""
    made, middle = np.zeros((height, width)), (height // 2, width // 2)
    for number in range(max(height // 2 + 1, width // 2 + 1)):
        top, left = (at - number for at in middle)
        made[max(top, 0) : top + 2 * number + 1, max(left, 0) : left + 2 * number + 1] += 1 / (number + 1) ** 2
    return np.asarray(made / np.sqrt((made**2).sum()))


def _window(top: Tensor, left: Tensor, side: int, like: Tensor) -> Tensor:
    """The numbers of the pixels of a square, for every channel; (samples, channels, side²)."""
    steps = torch.arange(side, device=like.device)
    pixels = (top[:, None] + steps)[:, :, None] * like.shape[3] + (left[:, None] + steps)[:, None]
    return pixels.flatten(1)[:, None].expand(-1, like.shape[1], -1)


def _within(start: Tensor, side: int, end: int) -> Tensor:
    """Which of `end` places lie in a window; boolean, (samples, end)."""
    places = torch.arange(end, device=start.device) - start[:, None]
    return (places >= 0) & (places < side)


def _below(words: Tensor, end: int) -> Tensor:
    """Whole numbers from 0 to end − 1, and 0 where there is no room; int64."""
    return ((words >> 40) & 0xFFFFFF) * max(end, 1) >> 24


def _signs(words: Tensor) -> Tensor:
    """−1 or 1."""
    return ((words >> 33) & 1) * 2 - 1
