"""Brightness, contrast, noise and blur: against numpy, scipy and by hand."""

import numpy as np
import pytest
import torch
from scipy import ndimage, stats

from weakspot.core.errors import ConfigError
from weakspot.looks import Blur, Brightness, Contrast, Fog, Jpeg, Neighbour, Noise, Rain, Rotate

IDS = [f"s{i}" for i in range(6)]
PLAIN = [Brightness(), Contrast(), Noise(), Blur()]
ALL = [*PLAIN, Jpeg(), Rain(), Rain(1), Fog(), Brightness() & Rotate(9) & Noise() & Blur()]


def rows(*numbers):
    return torch.tensor(numbers, dtype=torch.float64).reshape(len(numbers), -1)


@pytest.fixture
def images():
    return torch.rand(6, 3, 20, 28, generator=torch.Generator().manual_seed(0))


def test_brightness_by_hand():
    image = torch.tensor([[[[0.0, 0.5, 0.9]]], [[[0.0, 0.5, 0.9]]]])
    made = Brightness(1).apply(image, rows(0.2, -0.6), (0, 1))
    torch.testing.assert_close(made.flatten(1), torch.tensor([[0.2, 0.7, 1.0], [0.0, 0.0, 0.3]]))


def test_contrast_by_hand():
    image = torch.tensor([[[[0.2, 0.4]], [[0.6, 0.8]]]])  # two channels, mean 0.5
    for factor, expected in ((0.5, [0.35, 0.45, 0.55, 0.65]), (0.0, [0.5] * 4), (2.0, [0.0, 0.3, 0.7, 1.0])):
        made = Contrast((0, 3)).apply(image, rows(factor), (0, 1))
        torch.testing.assert_close(made.flatten(), torch.tensor(expected))


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.3])
def test_blur_agrees_with_scipy(images, sigma):
    made = Blur(2.5).apply(images.double(), rows(*[sigma] * 6), (0, 1))
    exact = ndimage.gaussian_filter(images.double().numpy(), (0, 0, sigma, sigma), mode="nearest", radius=10)
    np.testing.assert_allclose(made.numpy(), exact, atol=1e-9)


def test_noise_is_normal_and_its_own_for_every_pixel_and_sample():
    grey = torch.full((40, 3, 30, 31), 0.5)
    drawn = Neighbour(Noise((0.05, 0.05)), bounds=(0, 1)).images(grey, [f"s{i}" for i in range(40)], 1)
    z = ((drawn - grey) / 0.05).numpy()
    assert stats.kstest(z.ravel(), "norm").pvalue > 0.001
    flat = z.reshape(40, -1)
    assert np.abs(np.corrcoef(flat) - np.eye(40)).max() < 0.1  # between samples
    assert (
        np.abs(np.corrcoef(flat[:, : flat.shape[1] // 2].ravel(), flat[:, flat.shape[1] // 2 :].ravel())[0, 1]) < 0.01
    )
    for shift in (1, 31):
        assert abs(np.corrcoef(flat[:, shift:].ravel(), flat[:, :-shift].ravel())[0, 1]) < 0.01


def test_noise_of_an_odd_number_of_values():
    drawn = Noise().apply(torch.full((2, 1, 3, 3), 0.5), rows([0.1, 0.3], [0.1, 0.7]), (0, 1))
    assert drawn.unique().numel() == 18


NEUTRAL = [(Brightness(), [0.0]), (Contrast(), [1.0]), (Noise(), [0.0, 0.3]), (Blur(), [0.0]), (Fog(1), [0.0, 0.4]),
           (Rain(1), [0.0, 5.0, 0.2])]  # fmt: skip


@pytest.mark.parametrize(("made", "numbers"), NEUTRAL, ids=str)
@pytest.mark.parametrize("bounds", [(0, 1), (0, 255), (-1, 1)])
def test_neutral_parameters_change_nothing(images, made, numbers, bounds):
    low, high = bounds
    inputs = low + images * (high - low)
    before = inputs.clone()
    changed = made.apply(inputs, rows(*[numbers] * 6), bounds)
    torch.testing.assert_close(changed, before, rtol=0, atol=1e-6 * (high - low))
    assert torch.equal(inputs, before)


@pytest.mark.parametrize("made", ALL, ids=str)
def test_units_do_not_matter_and_bounds_are_kept(images, made):
    unit = Neighbour(made, bounds=(0, 1)).images(images, IDS, 3)
    before = images.clone()
    for low, high in ((0, 255), (-1, 1), (-2.5, 0.5)):
        other = Neighbour(made, bounds=(low, high)).images(low + images * (high - low), IDS, 3)
        assert other.min() >= low
        assert other.max() <= high
        back = (other - low) / (high - low)
        differing = (back - unit).abs() > 1e-5
        assert differing.float().mean() < (0.02 if "Jpeg" in str(made) else 1e-9)  # which rounds
    assert torch.equal(images, before)
    assert unit.min() >= 0
    assert unit.max() <= 1
    assert (unit - images).abs().mean() > 0.001


@pytest.mark.parametrize("made", ALL, ids=str)
def test_neither_the_batch_nor_its_order_matters(images, made):
    look = Neighbour(made, bounds=(0, 1))
    together = look.images(images, IDS, 2)
    for some in ([4], [5, 0, 2], [3, 2, 1, 0, 4, 5]):
        part = look.images(images[some], [IDS[i] for i in some], 2)
        torch.testing.assert_close(part, together[some], rtol=0, atol=1e-6)
    again = look.images(images, IDS, 2)
    assert torch.equal(again, together)
    for other in (look.images(images, IDS, 3), Neighbour(made, 1, (0, 1)).images(images, IDS, 2)):
        assert (other - together).abs().flatten(1).amax(1).gt(1e-4).sum() >= 5  # now and then two qualities are equal


@pytest.mark.parametrize("made", ALL, ids=str)
@pytest.mark.parametrize(("channels", "height", "width"), [(1, 28, 28), (3, 9, 33), (1, 1, 1), (3, 5, 2)])
def test_any_size_grey_and_colour(made, channels, height, width):
    inputs = torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    changed = Neighbour(made, bounds=(0, 1)).images(inputs, ["a", "b"], 1)
    assert changed.shape == inputs.shape
    assert torch.isfinite(changed).all()
    assert Neighbour(made, bounds=(0, 1)).images(inputs[:0], [], 1).shape == (0, channels, height, width)


@pytest.mark.parametrize("made", ALL, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.uint8])
def test_types_stay(images, made, dtype):
    bounds = (0, 255) if dtype == torch.uint8 else (0, 1)
    exact = Neighbour(made, bounds=bounds)
    inputs = (images * bounds[1]).to(dtype)
    changed = exact.images(inputs, IDS, 1)
    assert changed.dtype == dtype
    wide = exact.images(inputs.float(), IDS, 1)
    apart = (changed.float() - wide).abs()
    close = apart <= (0.5 if dtype == torch.uint8 else 4e-3)
    assert close.all() or ("Jpeg" in str(made) and close.float().mean() > 0.99)  # what is rounded may flip


@pytest.mark.parametrize("made", [*PLAIN, Jpeg(), Rain(), Fog(), Rotate(1) & Fog(), Rotate(1) | Fog()], ids=str)
def test_without_bounds_there_is_no_black_and_white(made):
    with pytest.raises(
        ConfigError, match=r"must know the smallest and largest value.*give the subject bounds, such as"
    ):
        Neighbour(made).within(None)
    assert Neighbour(made).within((0, 1)).bounds == (0, 1)
    Neighbour(Rotate(1)).within(None)
