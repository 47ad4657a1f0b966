"""The parts of this room's Finding about a segmentation: overlap of each input, and of each class over all inputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weakspot.core.class_names import class_names
from weakspot.core.finding import Estimate
from weakspot.core.observation import Observation, Setting
from weakspot.core.pixel_confusion import mean_ious, pixel_accuracies, pixel_confusion
from weakspot.core.rows import RowTable, id_order
from weakspot.estimates import interval_estimate, mean_of
from weakspot.performance.finding_parts import Arrays, Numbers
from weakspot.performance.metrics import class_overlaps
from weakspot.statistics import Interval


def segmentation_columns(seen: Observation) -> dict[str, Any]:
    """Per input: mean IoU, the share of positions predicted correctly, and what each class's IoU is made of."""
    if seen.batch.targets is None:
        return {"classes": np.full(len(seen.ids), seen.outputs.shape[1])}
    confusion = pixel_confusion(seen.predicted, seen.targets, seen.outputs.shape[1])
    both = confusion.diagonal(dim1=1, dim2=2)
    return {
        "iou": mean_ious(confusion).cpu(),
        "pixel_accuracy": pixel_accuracies(confusion).cpu(),
        "both": both.cpu(),
        "either": (confusion.sum(1) + confusion.sum(2) - both).cpu(),
    }


def segmentation_parts(rows: RowTable, setting: Setting) -> tuple[Numbers, Arrays, Mapping[str, Any]]:
    """The numbers and arrays of a segmentation, and columns of the table."""
    inputs = {"inputs": Estimate(rows.count)}
    if "iou" not in rows:
        return inputs, {}, {}
    order = id_order(rows.ids)
    table = {name: np.asarray(rows[name]) for name in ("iou", "pixel_accuracy")}
    numbers = {name: mean_of(values[order]) for name, values in table.items()}
    both, either = (np.asarray(rows[name])[order] for name in ("both", "either"))
    belongs = setting.groups_of([rows.ids[row] for row in order])
    scores = class_overlaps(both, either, belongs)
    worst_first = np.lexsort((scores.number, scores.iou, np.nan_to_num(scores.high, nan=1.0)))
    names = np.array(class_names(setting.classes, both.shape[1]), dtype=np.str_)[scores.number]
    arrays = {
        "class_name": names[worst_first],
        "class_iou": scores.iou[worst_first],
        "class_low": scores.low[worst_first],
        "class_high": scores.high[worst_first],
        "class_inputs": scores.inputs[worst_first],
    }
    at_once = class_overlaps(both, either, belongs, confidence=1 - 0.05 / len(names))
    worst = worst_first[0]
    of_worst = {"worst_class": Estimate(str(names[worst])), "worst_class_iou": Estimate(float(scores.iou[worst]))}
    if np.isfinite(at_once.low[worst]):
        ends = Interval(at_once.low[worst], at_once.high[worst])
        of_worst["worst_class_iou"] = interval_estimate(float(scores.iou[worst]), ends)
    return {**numbers, **of_worst, **inputs}, arrays, table
