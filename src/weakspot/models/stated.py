"""What a model itself says of the inputs it was trained on: the image processor of Hugging Face, timm, torchvision."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import read_plain
from weakspot.models.preprocessing import Normalise

PROCESSOR = "preprocessor_config.json"
"""The file of an image processor, in the folder of a Hugging Face model."""
_MOST_BYTES = 1 << 20
_PILLOW = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""By Pillow's numbers."""
_TINY = 384
"""From this side on, ConvNeXt's processor resizes without cropping."""


@dataclass(frozen=True)
class Preparation:
    """How inputs become what the model was trained on.

    where: what says so.
    normalise: of inputs from 0 to 1.
    framing: `size`, `shorter_side`, `crop`, `interpolation` as under `data` in `weakspot.yaml`; empty where nothing is
        said.
    sure: whether it is said of these weights. timm's configuration is of its own, which others may have replaced.
    """

    where: str
    normalise: Normalise
    framing: Mapping[str, Any] = field(default_factory=dict)
    sure: bool = True

    def note(self) -> str:
        """What to know where nothing prepares the inputs."""
        entry = json.dumps(self.normalise.entry()).replace('"', "")
        return (
            f"{self.where} has inputs normalised, {entry}, and no preprocess is given: give it, in "
            "Python preprocess=weakspot.models.Normalise(…) with these numbers, or an empty one "
            "if the inputs are as the model wants them"
        )


def stated_preparation(
    model: Any, reference: str = "", arguments: Mapping[str, Any] | None = None
) -> Preparation | None:
    """What the model states of its inputs; None where it states nothing.

    reference, arguments: how the model was made, as `torchvision.models:resnet18` with `weights`. Files are read from
        the folder that the model was loaded from; nothing is downloaded.
    """
    said = arguments or {}
    return (
        _of_hugging_face(model)
        or _of_timm(model, sure=bool(said.get("pretrained")))
        or _of_torchvision(reference, said.get("weights"))
    )


def _of_hugging_face(model: Any) -> Preparation | None:
    folder = getattr(getattr(model, "config", None), "_name_or_path", None)
    if not isinstance(folder, str) or not folder or not (Path(folder) / PROCESSOR).is_file():
        return None
    path = Path(folder) / PROCESSOR
    try:
        said = json.loads(read_plain(path, most=_MOST_BYTES))
        return Preparation(f"{PROCESSOR} of {folder}", _processor_normalise(said), _processor_framing(said))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{path} is no description of an image processor: {error}; correct or remove it") from error


def _processor_normalise(said: Mapping[str, Any]) -> Normalise:
    scale = 255 * float(said.get("rescale_factor", 1 / 255)) if said.get("do_rescale", True) else 255.0
    if not said.get("do_normalize", "image_mean" in said):
        return Normalise(_near_one(scale))
    return Normalise(_near_one(scale), tuple(map(float, said["image_mean"])), tuple(map(float, said["image_std"])))


def _near_one(scale: float) -> float:
    """1/255 is written with as many digits as the program had."""
    return 1.0 if math.isclose(scale, 1, rel_tol=1e-6) else scale


def _processor_framing(said: Mapping[str, Any]) -> dict[str, Any]:
    framing: dict[str, Any] = {}
    if said.get("do_resize", "size" in said):
        framing = _resized(said["size"], said.get("crop_pct"))
    if said.get("do_center_crop"):
        framing["crop"] = _sides(said["crop_size"])
    if framing.keys() == {"shorter_side"}:  # images of differing sizes, which no batch can hold
        return {}
    resized = "size" in framing or "shorter_side" in framing
    return {**framing, **(_interpolation(said.get("resample")) if resized else {})}


def _resized(size: Any, crop_share: float | None) -> dict[str, Any]:
    side = size.get("shortest_edge") if isinstance(size, Mapping) else None
    if side is None:
        return {"size": _sides(size)}
    if crop_share is None:
        return {"shorter_side": int(side)}
    return {"size": [side, side]} if side >= _TINY else {"shorter_side": int(side / crop_share), "crop": [side, side]}


def _sides(size: Any) -> list[int]:
    """Height and width, of a mapping, two numbers or one."""
    if isinstance(size, Mapping):
        return [int(size["height"]), int(size["width"])]
    return [int(side) for side in size] if isinstance(size, Sequence) else [int(size), int(size)]


def _interpolation(resample: Any) -> dict[str, str]:
    name = _PILLOW[resample] if isinstance(resample, int) else str(resample or "bilinear")
    return {"interpolation": name} if name in _PILLOW and name != "bilinear" else {}


def _of_timm(model: Any, *, sure: bool) -> Preparation | None:
    said = getattr(model, "pretrained_cfg", None)
    if not isinstance(said, Mapping) or not said.get("mean") or not said.get("std"):
        return None
    normalise = Normalise(1.0, tuple(map(float, said["mean"])), tuple(map(float, said["std"])))
    shape, share = said.get("input_size"), said.get("crop_pct") or 1.0
    framing: dict[str, Any] = {}
    if isinstance(shape, Sequence) and len(shape) == 3:
        sides = [int(shape[1]), int(shape[2])]
        square = sides[0] == sides[1] and said.get("crop_mode", "center") == "center"
        framing = {"shorter_side": math.floor(sides[0] / share), "crop": sides} if square else {"size": sides}
        framing |= _interpolation(said.get("interpolation"))
    return Preparation("the model's pretrained_cfg", normalise, framing, sure)


def _of_torchvision(reference: str, weights: Any) -> Preparation | None:
    """The transforms of the weights that were asked for by name."""
    module, _, name = reference.partition(":")
    if weights is None or module.partition(".")[0] != "torchvision":
        return None
    named = _torchvision_weights(name, str(weights))
    transforms: Any = None if named is None else named.transforms()
    if not all(hasattr(transforms, part) for part in ("mean", "std", "resize_size", "crop_size")):
        return None
    crop = _sides(transforms.crop_size[0])
    framing = {"shorter_side": int(transforms.resize_size[0]), "crop": crop}
    framing |= _interpolation(getattr(getattr(transforms, "interpolation", None), "value", None))
    normalise = Normalise(1.0, tuple(transforms.mean), tuple(transforms.std))
    return Preparation(f"torchvision's weights {weights}", normalise, framing)


def _torchvision_weights(model: str, weights: str) -> Any:
    """The entry of torchvision's list; None where it is not installed, or knows no such model or weights."""
    try:
        from torchvision.models import get_model_weights

        return get_model_weights(model)[weights.rpartition(".")[2]]
    except (ImportError, KeyError, ValueError):
        return None
