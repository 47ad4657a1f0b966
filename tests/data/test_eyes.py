"""The eye simulator: what is drawn follows from the parameters, and nothing else."""

import numpy as np
import pytest
import torch

from weakspot.core.errors import ConfigError
from weakspot.data.eyes import CLASSES, EyeRanges, Eyes, eye_parameters, eye_targets, images_of

SIZE = (48, 80)


def eye(**given: float) -> dict[str, np.ndarray]:
    usual = {
        "gaze_angle": 0.0, "gaze_strength": 0.0, "opening": 0.9, "iris": 0.4, "pupil": 0.4, "iris_colour": 0.0,
        "skin": 0.2, "light": 1.0, "light_angle": 90.0, "roll": 0.0, "reflection": 0.0, "blur": 0.3, "glasses": 0.0,
    }  # fmt: skip
    return {name: np.array([value]) for name, value in {**usual, **given}.items()}


def drawn(**given: float) -> torch.Tensor:
    return images_of(eye(**given), ["one"], size=SIZE)[0]


def pupil_place(image: torch.Tensor) -> tuple[float, float]:
    """The mean place of the darkest pixels near the eye's middle, in pixels right and down of the centre."""
    dark = image.sum(0)[8:44, 16:64] < 0.25
    rows, columns = np.nonzero(dark.numpy())
    return float(columns.mean() + 16 - 39.5), float(rows.mean() + 8 - 23.5)


@pytest.mark.parametrize(("angle", "right", "down"), [(0, 1, 0), (90, 0, -1), (180, -1, 0), (270, 0, 1)])
def test_the_pupil_goes_where_the_eye_looks(angle, right, down):
    ahead = pupil_place(drawn())
    turned = pupil_place(drawn(gaze_angle=angle, gaze_strength=15))
    moved = np.subtract(turned, ahead)
    assert moved[0] * right > 3 if right else abs(moved[0]) < 2
    assert moved[1] * down > 1 if down else abs(moved[1]) < 2


def test_a_closed_eye_shows_no_pupil_and_an_open_one_does():
    closed, opened = (drawn(opening=value).sum(0) for value in (0.0, 0.9))
    assert (opened[20:30, 30:50] < 0.25).sum() > 20
    assert (closed[15:22, 30:50] < 0.25).sum() == 0


def test_glasses_add_a_dark_rim():
    assert (drawn(glasses=1).sum(0) < 0.4).sum() > (drawn().sum(0) < 0.4).sum() + 100


def test_light_and_blur_do_what_they_say():
    assert drawn(light=0.5).mean() < 0.6 * drawn(light=1.0).mean()
    sharp, soft = ((drawn(blur=value)[:, :, 1:] - drawn(blur=value)[:, :, :-1]).abs().mean() for value in (0.2, 2.0))
    assert soft < 0.7 * sharp


def test_values_keep_to_their_bounds_at_the_ends_of_every_range():
    wide = EyeRanges(light=(0.0, 3.0), blur=(0.0, 4.0), opening=(0.0, 1.0), reflection=(0.0, 1.0), glasses=1.0)
    images = Eyes(40, ranges=wide).read(np.arange(40)).inputs
    assert images.shape == (40, 3, *SIZE)
    assert images.dtype == torch.float32
    assert images.isfinite().all()
    assert 0 <= images.min() <= images.max() <= 1


def test_an_eye_depends_on_its_id_alone():
    source = Eyes(30)
    whole, part = source.read(np.arange(30)), source.read(np.array([17, 3]))
    torch.testing.assert_close(part.inputs, whole.inputs[[17, 3]], rtol=0, atol=1e-6)
    assert all((part.metadata[name] == whole.metadata[name][[17, 3]]).all() for name in whole.metadata)
    assert Eyes(30).fingerprint() == source.fingerprint() != Eyes(30, seed=1).fingerprint()
    assert not torch.equal(Eyes(30, seed=1).read(np.arange(2)).inputs, whole.inputs[:2])


def test_parameters_fill_their_ranges_evenly():
    found = eye_parameters([str(i) for i in range(4000)], EyeRanges(closed=0.25), seed=3)
    assert np.histogram(found["gaze_angle"], 8, (0, 360))[0].min() > 400
    assert 0.22 < (found["opening"] < 0.2).mean() < 0.28
    assert 0.27 < found["glasses"].mean() < 0.33
    opened = found["opening"][found["opening"] >= 0.2]
    assert 0.45 <= opened.min() < 0.47
    assert 0.98 < opened.max() <= 1


@pytest.mark.parametrize("task", CLASSES)
def test_every_class_of_every_task_occurs(task):
    batch = Eyes(200, task=task, ranges=EyeRanges(closed=0.5)).read(np.arange(200))
    assert sorted(set(batch.targets.tolist())) == list(range(len(CLASSES[task])))


def test_the_border_between_two_gazes_lies_halfway():
    angles = np.array([22.4, 22.6, 67.4, 67.6, 337.6, 337.4])
    assert eye_targets({"gaze_angle": angles}, "gaze").tolist() == [0, 1, 1, 2, 0, 7]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Eyes(10, task="smile"), "no task 'smile': choose from gaze, drowsiness, glasses"),
        (lambda: Eyes(0), "expected 1 eye or more"),
        (lambda: Eyes(1, size=(8, 80)), "16 × 16 pixels or more"),
        (lambda: EyeRanges(blur=(2.0, 1.0)), r"blur is \(2.0, 1.0\): expected \(smallest, largest\)"),
        (lambda: EyeRanges(glasses=1.5), "glasses is 1.5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
