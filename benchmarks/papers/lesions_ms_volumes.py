"""The prepared brains of the multiple-sclerosis study in one file, and cases of implants as a source for weakspot."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from lesions_ms_implants import (
    BRAINS,
    SEED,
    EmptyBrain,
    Measured,
    emptied,
    made_case,
    read_mask,
    read_patient,
)
from lesions_ms_protocol import LESIONS, MSLUB, NONE, Case

from weakspot.core.digest import digest
from weakspot.core.observation import Batch
from weakspot.data.nifti import normalised


def prepare(path: Path) -> None:
    """Write what all cases are made from: brains filled and as they are (FLAIR, half precision), and the masks."""
    found = {}
    for name in BRAINS:
        patient = read_patient(MSLUB, name)
        brain = emptied(patient)
        changed = brain.images["flair"] != patient.images["flair"]
        found |= {
            f"{name}.filled": brain.images["flair"].astype(np.float16),
            f"{name}.original": np.where(changed, patient.images["flair"], 0).astype(np.float16),
            f"{name}.white": np.packbits(brain.white),
            f"{name}.level": np.array(brain.level["flair"]),
            **{f"{name}.{key}": values for key, values in vars(brain.measured).items()},
        }
    for name in (*LESIONS, *BRAINS):
        found[f"mask.{name}"] = np.packbits(read_mask(MSLUB, name))
    np.savez_compressed(path, **found)


class Prepared:
    """What `prepare` wrote."""

    def __init__(self, path: Path):
        with np.load(path) as stored:
            self._stored = {key: stored[key] for key in stored.files}
        self.shape = self._stored[f"{BRAINS[0]}.filled"].shape

    def mask(self, name: str) -> np.ndarray:
        return self._bits(f"mask.{name}")

    def _bits(self, key: str) -> np.ndarray:
        return np.unpackbits(self._stored[key])[: np.prod(self.shape)].reshape(self.shape).astype(bool)

    def brain(self, name: str) -> EmptyBrain:
        own = {key.split(".")[1]: values for key, values in self._stored.items() if key.startswith(f"{name}.")}
        looks = Measured(*(own[key] for key in ("voxels", "amplitude", "texture", "profile", "grain")))
        images = {"flair": own["filled"].astype(np.float32)}
        return EmptyBrain(name, images, self._bits(f"{name}.white"), {"flair": float(own["level"])}, looks)

    def _real(self, name: str) -> np.ndarray:
        original, image = self._stored[f"{name}.original"], self._stored[f"{name}.filled"]
        return np.where(original != 0, original, image).astype(np.float32)

    def case(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """FLAIR as z-scores over the brain in half precision, and the mask."""
        if case.mask is None:
            image, mask = self._real(case.brain), self.mask(case.brain)
        elif case.mask == NONE:
            image = self._stored[f"{case.brain}.filled"].astype(np.float32)
            mask = np.zeros(self.shape, dtype=bool)
        else:
            images, mask = made_case(self.brain(case.brain), self.mask(case.mask), case.mask, case.variant)
            image = images["flair"]
        return normalised(image, "nonzero").astype(np.float16), mask


def make_cases(path: Path, cases: Sequence[Case], processes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """All of them, by several processes."""
    if processes < 2:
        prepared = Prepared(path)
        return [prepared.case(case) for case in cases]
    parts = [list(cases[start::processes]) for start in range(processes)]
    with ProcessPoolExecutor(processes) as pool:
        made = list(pool.map(partial(_made, path), parts))
    return [made[place % processes][place // processes] for place in range(len(cases))]


def _made(path: Path, cases: Sequence[Case]) -> list[tuple[np.ndarray, np.ndarray]]:
    prepared = Prepared(path)
    return [prepared.case(case) for case in cases]


class MsVolumes:
    """Cases held in memory, on a device if one is given; inputs (1, 1, z, y, x), batches of one."""

    def __init__(self, cases: Sequence[Case], made: Sequence[tuple[np.ndarray, np.ndarray]], device: str = "cpu"):
        self.ids = tuple(case.id for case in cases)
        self._images = [torch.from_numpy(image).to(device) for image, _ in made]
        self._masks = [torch.from_numpy(mask.astype(np.uint8)).to(device) for _, mask in made]

    def read(self, positions: np.ndarray) -> Batch:
        inputs = torch.stack([self._images[place] for place in positions])[:, None].float()
        targets = torch.stack([self._masks[place] for place in positions]).long()
        sides = {f"spacing_{axis}": np.ones(len(positions)) for axis in "zyx"}
        return Batch(tuple(self.ids[place] for place in positions), np.asarray(positions), inputs, targets, sides)

    def fingerprint(self) -> str:
        return digest(["ms implants", SEED, self.ids])
