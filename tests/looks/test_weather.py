"""Rain and fog: against slow references, and whether they do what rain and fog do at any size."""

import numpy as np
import pytest
import torch

from tests.references import weather as slow
from weakspot.core.errors import ConfigError
from weakspot.core.stateless_random import unit_pairs
from weakspot.looks import Fog, Neighbour, Rain
from weakspot.looks.values import grain_keys
from weakspot.looks.weather import fog_density, spread, streak_pixels, window_sums

CPU = torch.device("cpu")
SIZES = [(28, 28), (32, 32), (120, 240), (224, 224), (480, 640), (2160, 3840)]


def rows(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def smooth(height, width):
    """A picture without edges: a slope in grey."""
    return torch.linspace(0.2, 0.6, width).expand(1, 1, height, width).contiguous()


@pytest.mark.parametrize(("size", "length", "thick"), [((24, 40), 6, 1), ((130, 250), 10, 1), ((1000, 1300), 62, 2)])
def test_streaks_lie_where_the_reference_draws_them(size, length, thick):
    height, width = size
    parameters = rows([1.0, 11.0, 0.3])
    drops = int(np.ceil(0.05 * height * width / (length * thick) - 1e-6))
    x, y = unit_pairs(grain_keys(parameters[:, 2]), drops, CPU)
    expected = slow.streak_mask(height, width, zip(x[0].tolist(), y[0].tolist(), strict=True), length, thick, 11.0)
    pixels = streak_pixels(parameters, 1.0, height, width, CPU)
    mask = np.zeros(height * width + 1, dtype=bool)
    mask[pixels[0].numpy()] = True
    assert (mask[:-1].reshape(size) != expected).mean() < 2e-4  # single precision may round to the next column


def test_rain_is_the_mean_of_the_image_with_streaks_and_darker():
    image = torch.rand(1, 1, 150, 170, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parameters = rows([1.0, -7.0, 0.6])
    made = Rain().apply(image, parameters, (0, 1))
    wet = image[0, 0].numpy().copy().ravel()
    wet[streak_pixels(parameters, 1.0, 150, 170, CPU)[0].numpy()] = 200 / 255
    expected = 0.7 * slow.window_mean(wet.reshape(150, 170), 1)
    np.testing.assert_allclose(made[0, 0].numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 8])
def test_blur_by_doubling_is_the_plain_mean(radius):
    image = np.random.default_rng(0).random((9, 21))
    framed = torch.from_numpy(np.pad(image, radius, mode="edge"))
    sums = window_sums(window_sums(framed, radius, 0), radius, 1)
    weight = window_sums(torch.ones(2 * radius + 1), radius, 0).item() ** 2
    np.testing.assert_allclose(sums.numpy() / weight, slow.window_mean(image, radius))


def test_heavy_rain_is_the_same_whether_less_could_have_fallen():
    image, parameters = smooth(160, 320), rows([1.0, 5.0, 0.3])
    heavy, lighter = (Rain(amount).apply(image, parameters, (0, 1)) for amount in ((1, 1), (0, 1)))
    np.testing.assert_allclose(heavy.numpy(), lighter.numpy(), atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_heavy_rain_covers_a_twentieth_and_darkens_at_any_size(size):
    image = smooth(*size)
    look = Neighbour(Rain(), bounds=(0, 1))
    pixels = streak_pixels(look.drawn(["a"], 1), 1.0, *size, CPU)
    assert 0.03 < pixels.unique().numel() / image.numel() < 0.08
    made = look.images(image, ["a"], 1)
    brighter = made > 0.7 * image + 0.01
    assert 0.02 < brighter.float().mean() < 0.4
    torch.testing.assert_close(made[~brighter], (0.7 * image)[~brighter], rtol=0, atol=0.011)


@pytest.mark.parametrize("size", [(120, 240), (480, 640)])
def test_streaks_are_nearly_upright(size):
    """What rain adds changes much faster along rows than along columns."""
    made = Neighbour(Rain(), bounds=(0, 1)).images(smooth(*size).expand(8, -1, -1, -1), [*"abcdefgh"], 1)
    along, down = made.diff(dim=3).abs().mean(), made.diff(dim=2).abs().mean()
    assert along > 2.5 * down


def test_less_rain_has_fewer_streaks_and_changes_less():
    image = torch.rand(1, 3, 120, 240, generator=torch.Generator().manual_seed(0))
    streaks, changes = [], []
    for amount in (0.0, 0.25, 0.5, 1.0, 2.0):
        parameters = rows([amount, 3.0, 0.5])
        pixels = streak_pixels(parameters, 2.0, 120, 240, CPU)
        streaks.append(pixels[pixels < 120 * 240].unique().numel())
        changes.append(float((Rain(2).apply(image, parameters, (0, 1)) - image).abs().mean()))
    assert streaks[0] == 0
    assert streaks == sorted(streaks)
    assert streaks[3] == pytest.approx(4 * streaks[1], rel=0.1)
    assert changes[0] == 0
    assert changes[:4] == sorted(changes[:4])


def test_what_rain_a_sample_gets_does_not_depend_on_the_range_asked_for():
    image = torch.rand(1, 3, 60, 80, generator=torch.Generator().manual_seed(0))
    parameters = rows([1.0, 3.0, 0.5])
    torch.testing.assert_close(Rain().apply(image, parameters, (0, 1)), Rain(3).apply(image, parameters, (0, 1)))


def test_surfaces_are_the_references():
    lattice = np.random.default_rng(0).random((5, 5))
    made = spread(torch.from_numpy(lattice)[None], 12, 17)[0].numpy()
    np.testing.assert_allclose(made, slow.surface(lattice, 12, 17), atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_fog_lifts_every_pixel_towards_white_and_most_in_the_middle(size):
    ids = [f"s{i}" for i in range(2 if size[0] > 1000 else 40)]
    image = smooth(*size).expand(len(ids), -1, -1, -1)
    made = Neighbour(Fog((0.8, 0.8)), bounds=(0, 1)).images(image, ids, 1)
    density = (made - image) / (1 - image)
    assert density.min() > 0.01
    assert density.max() < 0.98
    if len(ids) > 2:
        height = size[0]
        mean = density.mean((0, 1))
        band = mean[height * 2 // 5 : height * 3 // 5]
        assert band.mean() > 1.15 * torch.cat([mean[: height // 6], mean[-height // 6 :]]).mean()


def test_fog_is_smooth_and_different_for_every_sample():
    look = Neighbour(Fog((0.8, 0.8)), bounds=(0, 1))
    made = look.images(torch.zeros(2, 1, 480, 640), ["a", "b"], 1)
    assert made.diff(dim=2).abs().max() < 0.02
    assert made.diff(dim=3).abs().max() < 0.02
    assert made.flatten(1).std(1).min() > 0.03  # drifting, not a grey veil
    assert torch.corrcoef(made.flatten(1))[0, 1] < 0.95


def test_thicker_fog_hides_more_by_the_law():
    """1 − exp(−thickness² · depth), with the same depth wherever the grain is the same."""
    like = torch.zeros((), dtype=torch.float64)
    thin, thick = fog_density(rows([0.4, 0.3], [1.0, 0.3]), like)
    np.testing.assert_allclose(np.log1p(-thin.numpy()) / 0.16, np.log1p(-thick.numpy()), rtol=1e-9)
    assert 0.5 < thick.mean() < 0.85


def test_drawn_weather_has_units_and_stays_in_its_range():
    rain = Neighbour(Rain((0.5, 2))).drawn([f"s{i}" for i in range(2000)], 1)
    fog = Neighbour(Fog()).drawn([f"s{i}" for i in range(2000)], 1)
    for column, low, high in ((rain[:, 0], 0.5, 2), (rain[:, 1], -18, 18), (rain[:, 2], 0, 1), (fog[:, 0], 0.3, 1)):
        assert low <= column.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < column.max() <= high
    assert [quantity.unit for quantity in Rain().quantities] == ["times heavy rain", "degrees", "of 1"]
    with pytest.raises(ConfigError, match="thickness of Fog is 2, that is from 0 to 2: expected 0 to 1"):
        Fog(2)
