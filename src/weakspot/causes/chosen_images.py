"""What a Finding of images to label says of them, whatever chose them: predictions and the form of a label."""

from typing import Any

import numpy as np

from weakspot.causes.error_probes import NUMERIC
from weakspot.core.observation import Observation, Setting
from weakspot.core.rows import RowTable
from weakspot.data.thumbnails import thumbnails


def image_columns(seen: Observation, setting: Setting, size: int) -> dict[str, Any]:
    """Prediction, label where there is one, and a small picture, as columns of rows."""
    columns: dict[str, Any] = {"prediction": seen.predicted.reshape(len(seen.ids), -1).cpu().numpy()}
    if seen.batch.targets is not None and setting.task not in NUMERIC:
        columns["target"] = seen.targets.reshape(len(seen.ids), -1).long().cpu().numpy()
    if size and seen.inputs.ndim == 4:
        columns["thumbnail"] = thumbnails(seen.inputs, size)
    return columns


def label_format(outputs: int, setting: Setting) -> dict[str, np.ndarray]:
    """What a label may be, for whoever reads labels without the model."""
    names = () if setting.task in NUMERIC else (setting.classes or tuple(map(str, range(outputs))))
    return {
        "task": np.array(setting.task),
        "outputs": np.array(outputs),
        "classes": np.array(names, dtype=np.str_),
    }


def prediction_texts(values: np.ndarray, outputs: int, setting: Setting) -> np.ndarray:
    """Predictions (images, values) in the form in which labels are given."""
    names = label_format(outputs, setting)["classes"].tolist()
    if setting.task == "classification":
        return np.array([names[row[0]] for row in values.tolist()], dtype=np.str_)
    if setting.task == "multilabel":
        sets = [";".join(name for name, there in zip(names, row, strict=True) if there) for row in values.tolist()]
        return np.array([present or ";" for present in sets], dtype=np.str_)
    return np.array([" ".join(f"{number:.6g}" for number in row) for row in values.tolist()], dtype=np.str_)


def at(rows: RowTable, column: str, places: np.ndarray) -> np.ndarray:
    """Some records of a column."""
    return np.asarray(rows[column][places])
