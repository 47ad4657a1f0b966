"""The predictions of a model for every input: what two models are compared by."""

from math import fsum

import numpy as np

from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.tasks import output_errors
from weakspot.repair.outputs import PREDICTIONS
from weakspot.statistics.intervals import wilson_interval


class Predictions(Probe):
    """The model's prediction for every input, and whether it is correct: for comparing two models (Kohavi 1995).

    A class, or a set of labels, is correct or not. For numbers and keypoints there is an error.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")
    outputs = PREDICTIONS

    predictions = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep target and prediction of a class, whether labels are correct, or the error of numbers."""
        task = self.setting.task
        if task == "classification":
            self.predictions.append(seen.ids, target=seen.targets, prediction=seen.predicted)
        elif task == "multilabel":
            self.predictions.append(seen.ids, correct=seen.correct)
        else:
            self.predictions.append(seen.ids, error=output_errors(seen.outputs, seen.targets, task).amax(1))

    def finish(self) -> Finding:
        """The predictions in the order of the data, and the accuracy or the mean error."""
        rows = self.predictions.read()
        count = {"inputs": Estimate(len(rows.ids), about="samples examined")}
        if self.setting.task in ("regression", "keypoints"):
            error = np.asarray(rows["error"])
            mean = Estimate(fsum(error) / len(error), about="mean error of each sample's worst number or keypoint")
            return self.finding(summary={"error": mean, **count}, table={"id": rows.ids, "error": error})
        if self.setting.task == "multilabel":
            correct, columns = np.asarray(rows["correct"]), {}
        else:
            columns = {name: np.asarray(rows[name]) for name in ("target", "prediction")}
            correct = columns["target"] == columns["prediction"]
        low, high = wilson_interval(int(correct.sum()), len(correct))
        accuracy = Estimate(
            float(correct.mean()), float(low), float(high), 0.95, "share of the inputs predicted correctly"
        )
        return self.finding(
            summary={"accuracy": accuracy, **count}, table={"id": rows.ids, "correct": correct, **columns}
        )
