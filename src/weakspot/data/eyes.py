"""Embedded: an eye simulator. Every image comes with the numbers it was drawn from, so that causes of errors are known.

It replaces the simulator behind the gaze, drowsiness and eyeglasses detectors of Fahmy et al. 2021 (HUDD).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError
from weakspot.core.observation import Batch
from weakspot.core.stateless_random import draw_keys, uniform
from weakspot.data.eye_drawing import draw_eyes

Range = tuple[float, float]
Task = Literal["gaze", "drowsiness", "glasses"]

CLASSES: dict[Task, tuple[str, ...]] = {
    "gaze": ("right", "top right", "top", "top left", "left", "bottom left", "bottom", "bottom right"),
    "drowsiness": ("open", "closed"),
    "glasses": ("without", "with"),
}
CLOSED = 0.2
"""Below this opening an eye counts as closed."""


@dataclass(frozen=True)
class EyeRanges:
    """From which range each parameter is drawn uniformly; for `glasses` and `closed`, how probable they are.

    gaze_angle: direction of the gaze in the image in degrees, 0 to the right, 90 upwards.
    gaze_strength: how far the eye is turned from straight ahead, in degrees.
    opening: of the lids, 1 wide open; an eye that is `closed` has one below 0.18 instead.
    iris: its radius in half widths of the eye.
    pupil: its radius as a share of the iris.
    iris_colour, skin: from brown to blue, from light to dark.
    light: brightness.
    light_angle: where the light comes from, in degrees.
    roll: of the camera, in degrees.
    reflection: in the lens of the glasses.
    blur: in pixels.
    """

    gaze_angle: Range = (0.0, 360.0)
    gaze_strength: Range = (10.0, 35.0)
    opening: Range = (0.45, 1.0)
    iris: Range = (0.36, 0.46)
    pupil: Range = (0.3, 0.6)
    iris_colour: Range = (0.0, 1.0)
    skin: Range = (0.0, 1.0)
    light: Range = (0.7, 1.1)
    light_angle: Range = (0.0, 360.0)
    roll: Range = (-10.0, 10.0)
    reflection: Range = (0.0, 0.4)
    blur: Range = (0.2, 0.8)
    glasses: float = 0.3
    closed: float = 0.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            low, high = value if isinstance(value, tuple) else (0.0, value)
            if not low <= high or (not isinstance(value, tuple) and high > 1):
                raise ConfigError(f"{entry.name} is {value}: expected (smallest, largest), or a probability")


@dataclass(frozen=True)
class Eyes:
    """Images of eyes, drawn from each id alone: a source with the simulator's parameters as metadata.

    task: what the targets are: the direction of the gaze (8 classes, borders at 22.5°, 67.5° …), closed or open, or
        with or without glasses.
    """

    count: int
    task: Task = "gaze"
    ranges: EyeRanges = field(default_factory=EyeRanges)
    seed: int = 0
    size: tuple[int, int] = (48, 80)
    name: str = "eye"

    def __post_init__(self) -> None:
        if self.task not in CLASSES:
            raise ConfigError(f"the eye simulator has no task {self.task!r}: choose from {', '.join(CLASSES)}")
        if self.count < 1 or min(self.size) < 16:
            raise ConfigError(f"expected 1 eye or more, of 16 × 16 pixels or more, got {self.count} of {self.size}")

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """One name per image."""
        return tuple(f"{self.name}-{number:06d}" for number in range(self.count))

    def read(self, positions: np.ndarray) -> Batch:
        """The images at these places."""
        ids = tuple(self.ids[position] for position in positions)
        parameters = eye_parameters(ids, self.ranges, seed=self.seed)
        images = images_of(parameters, ids, size=self.size, seed=self.seed)
        targets = torch.from_numpy(eye_targets(parameters, self.task))
        return Batch(ids, np.asarray(positions), images, targets, parameters)

    def fingerprint(self) -> str:
        """Of what determines the images."""
        return digest(["eyes 1", self.count, self.task, self.ranges, self.seed, self.size, self.name])


def eye_parameters(ids: Sequence[str], ranges: EyeRanges, *, seed: int) -> dict[str, np.ndarray]:
    """The numbers behind each eye, drawn from (seed, id) alone; float64, shape (samples,) each."""
    spans = {entry.name: getattr(ranges, entry.name) for entry in fields(ranges)}
    drawn = dict(zip(spans, uniform(draw_keys(ids, seed), len(spans)).T, strict=True))
    numbers = {
        name: span[0] + (span[1] - span[0]) * drawn[name] for name, span in spans.items() if isinstance(span, tuple)
    }
    closed = drawn["closed"] < ranges.closed
    span = ranges.opening[1] - ranges.opening[0]
    fraction = (numbers["opening"] - ranges.opening[0]) / span if span else drawn["opening"]
    numbers["opening"] = np.where(closed, 0.18 * fraction, numbers["opening"])
    return {**numbers, "glasses": (drawn["glasses"] < ranges.glasses).astype(np.float64)}


def images_of(
    parameters: Mapping[str, np.ndarray], ids: Sequence[str], *, size: tuple[int, int], seed: int = 0
) -> Tensor:
    """The eyes with these parameters, float32 in [0, 1], shape (samples, 3, height, width)."""
    tensors = {name: torch.from_numpy(values).float()[:, None, None] for name, values in parameters.items()}
    noise = torch.from_numpy(uniform(draw_keys(ids, seed, 1), size[0] * size[1])).float()
    return draw_eyes(tensors, size, noise.reshape(-1, *size))


def eye_targets(parameters: Mapping[str, np.ndarray], task: Task) -> np.ndarray:
    """The class of each eye, int64.

    >>> eye_targets({"gaze_angle": np.array([0.0, 22.4, 22.6, 350.0])}, "gaze").tolist()
    [0, 0, 1, 0]
    """
    if task == "gaze":
        return np.round(parameters["gaze_angle"] / 45).astype(np.int64) % 8
    return (parameters["opening"] < CLOSED if task == "drowsiness" else parameters["glasses"] > 0).astype(np.int64)
