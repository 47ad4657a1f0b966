"""The probe of this room: every prediction with its label and confidence, and what follows from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding, Picture
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.tasks import output_errors
from weakspot.data.metadata_rows import metadata_columns, metadata_rows
from weakspot.data.thumbnails import thumbnails
from weakspot.performance.finding_parts import Arrays, Numbers, Predicted, numbers_parts, parts, pictures
from weakspot.performance.outputs import PERFORMANCE
from weakspot.performance.segmentation_parts import segmentation_columns, segmentation_parts

NUMERIC = ("regression", "keypoints")
TOP = 5


class Performance(Probe):
    """How good the model is: accuracy by class, calibration (Guo et al. 2017), confusions; or errors, R², overlap.

    Cheap: it needs the predictions for the inputs as they are, which other questions need, too. Without labels it keeps
    the predictions alone. The table has every sample's prediction, confidence and metadata.

    thumbnail: longer side in pixels of the pictures of errors that are shown; 0 for none.
    shown: how many errors of highest confidence, and how many confusions, to show as pictures.
    """

    outputs = PERFORMANCE
    by_group = ("worst_class_accuracy", "worst_class_iou", "top5_accuracy")

    thumbnail: int = 64
    shown: int = 12

    predictions = Rows()
    pictured = Rows()

    def __post_init__(self) -> None:
        if self.thumbnail < 0 or self.shown < 0:
            raise ConfigError(f"thumbnail is {self.thumbnail} and shown {self.shown}: expected numbers of 0 or more")

    def observe(self, seen: Observation) -> None:
        """Keep each prediction with its label and metadata, and a small picture of each error."""
        columns = self._columns(seen)
        self.predictions.append(seen.ids, **columns, **metadata_rows(seen.metadata))
        if "correct" in columns and self.thumbnail and self.shown and seen.inputs.ndim == 4:
            self._keep_pictures(seen, np.flatnonzero(~seen.correct_array))

    def _keep_pictures(self, seen: Observation, wrong: np.ndarray) -> None:
        """In one corner of a square, since images of one data set may differ in size."""
        square = np.zeros((len(wrong), self.thumbnail, self.thumbnail, 3), dtype=np.uint8)
        size = np.zeros((len(wrong), 2), dtype=np.int64)
        if len(wrong):
            made = thumbnails(seen.inputs[torch.from_numpy(wrong).to(seen.inputs.device)], self.thumbnail)
            size[:] = made.shape[1:3]
            square[:, : made.shape[1], : made.shape[2]] = made
        self.pictured.append([seen.ids[row] for row in wrong], pixels=square, size=size)

    def _columns(self, seen: Observation) -> dict[str, Any]:
        if self.setting.task == "segmentation":
            return segmentation_columns(seen)
        return self._numbers(seen) if self.setting.task in NUMERIC else self._classes(seen)

    def _classes(self, seen: Observation) -> dict[str, Any]:
        columns: dict[str, Any] = seen.prediction_columns()
        if self.setting.task == "classification" and self.setting.scores is not None:
            columns["confidence"] = seen.probabilities.max(1).values
        if "target" in columns and self.setting.task == "classification" and seen.outputs.shape[1] > 2 * TOP:
            own = seen.outputs.gather(1, seen.targets.long()[:, None])
            columns["top5"] = (seen.outputs > own).sum(1) < TOP
        return columns

    def _numbers(self, seen: Observation) -> dict[str, Any]:
        said = seen.outputs.reshape(len(seen.ids), -1).double()
        if seen.batch.targets is None:
            return {"said": said}
        true = seen.targets.reshape(len(seen.ids), -1).double()
        return {
            "said": said,
            "true": true,
            "error": output_errors(seen.outputs, seen.targets, self.setting.task).mean(1),
        }

    def finish(self) -> Finding:
        """The numbers, the classes and confusions in order, and a row per sample."""
        rows = self.predictions.read()
        metadata = metadata_columns(rows)
        if self.setting.task in (*NUMERIC, "segmentation"):
            summary, arrays, table = self._measured(rows)
            return self.finding(summary=summary, table={"id": rows.ids, **table, **metadata}, arrays=arrays)
        predicted = Predicted.of(rows, self.setting)
        summary, arrays = parts(predicted)
        table = {"id": rows.ids, **self._named(rows), **predicted.columns(), **metadata}
        return self.finding(summary=summary, table=table, arrays=arrays, media=self._pictures(predicted))

    def _measured(self, rows: RowTable) -> tuple[Numbers, Arrays, Mapping[str, Any]]:
        if self.setting.task == "segmentation":
            return segmentation_parts(rows, self.setting)
        return numbers_parts(rows, self.setting.task)

    def _named(self, rows: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {
            name: named_classes(np.asarray(rows[name]), self.setting.classes, empty="nothing").astype(np.str_)
            for name in ("target", "prediction")
            if name in rows
        }

    def _pictures(self, predicted: Predicted) -> dict[str, Picture]:
        kept = self.pictured.read()
        if not kept.count:
            return {}
        place = {name: row for row, name in enumerate(kept.ids)}

        def picture(name: str) -> np.ndarray:
            height, width = kept["size"][place[name]]
            return np.asarray(kept["pixels"][place[name], :height, :width])

        return pictures(predicted, picture, self.shown)
