"""Scenarios that were added later: three that settings were settled on as well, and three kept aside from then on.

Of those kept aside only the error rates of the networks were looked at before judging, so that the changes do cause
errors.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from further_images import barred, dazzled, foggy, green, moved, near, shaded, squeezed, streaked
from images import SIGNS, TEST, TRAINING, digits, drawn, noted, signs
from planted import Planted

Kinds = Mapping[str, np.ndarray]


def _kinds(rng: np.random.Generator, *names: str) -> Kinds:
    """Which test images have each of these causes, 8 % each."""
    kind = rng.choice(len(names) + 1, TEST, p=[1 - 0.08 * len(names), *[0.08] * len(names)])
    return {name: kind == number for number, name in enumerate(names, start=1)}


def fog_and_near(seed: int) -> Planted:
    """House numbers in fog and from near, not noted."""
    training, (images, labels), rng = drawn(digits(), seed)
    kinds = _kinds(rng, "fog", "near")
    images = near(foggy(images, kinds["fog"]), kinds["near"])
    naming = {"fog": ("brightness", "contrast", "saturation"), "near": ()}
    return Planted(training, (images, labels), noted(rng, TEST), kinds, naming, 10)


def moved_and_shaded(seed: int) -> Planted:
    """Signs that are not in the middle, not noted, and signs half in shadow, noted."""
    training, (images, labels), rng = drawn(signs(), seed)
    kinds = _kinds(rng, "moved", "shaded")
    images = shaded(moved(images, kinds["moved"], rng), kinds["shaded"])
    metadata = {**noted(rng, TEST), "trees": np.where(kinds["shaded"], "yes", "no").tolist()}
    naming = {"moved": (), "shaded": ("trees", "contrast")}
    return Planted(training, (images, labels), metadata, kinds, naming, len(SIGNS))


def green_light(seed: int) -> Planted:
    """Signs in green light, not noted."""
    training, (images, labels), rng = drawn(signs(), seed)
    kinds = _kinds(rng, "green")
    shown = green(images, kinds["green"]), labels
    return Planted(training, shown, noted(rng, TEST), kinds, {"green": ("hue", "saturation")}, len(SIGNS))


def squeezed_and_streaked(seed: int) -> Planted:
    """Signs seen from the side, and signs behind rain; the rain is noted. Kept aside."""
    training, (images, labels), rng = drawn(signs(), seed)
    kinds = _kinds(rng, "squeezed", "streaked")
    images = streaked(squeezed(images, kinds["squeezed"]), kinds["streaked"], rng)
    wiper = np.where(kinds["streaked"], "on", rng.choice(["on", "off"], TEST, p=[0.05, 0.95]))
    naming = {"squeezed": (), "streaked": ("wiper", "noise", "sharpness")}
    metadata = {**noted(rng, TEST), "wiper": wiper.tolist()}
    return Planted(training, (images, labels), metadata, kinds, naming, len(SIGNS))


def pole_and_glare(seed: int) -> Planted:
    """House numbers behind a pole, and in glare; nothing of it is noted. Kept aside."""
    training, (images, labels), rng = drawn(digits(), seed)
    kinds = _kinds(rng, "pole", "glare")
    images = dazzled(barred(images, kinds["pole"], rng), kinds["glare"], rng)
    naming = {"pole": (), "glare": ("brightness", "contrast", "saturation")}
    return Planted(training, (images, labels), noted(rng, TEST), kinds, naming, 10)


def tint(seed: int) -> Planted:
    """A blue tint that goes with one sign in training, and is on 8 % of the test images; not noted. Kept aside."""
    (images, labels), (test, truth), rng = drawn(signs(), seed)
    blue = torch.tensor([0.25, 0.5, 1.0])[:, None, None]
    shown = (labels == SIGNS.index(10)) & torch.from_numpy(rng.random(TRAINING) < 0.9)
    kinds = _kinds(rng, "tinted")
    training = torch.where(shown[:, None, None, None], images * blue, images), labels
    test = torch.where(torch.from_numpy(kinds["tinted"])[:, None, None, None], test * blue, test)
    return Planted(training, (test, truth), noted(rng, TEST), kinds, {"tinted": ("hue", "saturation")}, len(SIGNS))


SETTLED_LATER: Mapping[str, Callable[[int], Planted]] = {
    "fog and near": fog_and_near,
    "moved and shaded": moved_and_shaded,
    "green light": green_light,
}
ASIDE_LATER: Mapping[str, Callable[[int], Planted]] = {
    "squeezed and streaked": squeezed_and_streaked,
    "pole and glare": pole_and_glare,
    "tint": tint,
}
