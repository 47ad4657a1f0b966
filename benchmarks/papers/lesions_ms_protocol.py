"""The protocol of the multiple-sclerosis study as code: which mask and which brain trains, validates and tests what.

Written down before a lesion model was trained; docs/papers-lesions-protocol.md says why.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lesions_ms_implants import BRAINS, mask_parts

SHARED = Path(os.environ.get("WEAKSPOT_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
MSLUB = SHARED / "data" / "mslub"
VARIANTS = 4
"""Training cases of each mask in one brain: fresh contrast each, every second one mirrored left to right."""
NONE = "00"
LESIONS = {
    "01": 251, "02": 27, "03": 21, "04": 116, "05": 82, "06": 392, "08": 50, "09": 92, "10": 76,
    "11": 109, "12": 100, "13": 39, "14": 59, "15": 29, "16": 95, "17": 25, "18": 20, "20": 246,
    "21": 191, "22": 195, "23": 370, "24": 41, "25": 114, "27": 61, "28": 124, "29": 19, "30": 17,
}  # fmt: skip
"""The 27 masks of patients without images, with their numbers of lesions; the three brains' own are never implanted."""
SAMPLES = 20
MODEL_SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Case:
    """A mask in a brain; variant 0 where it validates or tests.

    Without a mask it is the real patient; with the mask `NONE` the filled brain without any implant.
    """

    brain: str
    mask: str | None
    variant: int = 0

    @property
    def id(self) -> str:
        """The mask comes first, since masks are what is resampled."""
        if self.mask is None:
            return f"real{self.brain}"
        return f"empty{self.brain}" if self.mask == NONE else f"mask{self.mask}-brain{self.brain}-{self.variant}"


@dataclass(frozen=True)
class Fold:
    """One held-out brain. `nets`: the brains that each net of the fold is trained on, the one that is tested last."""

    number: int
    held_out: str
    training_masks: tuple[str, ...]
    validation_masks: tuple[str, ...]
    test_masks: tuple[str, ...]

    @property
    def seen(self) -> tuple[str, ...]:
        return tuple(brain for brain in BRAINS if brain != self.held_out)

    @property
    def nets(self) -> tuple[tuple[str, ...], ...]:
        return ((self.seen[0],), (self.seen[1],), self.seen)

    def training(self, net: tuple[str, ...]) -> list[Case]:
        """As many cases for a net of one brain as for one of two."""
        each = VARIANTS // len(net)
        return [Case(brain, mask, v) for brain in net for mask in self.training_masks for v in range(each)]

    def validation(self, net: tuple[str, ...]) -> list[Case]:
        """Validation masks in the brain of the fold that a net of one brain has not seen."""
        (brain,) = set(self.seen) - set(net)
        return [Case(brain, mask) for mask in self.validation_masks]

    def seen_validation(self) -> list[Case]:
        """The same masks in the brains that the net of two has seen: the secondary lesion model."""
        return [Case(self.seen[place % 2], mask) for place, mask in enumerate(self.validation_masks)]

    def test(self) -> list[Case]:
        return [Case(self.held_out, mask) for mask in self.test_masks]

    def real(self) -> list[Case]:
        return [Case(self.held_out, None)]

    def empty(self) -> list[Case]:
        return [Case(self.held_out, NONE)]


@cache
def folds() -> tuple[Fold, ...]:
    """Three folds: brain k is held out, mask part k tests, part k + 1 validates, part k + 2 trains."""
    parts = mask_parts(LESIONS, parts=len(BRAINS))
    return tuple(Fold(k, brain, parts[(k + 2) % 3], parts[(k + 1) % 3], parts[k]) for k, brain in enumerate(BRAINS))


def all_nets() -> Iterator[tuple[Fold, tuple[str, ...]]]:
    for fold in folds():
        for net in fold.nets:
            yield fold, net
