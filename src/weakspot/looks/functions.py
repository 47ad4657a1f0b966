"""A function of your own, or of another package, as a variation; its chance follows from the sample's id."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import canonical, class_code, digest
from weakspot.core.errors import ConfigError, DataError
from weakspot.looks.values import grain_keys
from weakspot.looks.variations import GRAIN, Bounds, Quantity, Variation

Images = Literal["tensor", "array", "bytes"]
Seeded = Literal["global", "argument"]


@dataclass(frozen=True)
class ByFunction(Variation):
    """What a function makes of an image, such as a transform of kornia, torchvision, albumentations or nrtk.

    call: from one image to the changed one, of the same shape; or where it is, as "module:name".
    images: what it takes and gives: "tensor", (channels, height, width), and "array", (height, width, channels), from 0
        to 1; or "bytes", the same array as whole numbers from 0 to 255.
    seeded: how chance is made repeatable: "global", the generators of random, numpy and torch are seeded before each
        call and put back after it; "argument", it is called with seed=, for functions with a generator of their own.
    """

    call: Callable[..., Any] | str
    images: Images = "tensor"
    seeded: Seeded = "global"
    quantities: ClassVar[tuple[Quantity, ...]] = (GRAIN,)
    needs_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, choices in (("images", get_args(Images)), ("seeded", get_args(Seeded))):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name} of ByFunction is {getattr(self, name)!r}: choose one of {', '.join(choices)}"
                )
        if not callable(self._function):
            raise ConfigError(f"call of ByFunction is a {type(self._function).__name__}: expected what can be called")

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return _found(self.call) if isinstance(self.call, str) else self.call

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """The grain, from which the seed of each call is made."""
        return chance

    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """The function at one image after the other."""
        low, high = bounds or (0.0, 1.0)
        scaled = (images - low).div_(high - low)
        seeds = (grain_keys(parameters[:, 0]) >> np.uint64(33)).tolist()
        with _generators_put_back(images.device):
            made = [self._changed(image, seed) for image, seed in zip(scaled, seeds, strict=True)]
        return torch.stack(made).clamp_(0, 1).mul_(high - low).add_(low)

    def _changed(self, image: Tensor, seed: int) -> Tensor:
        given = _given(image, self.images)
        if self.seeded == "argument":
            result = self._function(given, seed=seed)
        else:
            _seed(seed)
            result = self._function(given)
        made = _taken(result, self.images, image)
        if made.shape != image.shape:
            raise DataError(
                f"{self.call} made an image of shape {tuple(made.shape)} of one of shape {tuple(image.shape)}: it must "
                f"give what it takes, here {self.images!r}, of the same size"
            )
        if not made.isfinite().all():
            raise DataError(f"{self.call} made an image with NaN or infinity")
        return made

    def __canonical__(self) -> dict[str, Any]:
        """As a Finding records it; with the function's code, so that one whose code changed is not taken for it."""
        code = digest([class_code(type(self)), canonical(self._function)])
        named = self.call if isinstance(self.call, str) else canonical(self._function)
        return {"is": canonical(type(self)), "code": code, "call": named, "images": self.images, "seeded": self.seeded}


def _found(reference: str) -> Any:
    """What "module:name" means."""
    module, _, name = reference.partition(":")
    try:
        return reduce(getattr, name.split("."), import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"call of ByFunction is {reference!r}: {error}; expected module:name of a function"
        ) from error


def _given(image: Tensor, images: Images) -> Any:
    if images == "tensor":
        return image.clone()
    array = image.permute(1, 2, 0).cpu().numpy()
    return np.ascontiguousarray(array if images == "array" else np.round(array * 255).astype(np.uint8))


def _taken(result: Any, images: Images, like: Tensor) -> Tensor:
    if images == "tensor":
        if not isinstance(result, Tensor):
            raise DataError(f"the function gave a {type(result).__name__}, expected a tensor: see images of ByFunction")
        return (result[0] if result.ndim == like.ndim + 1 and len(result) == 1 else result).detach().to(like)
    array = np.asarray(result)
    if array.ndim == like.ndim - 1:
        array = array[..., None]
    made = torch.from_numpy(np.ascontiguousarray(array)).to(like)
    return (made / 255 if images == "bytes" else made).movedim(-1, 0)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@contextmanager
def _generators_put_back(device: torch.device) -> Iterator[None]:
    """The generators of the process as they were, also after an error."""
    plain, numpys = random.getstate(), np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            random.setstate(plain)
            np.random.set_state(numpys)
