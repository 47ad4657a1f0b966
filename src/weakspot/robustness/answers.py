"""What a probe keeps of the answers to an input and its neighbours, while a batch is looked at."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.observation import Observation, Setting
from weakspot.robustness.measures import consistency, disagreement, label_sets


class Answered:
    """The answers to one batch, look by look: which they were, and which were right."""

    def __init__(self, ids: Sequence[str], looks: int):
        self._ids = ids
        self._row = {name: row for row, name in enumerate(ids)}
        self.answers = np.full((len(ids), looks), -1, dtype=np.int64)
        self.right = np.zeros((len(ids), looks), dtype=np.bool_)
        self._used = np.zeros(len(ids), dtype=np.int64)
        self._right = np.zeros(len(ids), dtype=np.int64)

    def add(self, ids: Sequence[str], answers: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add one look at some of the samples; gives how many right answers and looks each of them has by now."""
        if ids is self._ids:
            # nobody was released so far, so all samples have had as many looks
            place = int(self._used[0])
            self.answers[:, place], self.right[:, place] = answers, right
            self._used += 1
            self._right += right
            return self._right, self._used
        rows = np.array([self._row[name] for name in ids])
        places = self._used[rows]
        self.answers[rows, places], self.right[rows, places] = answers, right
        self._used[rows] += 1
        self._right[rows] += right
        return self._right[rows], self._used[rows]

    def measures(self) -> dict[str, np.ndarray]:
        """The tallies and the diversity of the answers of every sample of the batch."""
        return {
            "right": self._right,
            "used": self._used,
            **disagreement(self.answers),
            "consistency": consistency(self.answers),
            "right_as_it_is": self.right[:, 0],
        }


def answer_numbers(seen: Observation) -> np.ndarray:
    """The answers as numbers of which only equality counts: classes, or sets of labels."""
    predicted = seen.answers
    return label_sets(predicted) if predicted.ndim == 2 else predicted.astype(np.int64, copy=False)


def answer_columns(target: np.ndarray, predicted: np.ndarray, setting: Setting) -> dict[str, np.ndarray]:
    """Targets and answers by the names of the classes; the labels of a set are joined by +."""
    return {"target": named(target, setting.classes), "predicted": named(predicted, setting.classes)}


def named(answers: np.ndarray, classes: Sequence[str] | None) -> np.ndarray:
    """Class numbers, or rows of labels, by their names.

    >>> named(np.array([[True, False, True]]), ["cat", "dog", "owl"]).tolist()
    ['cat+owl']
    """
    if answers.ndim == 1:
        return answers if classes is None else np.array(classes)[answers]
    names = [str(number) for number in range(answers.shape[1])] if classes is None else classes
    return np.array(["+".join(np.array(names)[row]) for row in answers.astype(bool)], dtype=np.str_)
