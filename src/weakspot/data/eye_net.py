"""Embedded: a gaze detector that was trained on open, upright eyes in good light, and eyes of other kinds to fail on.

What it lacks is known, so that every root cause found can be checked. The weights were made by
`python -m weakspot.data.eye_net_training`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from weakspot.core.digest import digest
from weakspot.core.observation import Batch
from weakspot.data.eyes import CLASSES as EYE_CLASSES
from weakspot.data.eyes import EyeRanges, Eyes

CLASSES = EYE_CLASSES["gaze"]
BOUNDS = (0.0, 1.0)
WEIGHTS = Path(__file__).with_name("eye_net.safetensors")

KNOWN = EyeRanges(opening=(0.6, 1.0), light=(0.7, 1.1), roll=(-10.0, 10.0), reflection=(0.0, 0.2))
KINDS = {
    "usual": KNOWN,
    "drooping": replace(KNOWN, opening=(0.15, 0.4)),
    "tilted": replace(KNOWN, roll=(25.0, 45.0)),
    "dark": replace(KNOWN, light=(0.06, 0.15)),
}
"""The kinds of eyes in the test set and pool; the net was trained on the first alone."""


@dataclass(frozen=True)
class EyeMixture:
    """Eyes of several kinds one after another, drawn by the simulator; the id of each begins with its kind."""

    parts: tuple[Eyes, ...]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """One name per image."""
        return tuple(name for part in self.parts for name in part.ids)

    def read(self, positions: np.ndarray) -> Batch:
        """The images at these places, with the simulator's parameters as metadata."""
        places = np.asarray(positions)
        starts = np.cumsum([0, *(part.count for part in self.parts)])
        of_part = np.searchsorted(starts, places, side="right") - 1
        used = np.unique(of_part)
        read = [self.parts[number].read(places[of_part == number] - starts[number]) for number in used]
        order = np.argsort(np.concatenate([np.flatnonzero(of_part == number) for number in used]))
        return _reordered(read, order, places)

    def fingerprint(self) -> str:
        """Of all parts."""
        return digest([part.fingerprint() for part in self.parts])


def _reordered(read: Sequence[Batch], order: np.ndarray, positions: np.ndarray) -> Batch:
    """Batches as one, in the given order."""
    ids = [name for batch in read for name in batch.ids]
    columns = {
        name: np.concatenate([(batch.metadata or {})[name] for batch in read]) for name in read[0].metadata or {}
    }
    return Batch(
        ids=tuple(ids[index] for index in order),
        positions=positions,
        inputs=torch.cat([batch.inputs for batch in read])[order],
        targets=torch.cat([batch.known_targets for batch in read])[order],
        metadata={name: column[order] for name, column in columns.items()},
    )


def mixture(usual: int, others: int, *, seed: int, name: str = "") -> EyeMixture:
    """So many usual eyes, and so many of every other kind; names are kept apart by `name`."""
    return EyeMixture(
        tuple(
            Eyes(usual if kind == "usual" else others, ranges=ranges, seed=seed, name=f"{kind}{name}")
            for kind, ranges in KINDS.items()
        )
    )


def train() -> Eyes:
    """The training set: 3,000 usual eyes."""
    return Eyes(3000, ranges=KNOWN, seed=1, name="train")


def test() -> EyeMixture:
    """The test set: 300 usual eyes, and 100 of every other kind."""
    return mixture(300, 100, seed=2)


def pool() -> EyeMixture:
    """From which to choose what to label next: 600 usual eyes, and 200 of every other kind."""
    return mixture(600, 200, seed=3, name="-new")


class EyeNet(nn.Sequential):
    """Three convolutions and two linears, 58,000 parameters, for images of 48 × 80 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(3, 12, 5, stride=2, padding=2), nn.ReLU()
        self.conv2, self.relu2 = nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU()
        self.conv3, self.relu3 = nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU()
        self.flatten = nn.Flatten()
        self.hidden, self.relu4 = nn.Linear(32 * 6 * 10, 24), nn.ReLU()
        self.classifier = nn.Linear(24, len(CLASSES))


def model() -> nn.Module:
    """The net with its weights, in evaluation mode."""
    net = EyeNet()
    net.load_state_dict(load_file(WEIGHTS))
    return net.eval()
