"""A small Run, its model and data, for adapters to hand on."""

import numpy as np
import pytest
import torch

from weakspot import Plan, Run, Subject
from weakspot.data.sources import ArraySource, Grouped
from weakspot.registry import steps_for

CLASSES = ["dark", "bright"]
ASK = {"coverage": {"criteria": ["nc"], "confidence": True}, "robustness": {"looks": 4}, "causes": {"replicates": 0}}
POLICY = """
rules:
  - name: accurate enough
    finding: robustness.neighbour_accuracy
    number: accuracy
    at_least: {bound}
"""


class Net(torch.nn.Module):
    """Tells bright from dark, badly."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.convolution = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.linear = torch.nn.Linear(3 * 64, 2)

    def forward(self, images):
        return self.linear(torch.relu(self.convolution(images)).flatten(1))


def images(count=30, seed=0):
    rng = np.random.default_rng(seed)
    levels = rng.random(count).astype(np.float32)
    values = np.clip(levels[:, None, None, None] + 0.1 * rng.normal(size=(count, 1, 8, 8)), 0, 1).astype(np.float32)
    return values, (levels > 0.5).astype(np.int64)


@pytest.fixture(scope="session")
def source():
    values, labels = images()
    made = ArraySource(values, labels, ids=[f"image {n:02d}" for n in range(30)], metadata={"site": ["a", "b"] * 15})
    return Grouped(made, [f"film {n // 3}" for n in range(30)])


@pytest.fixture
def net():
    return Net()


@pytest.fixture(scope="session")
def run(source, tmp_path_factory):
    made = Run.create(tmp_path_factory.mktemp("integrations") / "run")
    subject = Subject(Net(), classes=CLASSES, scores="logits", bounds=(0, 1))
    Plan.of(steps_for(ASK)).run(subject, {"test": source, "train": source}, made)
    return made


@pytest.fixture
def policy(tmp_path):
    """Writes a policy with this bound."""

    def written(bound):
        path = tmp_path / f"policy-{bound}.yaml"
        path.write_text(POLICY.format(bound=bound))
        return path

    return written
