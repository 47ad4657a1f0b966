"""The predictions of a model for every input: what two models are compared by."""

from math import fsum

import numpy as np
from torch import Tensor

from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.tasks import output_errors, probabilities
from weakspot.estimates import share_of
from weakspot.repair.outputs import PREDICTIONS


class Predictions(Probe):
    """The model's prediction for every input, and whether it is correct: for comparing two models (Kohavi 1995).

    A class, or a set of labels, is correct or not. For numbers and keypoints there is an error.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")
    outputs = PREDICTIONS

    predictions = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the prediction with its target, or the error of the worst number."""
        task = self.setting.task
        if task in ("classification", "multilabel"):
            self.predictions.append(seen.ids, **seen.prediction_columns(labelled=True), **self._confidence(seen))
        else:
            self.predictions.append(seen.ids, error=output_errors(seen.outputs, seen.targets, task).amax(1))

    def _confidence(self, seen: Observation) -> dict[str, Tensor]:
        """The largest probability, or of labels how far the nearest to one half is from it; if scores are known."""
        if self.setting.scores is None:
            return {}
        shares = probabilities(seen.outputs, self.setting.task, self.setting.scores)
        sure = shares.amax(1) if self.setting.task == "classification" else (shares - 0.5).abs().amin(1) + 0.5
        return {"confidence": sure.float()}

    def finish(self) -> Finding:
        """The predictions in the order of the data, and the accuracy or the mean error."""
        rows = self.predictions.read()
        count = {"inputs": Estimate(len(rows.ids), about="samples examined")}
        if self.setting.task in ("regression", "keypoints"):
            error = np.asarray(rows["error"])
            mean = Estimate(fsum(error) / len(error), about="mean error of each sample's worst number or keypoint")
            return self.finding(summary={"error": mean, **count}, table={"id": rows.ids, "error": error})
        correct = np.asarray(rows["correct"])
        names = ("target", "prediction") if self.setting.task == "classification" else ()
        columns = {name: np.asarray(rows[name]) for name in (*names, "confidence") if name in rows}
        accuracy = share_of(correct, "share of the inputs predicted correctly")
        return self.finding(
            summary={"accuracy": accuracy, **count}, table={"id": rows.ids, "correct": correct, **columns}
        )
