"""The parts of this room's Finding: its numbers, arrays and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weakspot.core.class_names import class_names
from weakspot.core.finding import Estimate, Picture
from weakspot.core.observation import Setting
from weakspot.core.rows import RowTable, id_order
from weakspot.data.images import enlarged, png, strip
from weakspot.estimates import interval_estimate, share_of
from weakspot.formatting import roughly
from weakspot.performance.metrics import (
    Confusions,
    class_scores,
    confusions,
    macro_f1,
    r_squared,
    r_squared_interval,
    surely_worst,
)
from weakspot.statistics.calibration import reliability

Numbers = dict[str, Estimate]
Arrays = dict[str, np.ndarray]
SURE = 0.9
_LISTED = 100
_STRIP = 6
_LEAST_HEIGHT = 72
_LEAST_TO_RESAMPLE = 20


@dataclass(frozen=True)
class Predicted:
    """Predictions of classes or labels in the order of the ids, so that sums do not depend on that of the data."""

    ids: Sequence[str]
    prediction: np.ndarray
    target: np.ndarray | None
    correct: np.ndarray | None
    confidence: np.ndarray | None
    top5: np.ndarray | None
    names: Sequence[str]
    back: np.ndarray
    """From this order to that of the data."""
    belongs: np.ndarray | None = None
    """What each input belongs to, such as a film; None where each stands for itself."""

    @classmethod
    def of(cls, rows: RowTable, setting: Setting) -> "Predicted":
        """From the rows of the probe."""
        order = id_order(rows.ids)
        columns = {
            name: np.asarray(rows[name])[order] if name in rows else None
            for name in ("target", "correct", "confidence", "top5")
        }
        prediction = np.asarray(rows["prediction"])[order]
        target = columns["target"]
        highest = max(int(prediction.max(initial=0)), 0 if target is None else int(target.max(initial=0))) + 1
        count = prediction.shape[1] if prediction.ndim == 2 else highest
        names = class_names(setting.classes, count)
        ids = [rows.ids[row] for row in order]
        return cls(ids, prediction, **columns, names=names, back=np.argsort(order), belongs=setting.groups_of(ids))

    def columns(self) -> Arrays:
        """Columns of the table, in the order of the data."""
        shown = {"correct": self.correct, "confidence": self.confidence}
        return {name: values[self.back] for name, values in shown.items() if values is not None}


def parts(predicted: Predicted) -> tuple[Numbers, Arrays]:
    """The numbers and arrays of predictions of classes or labels."""
    inputs = {"inputs": Estimate(len(predicted.ids))}
    numbers, arrays = _calibration(predicted)
    if predicted.target is None or predicted.correct is None:
        return {**numbers, **inputs}, arrays
    summary = {
        "accuracy": share_of(predicted.correct),
        "errors": Estimate(int((~predicted.correct).sum())),
    }
    of_task = _by_label if predicted.target.ndim == 2 else _by_class
    more, by = of_task(predicted)
    return {**summary, **more, **numbers, **inputs}, {**by, **arrays}


def _by_class(predicted: Predicted) -> tuple[Numbers, Arrays]:
    scores = class_scores(predicted.target, predicted.prediction, predicted.belongs)  # type: ignore[arg-type]
    order, total = surely_worst(scores), len(predicted.ids)
    worst = order[0]
    of_it = predicted.target == scores.number[worst]
    of_worst = share_of(
        np.asarray(predicted.correct)[of_it], confidence=1 - 0.05 / len(order),
        groups=None if predicted.belongs is None else predicted.belongs[of_it],
        about=f"share of its {scores.inputs[worst]:,} inputs predicted correctly; the interval holds for all classes "
        "at once",
    )  # fmt: skip
    numbers = {
        "most_frequent": Estimate(float(scores.inputs.max() / total)),
        "class_mean": Estimate(float(scores.accuracy.mean())),
        "worst_class": Estimate(str(predicted.names[scores.number[worst]])),
        "worst_class_accuracy": Estimate(of_worst.value, of_worst.low, of_worst.high, 0.95, of_worst.about),
    }
    if predicted.top5 is not None:
        numbers["top5_accuracy"] = share_of(predicted.top5, groups=predicted.belongs)
    arrays = {
        "class_name": _words([predicted.names[number] for number in scores.number[order]]),
        "class_inputs": scores.inputs[order],
        "class_accuracy": scores.accuracy[order],
        "class_low": scores.low[order],
        "class_high": scores.high[order],
        "class_precision": scores.precision[order],
    }
    return numbers, {**arrays, **_confusions(predicted)}


def _confusions(predicted: Predicted) -> Arrays:
    found = _found_confusions(predicted)
    if not len(found.inputs):
        return {}
    names = [
        f"{predicted.names[a]} → {predicted.names[b]}" for a, b in zip(found.target, found.prediction, strict=True)
    ]
    sides = {
        f"confusion_{side}": _words([predicted.names[number] for number in numbers])
        for side, numbers in (("target", found.target), ("prediction", found.prediction))
    }
    return {"confusion": _words(names), "confusion_inputs": found.inputs, **sides}


def _found_confusions(predicted: Predicted) -> Confusions:
    return confusions(predicted.target, predicted.prediction)  # type: ignore[arg-type]


def _by_label(predicted: Predicted) -> tuple[Numbers, Arrays]:
    true, said = np.asarray(predicted.target, bool), np.asarray(predicted.prediction, bool)
    mean, each = macro_f1(true, said)
    order = np.argsort(np.nan_to_num(each, nan=np.inf), kind="stable")
    order = order[np.isfinite(each[order])]
    numbers = {"label_accuracy": Estimate(float((true == said).mean()))}
    if np.isfinite(mean):
        numbers["macro_f1"] = Estimate(mean)
    arrays = {"class_name": _words([predicted.names[label] for label in order]), "class_inputs": true.sum(0)[order]}
    return numbers, {**arrays, "label_f1": each[order]} if len(order) else {}


def _calibration(predicted: Predicted) -> tuple[Numbers, Arrays]:
    """Where confidences are known their mean; with labels also how well they fit the share correct."""
    if predicted.confidence is None:
        return {}, {}
    confidence = np.clip(predicted.confidence.astype(np.float64), 0, 1)
    numbers: Numbers = {"mean_confidence": Estimate(float(confidence.mean()))}
    if predicted.correct is None:
        return numbers, {}
    curve = reliability(confidence, predicted.correct)
    sure = _confident_errors(predicted)
    numbers |= {
        "calibration_error": Estimate(curve.error),
        "overconfidence": _mean_with_interval(confidence - predicted.correct),
        "confident_errors": Estimate(int((confidence[sure] >= SURE).sum())),
    }
    arrays = {
        "confidence_mean": curve.probability,
        "confidence_correct": curve.frequency,
        "confidence_inputs": curve.inputs,
    }
    listed = {"confident_error_id": _words([predicted.ids[row] for row in sure[:_LISTED]])} if len(sure) else {}
    return numbers, {**arrays, **listed}


def _confident_errors(predicted: Predicted) -> np.ndarray:
    """The errors, the highest confidence first."""
    wrong = np.flatnonzero(~predicted.correct)  # type: ignore[operator]  # there are labels
    return wrong[np.argsort(-predicted.confidence[wrong], kind="stable")]  # type: ignore[index]


def _mean_with_interval(values: np.ndarray) -> Estimate:
    """A mean ± 1.96 standard errors; without an interval where values are few."""
    mean = float(values.mean())
    if len(values) < _LEAST_TO_RESAMPLE:
        return Estimate(mean)
    width = 1.959964 * float(values.std(ddof=1)) / np.sqrt(len(values))
    return interval_estimate(mean, (mean - width, mean + width))  # type: ignore[arg-type]


def numbers_parts(rows: RowTable, task: str) -> tuple[Numbers, Arrays, Mapping[str, Any]]:
    """The numbers and arrays of predictions that are numbers or keypoints, and columns of the table."""
    order, inputs = id_order(rows.ids), {"inputs": Estimate(rows.count)}
    if "error" not in rows:
        return inputs, {}, {}
    error, said, true = (np.asarray(rows[name])[order] for name in ("error", "said", "true"))
    table = {"error": np.asarray(rows["error"])}
    tenth = {"largest_tenth": Estimate(float(np.quantile(error, 0.9)))}
    if task == "keypoints":
        return {"mean_distance": _mean_with_interval(error), **tenth, **inputs}, {}, table
    numbers = {"mean_absolute_error": _mean_with_interval(error), **_squared(said, true), **tenth, **inputs}
    single = said.shape[1] == 1
    return numbers, {"said": rows["said"][:, 0], "true": rows["true"][:, 0]} if single else {}, table


def _squared(said: np.ndarray, true: np.ndarray) -> Numbers:
    mean = _mean_with_interval(((said - true) ** 2).mean(1))
    ends = [None if end is None else float(np.sqrt(max(end, 0))) for end in (mean.value, mean.low, mean.high)]
    numbers = {"root_mean_squared_error": Estimate(ends[0], ends[1], ends[2], mean.confidence)}
    r2 = r_squared(said, true)
    if not np.isfinite(r2):
        return numbers
    enough = len(said) >= _LEAST_TO_RESAMPLE
    told = interval_estimate(r2, r_squared_interval(said, true)) if enough else Estimate(r2)
    return {**numbers, "r_squared": told}


def pictures(predicted: Predicted, picture: Callable[[str], np.ndarray], most: int) -> dict[str, Picture]:
    """The errors of highest confidence one by one, and a strip of each of the most frequent confusions."""
    shown: dict[str, Picture] = {}
    if predicted.confidence is not None:
        for rank, row in enumerate(_confident_errors(predicted)[:most], 1):
            sure = roughly(float(predicted.confidence[row]))
            caption = f"{_said(predicted, row)}, {sure} sure; label {_true(predicted, row)} ({predicted.ids[row]})"
            tile = enlarged(picture(predicted.ids[row]), _LEAST_HEIGHT)
            shown[f"confident error {rank}"] = Picture(png(tile), caption)
    if predicted.prediction.ndim == 2:
        return shown
    found = _found_confusions(predicted)
    for a, b, count in list(zip(*found, strict=True))[: most // 2]:
        rows = np.flatnonzero((predicted.target == a) & (predicted.prediction == b))[:_STRIP]
        tiles = [picture(predicted.ids[row]) for row in rows]
        alike = [tile for tile in tiles if tile.shape == tiles[0].shape]
        caption = f"{predicted.names[a]} → {predicted.names[b]}: {count:,} of {int((predicted.target == a).sum()):,}"
        shown[f"{predicted.names[a]} → {predicted.names[b]}"] = Picture(
            png(strip([enlarged(tile, _LEAST_HEIGHT) for tile in alike])), caption
        )
    return shown


def _said(predicted: Predicted, row: int) -> str:
    return _named(predicted, predicted.prediction[row])


def _true(predicted: Predicted, row: int) -> str:
    return _named(predicted, predicted.target[row])  # type: ignore[index]


def _named(predicted: Predicted, value: Any) -> str:
    if np.ndim(value):
        return " + ".join(np.asarray(predicted.names)[value > 0]) or "nothing"
    return str(predicted.names[int(value)])


def _words(names: Sequence[str]) -> np.ndarray:
    return np.array(names, dtype=np.str_)
