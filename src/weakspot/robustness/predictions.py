"""What a probe keeps of the predictions for an input and its neighbours, look by look over one batch."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.class_names import named_classes
from weakspot.core.observation import Observation, Setting
from weakspot.robustness.metrics import consistency, disagreement, label_set_codes
from weakspot.robustness.worst_case import correct_in_a_row


class BatchPredictions:
    """The predictions for one batch, look by look: which they were, and which were correct."""

    def __init__(self, ids: Sequence[str], looks: int):
        self._ids = ids
        self._row = {name: row for row, name in enumerate(ids)}
        self.predictions = np.full((len(ids), looks), -1, dtype=np.int64)
        self.correct = np.zeros((len(ids), looks), dtype=np.bool_)
        self._looks_used = np.zeros(len(ids), dtype=np.int64)
        self.correct_looks = np.zeros(len(ids), dtype=np.int64)

    def add(self, ids: Sequence[str], predictions: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add one look at some of the samples; returns how many correct looks and looks each of them has by now."""
        if ids is self._ids:
            # no sample was released so far, so all have had the same number of looks
            look = int(self._looks_used[0])
            self.predictions[:, look], self.correct[:, look] = predictions, correct
            self._looks_used += 1
            self.correct_looks += correct
            return self.correct_looks, self._looks_used
        rows = np.array([self._row[name] for name in ids])
        looks = self._looks_used[rows]
        self.predictions[rows, looks], self.correct[rows, looks] = predictions, correct
        self._looks_used[rows] += 1
        self.correct_looks[rows] += correct
        return self.correct_looks[rows], self._looks_used[rows]

    def columns(self) -> dict[str, np.ndarray]:
        """The counts, also of correct looks before the first incorrect one, and the disagreement of the predictions."""
        return {
            "correct_looks": self.correct_looks,
            "looks_used": self._looks_used,
            "correct_in_a_row": correct_in_a_row(self.correct),
            **disagreement(self.predictions),
            "consistency": consistency(self.predictions),
            "correct": self.correct[:, 0],
        }


def prediction_codes(seen: Observation) -> np.ndarray:
    """The predictions as numbers of which only equality counts: classes, or sets of labels."""
    predictions = seen.predicted_array
    return label_set_codes(predictions) if predictions.ndim == 2 else predictions.astype(np.int64, copy=False)


def named_columns(target: np.ndarray, prediction: np.ndarray, setting: Setting) -> dict[str, np.ndarray]:
    """Targets and predictions by the names of the classes; the labels of a set are joined by +."""
    columns = {"target": target, "prediction": prediction}
    return {name: named_classes(values, setting.classes, joined="+") for name, values in columns.items()}
