"""Before and after: the same inputs, answered by two models, compared input by input."""

from math import fsum

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.tasks import output_errors
from weakspot.repair.effects import mcnemar
from weakspot.statistics.intervals import wilson_interval
from weakspot.statistics.paired import paired_difference_interval


class Answers(Probe):
    """What the model answers to every input, and whether it is right: what two models are compared by (Kohavi 1995).

    Classes and labels are right or wrong; for numbers and keypoints it is told how far they are off.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")

    answers = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep target and prediction of a class, whether labels are right, how far numbers are off."""
        task = self.setting.task
        if task == "classification":
            self.answers.append(seen.ids, target=seen.targets, predicted=seen.predicted)
        elif task == "multilabel":
            self.answers.append(seen.ids, right=seen.right)
        else:
            self.answers.append(seen.ids, error=output_errors(seen.outputs, seen.targets, task).amax(1))

    def finish(self) -> Finding:
        """The answers in the order of the data, and the accuracy or the mean error."""
        rows = self.answers.read()
        count = {"inputs": Estimate(len(rows.ids), about="samples examined")}
        if self.setting.task in ("regression", "keypoints"):
            error = np.asarray(rows["error"])
            mean = Estimate(fsum(error) / len(error), about="mean error of each sample's worst number or keypoint")
            return self.finding(summary={"error": mean, **count}, table={"id": rows.ids, "error": error})
        if self.setting.task == "multilabel":
            right, columns = np.asarray(rows["right"]), {}
        else:
            columns = {name: np.asarray(rows[name]) for name in ("target", "predicted")}
            right = columns["target"] == columns["predicted"]
        low, high = wilson_interval(int(right.sum()), len(right))
        accuracy = Estimate(float(right.mean()), float(low), float(high), 0.95, "share of the inputs answered rightly")
        return self.finding(summary={"accuracy": accuracy, **count}, table={"id": rows.ids, "right": right, **columns})


def compared(before: Finding, after: Finding, *, confidence: float = 0.95) -> Finding:
    """What changed between two Findings of `Answers` over the same inputs.

    The difference of the accuracies comes with its paired interval; where that holds 0, no difference is shown. The
    p-value is McNemar's, exact (McNemar 1947): the chance of so uneven a split if gains and losses were equally likely.
    """
    old, new = _by_id(before), _by_id(after)
    if old["id"].tolist() != new["id"].tolist():
        raise DataError("the two Findings are not of the same inputs: examine both models on the same data")
    gained, lost = ~old["right"] & new["right"], old["right"] & ~new["right"]
    changed = np.flatnonzero(old["predicted"] != new["predicted"])
    return Finding(
        name="repair.compared",
        about="What changed between two models, input by input.",
        summary=_summary(old["right"], new["right"], gained, lost, confidence),
        table=table_of(
            {
                "id": old["id"][changed],
                "change": np.select([gained[changed], lost[changed]], ["mended", "broken"], "wrong as before"),
                "target": old["target"][changed],
                "before": old["predicted"][changed],
                "after": new["predicted"][changed],
            }
        ),
        provenance={"before": before.digest, "after": after.digest, "confidence": confidence},
    )


def _summary(
    before: np.ndarray, after: np.ndarray, gained: np.ndarray, lost: np.ndarray, confidence: float
) -> dict[str, Estimate]:
    low, high = map(float, paired_difference_interval(before, after, confidence=confidence))
    chance = mcnemar(int(gained.sum()), int(lost.sum()))
    verdict = "no difference shown" if low <= 0 <= high else "better" if low > 0 else "worse"
    return {
        "verdict": Estimate(verdict, about="by the interval of the difference"),
        "difference": Estimate(
            float(after.mean() - before.mean()), low, high, confidence, "accuracy after less accuracy before, paired"
        ),
        "accuracy_before": Estimate(float(before.mean()), about="share of the inputs answered rightly before"),
        "accuracy_after": Estimate(float(after.mean()), about="share of the inputs answered rightly after"),
        "mended": Estimate(int(gained.sum()), about="inputs wrong before and right after"),
        "broken": Estimate(int(lost.sum()), about="inputs right before and wrong after"),
        "p_value": Estimate(chance, about="exact McNemar test of mended against broken"),
        "inputs": Estimate(len(before), about="samples examined"),
    }


def _by_id(answers: Finding) -> dict[str, np.ndarray]:
    if answers.table is None or not {"id", "right", "target", "predicted"} <= set(answers.table.column_names):
        raise DataError(f"{answers.name} is no Finding of Answers: examine both models with that probe")
    table = answers.table.sort_by("id")
    return {name: np.asarray(table[name].to_numpy()) for name in ("id", "right", "target", "predicted")}
