"""Which classes does a segmentation confuse? The positions of each class, by the class that is predicted there."""

from typing import Any, ClassVar

import numpy as np
import torch

from weakspot.classes.pixel_outputs import PIXEL_CONFUSION
from weakspot.core.class_names import class_names
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.pixel_confusion import class_ious, mean_ious, pixel_accuracies, pixel_confusion
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.state import Sum
from weakspot.core.tasks import Task
from weakspot.estimates import mean_of


class PixelConfusion(Probe):
    """Positions of each class of a segmentation, by the class that is predicted there, and the overlap of each class.

    IoU = |target ∩ prediction| / |target ∪ prediction|, of each class over all positions of all inputs (Everingham et
    al. 2010). Positions of one input are alike, so shares of positions have no intervals; means over inputs have.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("segmentation",)
    outputs = PIXEL_CONFUSION

    confusion = Sum()
    inputs_with = Sum()
    inputs_of = Sum()
    records = Rows()

    def observe(self, seen: Observation) -> None:
        """Count which class is predicted where."""
        confusion = pixel_confusion(seen.predicted, seen.targets, seen.outputs.shape[1])
        self.confusion = self.confusion + confusion.sum(0)
        self.inputs_with = self.inputs_with + (confusion > 0).sum(0)
        self.inputs_of = self.inputs_of + (confusion.sum(2) > 0).sum(0)
        kept = {"iou": mean_ious(confusion), "accuracy": pixel_accuracies(confusion)}
        self.records.append(seen.ids, **{name: values.cpu() for name, values in kept.items()})

    def finish(self) -> Finding:
        """Pairs of classes, those first of which the largest share is confused; the classes in arrays."""
        confusion = torch.as_tensor(self.confusion).cpu().numpy()
        names = np.array(class_names(self.setting.classes, len(confusion)))
        of_class, of_prediction = confusion.sum(1), confusion.sum(0)
        arrays = {
            "class_name": names,
            "confusion": confusion,
            "confusion_share": confusion / np.maximum(of_class, 1)[:, None],
            "class_iou": class_ious(torch.from_numpy(confusion)).numpy(),
            "class_recall": _shares(confusion.diagonal(), of_class),
            "class_precision": _shares(confusion.diagonal(), of_prediction),
            "class_inputs": torch.as_tensor(self.inputs_of).cpu().numpy(),
        }
        table = self._table(confusion, arrays["confusion_share"], names)
        return self.finding(summary=self._summary(arrays, table), table=table, arrays=arrays)

    def _table(self, confusion: np.ndarray, shares: np.ndarray, names: np.ndarray) -> dict[str, Any]:
        inputs = torch.as_tensor(self.inputs_with).cpu().numpy()
        rows, columns = np.nonzero(confusion * ~np.eye(len(confusion), dtype=bool))
        ranked = np.lexsort((columns, rows, -shares[rows, columns]))
        rows, columns = rows[ranked], columns[ranked]
        return {
            "class": names[rows],
            "predicted": names[columns],
            "share": shares[rows, columns],
            "positions": confusion[rows, columns],
            "inputs": inputs[rows, columns],
        }

    def _summary(self, arrays: dict[str, np.ndarray], table: dict[str, Any]) -> dict[str, Estimate]:
        rows = self.records.read()
        order = id_order(rows.ids)
        overlaps = arrays["class_iou"]
        worst = int(np.nanargmin(overlaps))
        said = len(table["class"]) > 0
        pair = f"{table['class'][0]} are predicted as {table['predicted'][0]}" if said else None
        return {
            "mean_iou": mean_of(np.asarray(rows["iou"])[order]),
            "pixel_accuracy": mean_of(np.asarray(rows["accuracy"])[order]),
            "worst_class": Estimate(str(arrays["class_name"][worst])),
            "worst_iou": Estimate(float(overlaps[worst])),
            "most_confused": Estimate(pair),
            "most_confused_share": Estimate(float(table["share"][0]) if said else None),
            "inputs": Estimate(len(order)),
        }


def _shares(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Shares; NaN of nothing."""
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes > 0)
    return shares
