"""Error-inducing images: which samples a model predicts incorrectly, for every task (Fahmy et al. 2021)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from weakspot.causes.finding_outputs import ERRORS
from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation, Setting
from weakspot.core.pixel_confusion import mean_ious, pixel_confusion
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.tasks import Task, output_errors
from weakspot.data.metadata_rows import metadata_columns, metadata_rows
from weakspot.estimates import share_of

NUMERIC: tuple[Task, ...] = ("regression", "keypoints")
BY_SIZE: tuple[Task, ...] = (*NUMERIC, "segmentation")
"""Tasks whose predictions are incorrect where their error is large."""


def error_threshold(errors: np.ndarray, *, threshold: float | None, quantile: float) -> float:
    """Above which error a prediction counts as incorrect: the given one, or the quantile of all errors.

    >>> error_threshold(np.arange(11.0), threshold=None, quantile=0.9)
    9.0
    """
    return float(np.quantile(errors, quantile)) if threshold is None else float(threshold)


class Errors(Probe):
    """Error-inducing images: what the model predicts incorrectly, and how (Fahmy et al. 2021).

    Incorrect is: another class; a set of labels that differs in any label; a number, keypoint or segmentation whose
    error exceeds a threshold. Of several numbers or keypoints the worst counts; the error of a segmentation is 1 − its
    mean IoU, and its kind the confusion of the most positions. The table holds the prediction for every sample and its
    metadata, in columns `metadata.NAME`. Numbers and keypoints are in the arrays `prediction` and `target`.

    threshold: error above which a number, keypoint or segmentation is incorrect; by default the quantile decides.
    quantile: of all errors in these data, above which one is incorrect: 0.9 takes the worst tenth.
    """

    outputs = ERRORS

    threshold: float | None = None
    quantile: float = 0.9

    predictions = Rows()

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ConfigError(f"quantile is {self.quantile}: expected a number between 0 and 1, such as 0.9")

    def observe(self, seen: Observation) -> None:
        """Keep each prediction with its target, or with the error of its worst number, and the metadata."""
        columns = prediction_columns(seen, self.setting)
        self.predictions.append(seen.ids, **columns, **metadata_rows(seen.metadata))

    def finish(self) -> Finding:
        """Every sample: whether it is predicted correctly, its error, and what was predicted in place of what."""
        rows = self.predictions.read()
        limit = {}
        arrays: dict[str, np.ndarray] = {}
        if self.setting.task in BY_SIZE:
            above = error_threshold(rows["error"], threshold=self.threshold, quantile=self.quantile)
            rule = f": the {self.quantile:g} quantile of these errors" if self.threshold is None else ""
            by_rule = {"set_share": Estimate(1 - self.quantile)} if self.threshold is None else {}
            limit = by_rule | {
                "threshold": Estimate(above, about=f"error above which a prediction counts as incorrect{rule}")
            }
            correct, columns = rows["error"] <= above, {"error": rows["error"]}
            arrays = {name: rows[name] for name in ("prediction", "target") if name in rows}
        else:
            correct = np.asarray(rows["correct"])
            columns = named_predictions(rows, self.setting)
        kinds = np.where(correct, "", error_kinds(rows, self.setting))
        return self.finding(
            summary={
                "errors": Estimate(int((~correct).sum()), about="error-inducing images"),
                "error_share": self._share(~correct),
                **limit,
                "inputs": Estimate(len(correct), about="samples examined"),
            },
            table={"id": rows.ids, "correct": correct, "kind": kinds, **columns, **metadata_columns(rows)},
            arrays=arrays,
        )

    def _share(self, incorrect: np.ndarray) -> Estimate:
        """The share of errors; without an interval where the rule itself says how many there are."""
        about = "share of the images predicted incorrectly"
        if self.setting.task in BY_SIZE:
            about = "share of the images whose error exceeds the threshold"
            if self.threshold is None:
                return Estimate(float(incorrect.mean()), about=f"{about}: by its rule, not measured; give a threshold")
        return share_of(incorrect, about)


def prediction_columns(seen: Observation, setting: Setting) -> dict[str, Any]:
    """Of one batch: targets, predictions, and whether they agree; or the largest error, and which it is."""
    if setting.task == "segmentation":
        return _segmentation_columns(seen)
    if setting.task not in NUMERIC:
        return dict(seen.prediction_columns(labelled=True))
    worst = output_errors(seen.outputs, seen.targets, setting.task).max(1)
    both = {"prediction": seen.outputs, "target": seen.targets}
    numbers = {name: values.reshape(len(values), -1).float() for name, values in both.items()}
    return {"error": worst.values, "worst": worst.indices, **numbers}


def _segmentation_columns(seen: Observation) -> dict[str, Any]:
    confusion = pixel_confusion(seen.predicted, seen.targets, seen.outputs.shape[1])
    wrong = confusion * (1 - torch.eye(confusion.shape[1], dtype=confusion.dtype, device=confusion.device))
    most = wrong.flatten(1).argmax(1)
    return {
        "error": 1 - mean_ious(confusion),
        "confused": most // confusion.shape[1],
        "confused_with": most % confusion.shape[1],
    }


def named_predictions(
    rows: RowTable, setting: Setting, target: str = "target", prediction: str = "prediction"
) -> dict[str, np.ndarray]:
    """Targets and predictions of classes or labels, by name."""
    return {
        name: named_classes(np.asarray(rows[name]), setting.classes, empty="nothing").astype(np.str_)
        for name in (target, prediction)
    }


def error_kinds(rows: RowTable, setting: Setting) -> np.ndarray:
    """What was predicted in place of what, per sample: "3 → 5", "cat + dog → cat", "output 2", "keypoint 7".

    Of a segmentation: the classes that most positions are confused in.
    """
    if setting.task in NUMERIC:
        word = "keypoint" if setting.task == "keypoints" else "output"
        return np.array([f"{word} {number}" for number in rows["worst"]], dtype=np.str_)
    both = named_predictions(rows, setting, *(("confused", "confused_with") if "confused" in rows else ()))
    return np.array([f"{a} → {b}" for a, b in zip(*both.values(), strict=True)], dtype=np.str_)


def kinds_text(kinds: Sequence[str], *, most: int = 3) -> str:
    """The kinds of error with their counts, the most frequent first.

    >>> kinds_text(["3 → 5", "8 → 5", "3 → 5"])
    '3 → 5 (2), 8 → 5 (1)'
    """
    ranked = sorted(Counter(kinds).items(), key=lambda entry: (-entry[1], entry[0]))
    counts = [f"{kind} ({count})" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*counts, *([f"others ({rest})"] if rest else [])])
