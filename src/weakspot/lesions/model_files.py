"""A lesion model on disk: a folder with the numbers as safetensors and all else as JSON."""

from pathlib import Path

import numpy as np

from weakspot.core.digest import to_json
from weakspot.core.errors import DataError
from weakspot.core.files import whole_folder, writing
from weakspot.core.guarded_open import check_plain, read_json
from weakspot.lesions.lesion_model import LesionModel

FORMAT, VERSION = "weakspot-lesion-model", 1
WEIGHTS, ABOUT = "model.safetensors", "model.json"


def save_model(model: LesionModel, folder: Path) -> None:
    """Write `folder`, whole or not at all; an older model there is replaced, anything else is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    if folder.exists() and not (folder / ABOUT).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is there and holds no lesion model: choose another folder")
    with whole_folder(folder) as scratch, writing(folder, also=SafetensorError):
        save_file({name: np.ascontiguousarray(values) for name, values in model.arrays().items()}, scratch / WEIGHTS)
        about = {"format": FORMAT, "version": VERSION, **model.about()}
        (scratch / ABOUT).write_text(to_json(about) + "\n", encoding="utf-8")


def load_model(folder: Path) -> LesionModel:
    """The model in a folder that `save_model` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        about = read_json(folder / ABOUT)
        check_plain(folder / WEIGHTS)
        arrays = load_file(folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read a lesion model in {folder}: {reason}; fit it again") from error
    if not isinstance(about, dict):
        raise DataError(f"cannot read a lesion model in {folder}: {ABOUT} is no mapping; fit it again")
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise DataError(
            f"{folder} holds {about.get('format')!r} version {about.get('version')}, expected {FORMAT!r} version "
            f"{VERSION}: fit it again with this weakspot"
        )
    return LesionModel.of(arrays, about)
