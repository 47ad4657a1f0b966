"""MAITE: its datasets and models of image classification as weakspot takes them, and weakspot's as MAITE does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from weakspot.core.digest import digest
from weakspot.core.errors import DataError
from weakspot.core.observation import Batch
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.estimates import share_of

_INDEX = "index2label"


class _MaiteSource:
    """The samples of a dataset of MAITE; read once for the fingerprint."""

    def __init__(self, dataset: Any):
        self._dataset = dataset
        self.ids = tuple(str(dataset[place][2]["id"]) for place in range(len(dataset)))
        names = dataset.metadata.get(_INDEX)
        self.classes = None if names is None else tuple(names[number] for number in sorted(names))

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places: inputs as float32, the label with the highest score as target."""
        data = [self._dataset[int(place)] for place in positions]
        inputs = torch.from_numpy(np.stack([np.asarray(image, dtype=np.float32) for image, _, _ in data]))
        targets = torch.from_numpy(np.array([int(np.argmax(np.asarray(target))) for _, target, _ in data]))
        names = sorted(set.intersection(*(set(known) for _, _, known in data)) - {"id"}) if data else []
        metadata = {name: np.array([known[name] for _, _, known in data]) for name in names}
        plain = {name: column for name, column in metadata.items() if column.ndim == 1 and column.dtype.kind in "biufU"}
        ids = tuple(self.ids[int(place)] for place in positions)
        return Batch(ids, np.asarray(positions), inputs, targets, plain or None)

    def fingerprint(self) -> str:
        """Of every sample."""
        parts = [self.read(np.array([place])) for place in range(len(self.ids))]
        return digest([[part.ids, part.inputs, part.targets, part.metadata] for part in parts])


def source_from_maite(dataset: Any) -> Source:
    """A dataset of MAITE (image classification) as a source: ids, labels and plain metadata with it."""
    if not all(hasattr(dataset, name) for name in ("metadata", "__getitem__", "__len__")):
        raise DataError(f"{type(dataset).__name__} is no dataset of MAITE: expected metadata, __getitem__ and __len__")
    return _MaiteSource(dataset)


def subject_from_maite(model: Any, *, scores: Any = "probabilities", **options: Any) -> Subject:
    """A model of MAITE as a subject, a black box: what it returns are the scores of the classes.

    options: further ones of `Subject`; the fingerprint is the model's id unless another is given.
    """
    names = model.metadata.get(_INDEX)
    classes = {} if names is None else {"classes": [names[number] for number in sorted(names)]}
    fingerprint = f"MAITE model {model.metadata['id']}"

    def predicted(inputs: torch.Tensor) -> torch.Tensor:
        outputs = model(list(inputs.cpu().numpy()))
        return torch.from_numpy(np.stack([np.asarray(output, dtype=np.float32) for output in outputs]))

    return Subject(predicted, scores=scores, **{"fingerprint": fingerprint, **classes, **options})


class MaiteDataset:
    """A source as a dataset of MAITE: images (channels, height, width), one-hot labels, and ids with metadata."""

    def __init__(self, source: Source, *, name: str, classes: Sequence[str] | None = None):
        self._source = source
        self._classes = tuple(classes or getattr(source, "classes", None) or ())
        if not self._classes:
            raise DataError("MAITE needs the names of the classes: give them with classes=")
        self.metadata = {"id": name, _INDEX: dict(enumerate(self._classes))}

    def __len__(self) -> int:
        return len(self._source.ids)

    def __getitem__(self, place: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        if not 0 <= place < len(self):
            raise IndexError(place)
        batch = self._source.read(np.array([place]))
        one_hot = np.zeros(len(self._classes), dtype=np.float32)
        one_hot[int(batch.known_targets[0])] = 1
        known = {name: column[0].item() for name, column in (batch.metadata or {}).items()}
        return batch.inputs[0].numpy(), one_hot, {"id": batch.ids[0], **known}


class MaiteModel:
    """A subject as a model of MAITE: scores of the classes for a list of images."""

    def __init__(self, subject: Subject, *, name: str):
        self._subject = subject
        names = {} if subject.classes is None else {_INDEX: dict(enumerate(subject.classes))}
        self.metadata = {"id": name, **names}

    def __call__(self, batch: Sequence[Any]) -> list[np.ndarray]:
        inputs = torch.from_numpy(np.stack([np.asarray(image, dtype=np.float32) for image in batch]))
        with self._subject.borrowed() as forward, torch.no_grad():
            outputs = forward(inputs.to(self._subject.device))
        return list(outputs.cpu().numpy())


class MaiteAccuracy:
    """Accuracy with its interval as a metric of MAITE; by group where the metadata of the data name one.

    group: the entry of the metadata that says which samples belong together.
    """

    def __init__(self, *, group: str | None = None):
        self.metadata = {"id": "weakspot accuracy"}
        self._group = group
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._correct: list[bool] = []
        self._groups: list[str] = []

    def update(self, predictions: Sequence[Any], targets: Sequence[Any], metadata: Sequence[Any]) -> None:
        """Compare the classes with the highest scores."""
        for prediction, target, known in zip(predictions, targets, metadata, strict=True):
            self._correct.append(int(np.argmax(np.asarray(prediction))) == int(np.argmax(np.asarray(target))))
            if self._group is not None:
                self._groups.append(str(known[self._group]))

    def compute(self) -> dict[str, float]:
        """Accuracy, and both ends of its 95 % interval."""
        groups = None if self._group is None else np.array(self._groups)
        one = share_of(np.array(self._correct, dtype=bool), groups=groups)
        return {"accuracy": float(one), "low": float(one.low or 0), "high": float(one.high or 0)}
