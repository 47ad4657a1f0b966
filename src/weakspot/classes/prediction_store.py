"""What a pass keeps of each image: its neural path, outputs, prediction and target; and how this room reads them."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from torch import Tensor

from weakspot.classes.analysis import Images, Study
from weakspot.classes.membership import class_members, images_of
from weakspot.classes.metrics_confusion import output_soft_confusion
from weakspot.classes.pairs import most_suspicious, pair_classes
from weakspot.classes.selection import likeliest
from weakspot.core.class_names import class_names
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Picture
from weakspot.core.observation import Observation, Setting
from weakspot.core.rows import RowTable, id_rank
from weakspot.core.taps import Tap
from weakspot.core.tensors import packed
from weakspot.data.images import enlarged, png, strip


def neural_path(seen: Observation, tap: Tap, threshold: float) -> Tensor:
    """Which neurons each image activates, packed: (samples, ceil(neurons/8)), uint8."""
    return packed(seen.channels(tap).scaled > threshold)


def stored_columns(seen: Observation, *, labelled: bool = False) -> dict[str, Tensor]:
    """The outputs and what they predict, with the targets where there are any; `labelled`: refuse data without."""
    return {"outputs": seen.outputs.float(), **seen.prediction_columns(labelled=labelled)}


class StoredPredictions:
    """The rows that a pass left, as the functions of this room take them."""

    def __init__(self, rows: RowTable, setting: Setting, *, neurons: int = 0, least_true: int = 10):
        self._rows = rows
        self.ids = rows.ids
        self.outputs = rows["outputs"]
        self._task, self._scores = setting.task, setting.scores
        classes = self.outputs.shape[1]
        self.names = class_names(setting.classes, classes)
        labels = class_members(rows["target"], classes) if "target" in rows else None
        predicted = class_members(rows["prediction"], classes)
        bits = rows["bits"] if "bits" in rows else np.zeros((rows.count, 0), dtype=np.uint8)
        belongs = setting.groups_of(self.ids)
        multilabel, rank = setting.task == "multilabel", id_rank(self.ids)
        self.images = Images(bits, neurons, predicted, labels, multilabel, rank, belongs, least_true)

    @cached_property
    def _by_class(self) -> list[np.ndarray]:
        return images_of(self.images.predicted)

    def named(self, numbers: Sequence[int]) -> list[str]:
        """The names of classes."""
        return [self.names[number] for number in numbers]

    def number(self, name: str) -> int:
        """The number of a class, given its name."""
        if name not in self.names:
            raise ConfigError(f"no class is called {name!r}: there are {', '.join(self.names[:20])}")
        return self.names.index(name)

    def soft_confusion(self) -> np.ndarray:
        """Mean probability of each class over the images predicted as another, classes × classes."""
        predicted, rank = self.images.predicted, self.images.rank
        return output_soft_confusion(self.outputs, predicted, task=self._task, scores=self._scores, rank=rank)

    def like(self, predicted: int, other: int) -> list[int]:
        """Images predicted as one class, those that score highest for another class first."""
        images = self._by_class[predicted]
        return likeliest(images, self.outputs[images, other], self.images.rank)

    def example(self, predicted: int, other: int) -> str:
        """The id of the first of them."""
        images = self.like(predicted, other)
        return self.ids[images[0]] if images else ""

    def pictures(self, study: Study, pairs: int, *, each: int = 5) -> dict[str, Picture]:
        """Images of the most suspicious reported pairs, in both directions; none where no thumbnails were kept."""
        if "thumbnail" not in self._rows:
            return {}
        shown = study.classes[pair_classes(most_suspicious(study.score, study.confused)[:pairs], len(study.classes))]
        media = {}
        for a, b in (order for pair in shown.tolist() for order in (pair, pair[::-1])):
            images = self.like(a, b)[:each]
            sheet = strip([enlarged(picture, 64) for picture in self._rows["thumbnail"][images]])
            caption = f"Predicted {self.names[a]}: the images that the network finds most like {self.names[b]}."
            media[f"{self.names[a]} like {self.names[b]}"] = Picture(png(sheet), caption)
        return media
