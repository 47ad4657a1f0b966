"""What the tests of steps 2 to 5 share: a small net that is often wrong, with metadata and a pool."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Plan, Run, Subject
from weakspot.causes.room import steps
from weakspot.data.sources import ArraySource, WithMetadata

CLASSES = ("x", "y", "z")


class TinyNet(nn.Sequential):
    def __init__(self, outputs=3):
        torch.manual_seed(0)
        super().__init__(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 8), nn.ReLU(),
            nn.Linear(8, outputs),
        )  # fmt: skip


def images(name, count, targets=None, seed=1):
    rng = np.random.default_rng(seed)
    ids = [f"{name}{number:02d}" for number in range(count)]
    return ArraySource(rng.random((count, 1, 8, 8), dtype=np.float32), targets, ids=ids)


def with_metadata(source):
    rng = np.random.default_rng(5)
    count = len(source.ids)
    return WithMetadata(
        source,
        {
            "id": list(source.ids),
            "light": rng.random(count).tolist(),
            "turn": (rng.random(count) * 360).tolist(),
            "weather": rng.choice(["rain", "fog"], count).tolist(),
        },
    )


@pytest.fixture(scope="session")
def net():
    return TinyNet().eval()


@pytest.fixture(scope="session")
def splits():
    targets = np.random.default_rng(2).integers(0, 3, 80)
    return {
        "train": images("t", 20, targets[:20], seed=4),
        "test": with_metadata(images("i", 80, targets)),
        "pool": images("u", 50, seed=3),
    }


@pytest.fixture(scope="session")
def examined(net, splits, tmp_path_factory):
    """A Run with errors, root causes and the unsafe set; not to be written to."""
    run = Run.create(tmp_path_factory.mktemp("causes") / "run")
    asked = steps({"replicates": 0, "angles": ("turn",), "clusters": 6, "select": {"from": "pool", "budget": 12}})
    Plan.of(asked).run(Subject(net, classes=CLASSES, scores="logits"), splits, run)
    return run
