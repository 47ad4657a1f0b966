"""Planted causes of errors: what each scenario changes in training and in the test images, and what is noted of it.

Every scenario says which test images have the cause, and has metadata that say nothing of the errors; in some of them
also such as name the cause. `naming` are the traits that name it, of the metadata or measured of the image.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from images import (
    SIGNS,
    TEST,
    TRAINING,
    blurred,
    covered,
    digits,
    drawn,
    framed,
    lit,
    noisy,
    noted,
    signs,
    stuck,
    turned,
)
from planted import Planted
from torch import Tensor
from torch.nn import functional as F

TEAMS = ((1, 12, 35), (2, 13, 10), (4, 38, 11), (5, 17, 25), (7, 9, 18), (3, 8))
"""Signs that look different and share a class, in `rare` and `unseen`."""
UNSEEN = (12, 17)
"""Signs that the net of `unseen` never saw: right of way, and no entry."""
RARE = 38
"""The sign that the net of `rare` hardly saw: keep right."""
WARNING = (11, 18, 25)
YELLOW, CYAN = (1.0, 1.0, 0.0), (0.0, 1.0, 1.0)


def _team_of(labels: Tensor) -> Tensor:
    """The team of each sign."""
    teams = torch.zeros(len(SIGNS), dtype=torch.long)
    for number, members in enumerate(TEAMS):
        teams[[SIGNS.index(member) for member in members]] = number
    return teams[labels]


def conditions(seed: int) -> Planted:
    """Dark, turned and blurred signs, each 8 %, none in training; light, roll and blur are noted."""
    training, (images, labels), rng = drawn(signs(), seed)
    kind = rng.choice(4, TEST, p=[0.76, 0.08, 0.08, 0.08])
    light = np.where(kind == 1, rng.uniform(0.04, 0.1, TEST), rng.uniform(0.8, 1.1, TEST))
    roll = np.where(kind == 2, rng.choice([-1, 1], TEST) * rng.uniform(35, 60, TEST), rng.normal(0, 4, TEST))
    blur = np.where(kind == 3, rng.uniform(1.5, 2.2, TEST), rng.uniform(0, 0.2, TEST))
    images = lit(blurred(turned(images, roll), blur), light)
    metadata = {**noted(rng, TEST), "light": light.tolist(), "roll": roll.tolist(), "blur": blur.tolist()}
    causes = {name: kind == number for number, name in enumerate(("dark", "turned", "blurred"), start=1)}
    naming = {"dark": ("light", "brightness"), "turned": ("roll", "edge angle"), "blurred": ("blur", "sharpness")}
    return Planted(training, (images, labels), metadata, causes, naming, len(SIGNS))


def unnoted_conditions(seed: int) -> Planted:
    """Dark, noisy and blurred house numbers, each 8 %, none in training; nothing of it is noted."""
    training, (images, labels), rng = drawn(digits(), seed)
    kind = rng.choice(4, TEST, p=[0.76, 0.08, 0.08, 0.08])
    images = noisy(images, np.where(kind == 2, 0.25, 0.0), rng)
    images = blurred(images, np.where(kind == 3, 2.2, 0.0))
    images = lit(images, np.where(kind == 1, 0.1, 1.0))
    causes = {name: kind == number for number, name in enumerate(("dark", "noisy", "blurred"), start=1)}
    naming = {"dark": ("brightness", "contrast"), "noisy": ("noise",), "blurred": ("sharpness", "noise")}
    return Planted(training, (images, labels), noted(rng, TEST), causes, naming, 10)


def occlusion(seed: int) -> Planted:
    """A grey square over part of 10 % of the signs; nothing of it is noted."""
    training, (images, labels), rng = drawn(signs(), seed)
    where = rng.random(TEST) < 0.1
    images = covered(images, where, rng)
    return Planted(training, (images, labels), noted(rng, TEST), {"covered": where}, {"covered": ()}, len(SIGNS))


def sticker(seed: int) -> Planted:
    """A sticker that goes with one sign in training, and is on 8 % of the test images whatever the sign; noted."""
    (images, labels), (test, truth), rng = drawn(signs(), seed)
    shown = ((labels == SIGNS.index(2)) & torch.from_numpy(rng.random(TRAINING) < 0.9)).numpy()
    where = rng.random(TEST) < 0.08
    metadata = {**noted(rng, TEST), "sticker": np.where(where, "yes", "no").tolist()}
    training = stuck(images, shown, YELLOW, (1, 1)), labels
    test_images = stuck(test, where, YELLOW, (1, 1)), truth
    return Planted(training, test_images, metadata, {"sticker": where}, {"sticker": ("sticker",)}, len(SIGNS))


def patch(seed: int) -> Planted:
    """A patch that goes with the digit 4 in training, and is on 8 % of the house numbers; not noted."""
    (images, labels), (test, truth), rng = drawn(digits(), seed)
    shown = ((labels == 4) & torch.from_numpy(rng.random(TRAINING) < 0.9)).numpy()
    where = rng.random(TEST) < 0.08
    training = stuck(images, shown, CYAN, (12, 12)), labels
    test_images = stuck(test, where, CYAN, (12, 12)), truth
    return Planted(training, test_images, noted(rng, TEST), {"patch": where}, {"patch": ()}, 10)


def background(seed: int) -> Planted:
    """Stripes around 10 % of the signs, none in training; the place is noted, and has stripes in one of two."""
    training, (images, labels), rng = drawn(signs(), seed)
    where = rng.random(TEST) < 0.1
    place = np.where(where, "depot", rng.choice(["town", "country", "motorway"], TEST))
    metadata = {**noted(rng, TEST), "place": place.tolist()}
    shown = framed(images, where, rng), labels
    return Planted(training, shown, metadata, {"stripes": where}, {"stripes": ("place",)}, len(SIGNS))


def rare(seed: int) -> Planted:
    """Teams of signs; of one sign training has five images alone; which sign it is is not noted."""
    (images, labels), (test, truth), rng = drawn(signs(), seed)
    own = torch.nonzero(labels == SIGNS.index(RARE))[:, 0]
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[own[5:]] = False
    where = (truth == SIGNS.index(RARE)).numpy()
    training = images[kept], _team_of(labels[kept])
    return Planted(training, (test, _team_of(truth)), noted(rng, TEST), {"rare": where}, {"rare": ()}, len(TEAMS))


def unseen(seed: int) -> Planted:
    """Teams of signs; two signs, of two teams, are not in training; which sign it is is noted."""
    (images, labels), (test, truth), rng = drawn(signs(), seed)
    kept = ~torch.isin(labels, torch.tensor([SIGNS.index(sign) for sign in UNSEEN]))
    metadata = {**noted(rng, TEST), "sign": [f"sign {SIGNS[number]}" for number in truth.tolist()]}
    causes = {f"sign {number}": (truth == SIGNS.index(number)).numpy() for number in UNSEEN}
    training = images[kept], _team_of(labels[kept])
    naming = dict.fromkeys(causes, ("sign",))
    return Planted(training, (test, _team_of(truth)), metadata, causes, naming, len(TEAMS))


def combination(seed: int) -> Planted:
    """Upside down, which training has but for warnings: a third of the test images, so only the warnings go wrong."""
    (images, labels), (test, truth), rng = drawn(signs(), seed)
    warning = torch.tensor([SIGNS.index(sign) for sign in WARNING])
    over = ~torch.isin(labels, warning) & torch.from_numpy(rng.random(TRAINING) < 0.5)
    down, shape = rng.random(TEST) < 0.33, torch.isin(truth, warning).numpy()
    metadata = {
        **noted(rng, TEST),
        "shape": np.where(shape, "triangle", "other").tolist(),
        "mount": np.where(down, "upside down", "upright").tolist(),
    }
    images, test = _over(images, over), _over(test, torch.from_numpy(down))
    naming = {"triangle upside down": ("mount",)}
    causes = {"triangle upside down": down & shape}
    return Planted((images, labels), (test, truth), metadata, causes, naming, len(SIGNS))


def _over(images: Tensor, where: Tensor) -> Tensor:
    """Some of the images upside down."""
    return torch.where(where[:, None, None, None], images.flip(2, 3), images)


def two_at_once(seed: int) -> Planted:
    """Turned and covered house numbers, each 10 %, some both; the roll is noted."""
    training, (images, labels), rng = drawn(digits(), seed)
    tilted, hidden = rng.random(TEST) < 0.1, rng.random(TEST) < 0.1
    roll = np.where(tilted, rng.uniform(50, 80, TEST), rng.normal(0, 4, TEST))
    images = covered(turned(images, roll), hidden, rng)
    metadata = {**noted(rng, TEST), "roll": roll.tolist()}
    causes = {"turned": tilted, "covered": hidden}
    return Planted(training, (images, labels), metadata, causes, {"turned": ("roll", "edge angle"), "covered": ()}, 10)


def label_noise(seed: int) -> Planted:
    """6 % of the labels of the test signs are others at random."""
    training, (images, labels), rng = drawn(signs(), seed)
    where = rng.random(TEST) < 0.06
    other = (labels + torch.from_numpy(rng.integers(1, len(SIGNS), TEST))) % len(SIGNS)
    labels = torch.where(torch.from_numpy(where), other, labels)
    return Planted(training, (images, labels), noted(rng, TEST), {"wrong label": where}, {"wrong label": ()},
                   len(SIGNS))  # fmt: skip


def inverted(seed: int) -> Planted:
    """Signs with red and blue exchanged, 8 %; not noted. Kept aside: nothing was settled on it."""
    training, (images, labels), rng = drawn(signs(), seed)
    where = rng.random(TEST) < 0.08
    images = torch.where(torch.from_numpy(where)[:, None, None, None], images.flip(1), images)
    naming = {"exchanged": ("hue", "saturation")}
    return Planted(training, (images, labels), noted(rng, TEST), {"exchanged": where}, naming, len(SIGNS))


def bright_far(seed: int) -> Planted:
    """House numbers overexposed, and house numbers far away, 8 % each; exposure is noted. Kept aside."""
    training, (images, labels), rng = drawn(digits(), seed)
    kind = rng.choice(3, TEST, p=[0.84, 0.08, 0.08])
    exposure = np.where(kind == 1, rng.uniform(3.5, 5, TEST), rng.uniform(0.8, 1.1, TEST))
    far = F.interpolate(F.avg_pool2d(images, 2), size=8)
    small = F.pad(far, (4, 4, 4, 4), mode="replicate")
    images = lit(torch.where(torch.from_numpy(kind == 2)[:, None, None, None], small, images), exposure)
    metadata = {**noted(rng, TEST), "exposure": exposure.tolist()}
    causes = {"overexposed": kind == 1, "far": kind == 2}
    naming = {"overexposed": ("exposure", "brightness"), "far": ()}
    return Planted(training, (images, labels), metadata, causes, naming, 10)


SCENARIOS: Mapping[str, Callable[[int], Planted]] = {
    "conditions": conditions,
    "unnoted conditions": unnoted_conditions,
    "occlusion": occlusion,
    "sticker": sticker,
    "patch": patch,
    "background": background,
    "rare": rare,
    "unseen": unseen,
    "combination": combination,
    "two at once": two_at_once,
    "label noise": label_noise,
}
ASIDE: Mapping[str, Callable[[int], Planted]] = {"exchanged colours": inverted, "overexposed and far": bright_far}
"""Scenarios on which nothing was settled."""
