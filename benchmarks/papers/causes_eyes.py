"""Three nets on the eye simulator, as in HUDD's gaze (GD), drowsiness (OC) and eyeglasses (OD) cases.

Each knows usual eyes alone; test, fresh test and pools mix these with kinds of eyes that it never saw. How
unusual these are was settled by a first look at the errors, before any retraining. See causes_retraining.py.
"""

from dataclasses import replace
from pathlib import Path

import torch
from causes_cases import Case, fitted, kept, name_of, weights_of
from torch import nn

from weakspot import Subject
from weakspot.core.source import Source
from weakspot.data import eye_net
from weakspot.data.eye_net import EyeMixture, EyeNet
from weakspot.data.eyes import CLASSES, EyeRanges, Eyes, Task

ANGLES = ("gaze_angle", "light_angle", "roll")
OPEN_OR_CLOSED = EyeRanges(opening=(0.3, 1.0), closed=0.5, glasses=0.0, reflection=(0.0, 0.2))
WITH_OR_WITHOUT = EyeRanges(opening=(0.6, 1.0), glasses=0.5, reflection=(0.0, 0.2))
KINDS: dict[Task, dict[str, EyeRanges]] = {
    "drowsiness": {
        "usual": OPEN_OR_CLOSED,
        "narrow": replace(OPEN_OR_CLOSED, opening=(0.2, 0.3)),
        "tilted": replace(OPEN_OR_CLOSED, roll=(25.0, 45.0)),
        "dark": replace(OPEN_OR_CLOSED, light=(0.06, 0.15)),
        "spectacled": replace(OPEN_OR_CLOSED, glasses=1.0, reflection=(0.7, 1.0)),
    },
    "glasses": {
        "usual": WITH_OR_WITHOUT,
        "blurred": replace(WITH_OR_WITHOUT, blur=(3.5, 5.0)),
        "tilted": replace(WITH_OR_WITHOUT, roll=(25.0, 45.0)),
        "dark": replace(WITH_OR_WITHOUT, light=(0.02, 0.05)),
        "reflecting": replace(WITH_OR_WITHOUT, reflection=(0.7, 1.0)),
    },
}
TRAIN, EPOCHS, SIZES = 3000, 30, {"test": 300, "pool": 600, "fresh test": 500}
"""Eyes of each unusual kind in a split; of usual ones there are three times as many."""


def planted(name: str) -> str:
    """The kind of an eye, with which its name begins."""
    return name.partition("-")[0]


def gaze(device: str, folder: Path, *, seed: int = 0) -> Case:
    """The embedded gaze detector; for another seed, one like it."""
    data: dict[str, Source] = {
        "train": eye_net.train(),
        "test": eye_net.test(),
        "pool": eye_net.pool(),
        "fresh test": eye_net.mixture(1500, 500, seed=9, name="-fresh"),
    }
    data = kept(data, device)
    net = eye_net.model().to(device)
    if seed:
        torch.manual_seed(seed)
        weights = weights_of(folder, "gaze", seed)
        net = fitted(EyeNet(), data["train"], device=device, epochs=EPOCHS, seed=seed, shift=1, weights=weights)
    subject = Subject(net, classes=eye_net.CLASSES, scores="logits", bounds=(0, 1), device=device)
    return Case(name_of("gaze", seed), subject, data, (100, 235), {"angles": ANGLES}, planted)


def detector(task: Task, device: str, folder: Path, *, seed: int = 0) -> Case:
    """A net of the same kind for closed eyes or for glasses: trained on usual eyes, tested on others, too."""
    kinds, name = KINDS[task], {"drowsiness": "closed eyes", "glasses": "glasses"}[task]
    data: dict[str, Source] = {"train": Eyes(TRAIN, task, kinds["usual"], seed=1, name="train")}
    for number, (split, count) in enumerate(SIZES.items()):
        parts = (
            Eyes(3 * count if kind == "usual" else count, task, ranges, seed=2 + number, name=f"{kind}-{split}")
            for kind, ranges in kinds.items()
        )
        data[split] = EyeMixture(tuple(parts))
    data = kept(data, device)
    torch.manual_seed(seed)
    net = EyeNet()
    net.classifier = nn.Linear(24, len(CLASSES[task]))
    weights = weights_of(folder, task, seed)
    net = fitted(net, data["train"], device=device, epochs=EPOCHS, seed=seed, shift=1, weights=weights)
    subject = Subject(net, classes=CLASSES[task], scores="logits", bounds=(0, 1), device=device)
    return Case(name_of(name, seed), subject, data, (100, 235), {"angles": ANGLES}, planted)
