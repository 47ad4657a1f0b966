"""Small subjects with whole-number weights and data: sums are exact, so results must agree to the last bit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.tasks import Scores, Task
from weakspot.data.sources import ArraySource

SAMPLES = {"train": 41, "test": 37, "pool": 29, "validation": 31}
"""Neither a multiple of the batch sizes tried, nor equal to any number of neurons."""


@dataclass(frozen=True)
class Bench:
    """A subject and its data."""

    subject: Subject
    data: Mapping[str, Source]


def bench(task: Task, *, flat: bool = False) -> Bench:
    """The bench for subjects of one task; segmentations are of volumes, or `flat`, of images, which can be varied."""
    rng = np.random.default_rng(20)
    model = TinySegmenter(2) if flat and task == "segmentation" else _MODELS[task]()
    _make_whole(model, rng)
    classes = 4 if task in ("classification", "multilabel") else 2 if task == "segmentation" else None
    scores: Scores | None = "logits" if classes else None
    subject = Subject(model, task=task, classes=classes, scores=scores, bounds=(0, 4))
    return Bench(subject, {split: _data(task, split, count, rng, flat) for split, count in SAMPLES.items()})


class ReusedBlock(nn.Module):
    """One convolution used twice, with an in-place activation and a skip connection: what breaks naive hooks."""

    def __init__(self, outputs: int):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.shared = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.activation = nn.ReLU(inplace=True)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.classifier = nn.Linear(4 * 4 * 4, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Logits or numbers."""
        features = self.activation(self.stem(images))
        features = self.activation(self.shared(features)) + features
        features = torch.relu(self.shared(features))
        return self.classifier(self.pool(self.norm(features)).flatten(1))  # type: ignore[no-any-return]


class TinySegmenter(nn.Sequential):
    """Two convolutions with dropout of one half, whose factor 2 is exact."""

    def __init__(self, dimensions: int = 3) -> None:
        convolution, dropout = (nn.Conv3d, nn.Dropout3d) if dimensions == 3 else (nn.Conv2d, nn.Dropout2d)
        super().__init__(
            convolution(1, 4, 3, padding=1), nn.ReLU(), dropout(0.5), nn.Dropout(0.5), convolution(4, 2, 1)
        )


_MODELS: dict[Task, Callable[[], nn.Module]] = {
    "classification": lambda: ReusedBlock(4),
    "multilabel": lambda: ReusedBlock(4),
    "regression": lambda: ReusedBlock(1),
    "keypoints": lambda: ReusedBlock(6),
    "segmentation": TinySegmenter,
}


def _make_whole(model: nn.Module, rng: np.random.Generator) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.integers(-2, 3, tuple(parameter.shape)).astype(np.float32)))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.ones_(module.weight)
                module.eps = 0.0


def _data(task: Task, split: str, count: int, rng: np.random.Generator, flat: bool) -> Source:
    ids = [f"{split} <{number}>" for number in range(count)]
    shape = (1, 6, 6, 6) if task == "segmentation" and not flat else (1, 8, 8)
    inputs = rng.integers(0, 4, (count, *shape)).astype(np.float32)
    highest, each = {
        "classification": (4, ()),
        "multilabel": (2, (4,)),
        "regression": (20, (1,)),
        "keypoints": (8, (6,)),
        "segmentation": (2, shape[1:]),
    }[task]
    targets = rng.integers(0, highest, (count, *each))
    numeric = task in ("regression", "keypoints")
    return ArraySource(inputs, targets.astype(np.float32) if numeric else targets, ids=ids)
