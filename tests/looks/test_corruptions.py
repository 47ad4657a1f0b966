"""Common corruptions: each against a slow reference; determinism, batches, sizes, ranges, and no global chance."""

import io
import random

import numpy as np
import pytest
import torch
from PIL import Image

from tests.references import corruptions as slow
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.stateless_random import draw_words, further_keys, standard_normal, uniform, unit_pairs
from weakspot.looks import Corruption, Neighbour, variation
from weakspot.looks import corruption_weather as weather
from weakspot.looks.corruption_blur import disc
from weakspot.looks.corruption_severities import FAMILIES, KINDS, LARGE, SMALL_IMAGES, strength
from weakspot.looks.values import grain_keys

CPU = torch.device("cpu")
GRAIN = 0.37
KEYS = grain_keys(torch.tensor([GRAIN], dtype=torch.float64))


def picture(height=31, width=36, channels=3):
    """A smooth image with an edge and a bright corner, in bytes."""
    rows, columns = np.mgrid[:height, :width]
    image = np.stack([(rows * (3 + c) + columns * 2 * (c + 1)) % 200 for c in range(channels)], -1) / 255
    image[height // 2 :, : width // 3] = 0.9
    return np.round(image * 255) / 255


def made(kind, severity, image, sizes="large"):
    """What the variation makes of one image, float64 (height, width, channels)."""
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None].contiguous()
    parameters = torch.tensor([[severity, GRAIN]], dtype=torch.float64)
    changed = Corruption(severity, kind, sizes).apply(tensor, parameters, (0, 1))
    return changed[0].permute(1, 2, 0).numpy()


def pairs(keys, image):
    """Two uniform numbers for every value, in the order of the image's tensor."""
    shape = (image.shape[2], *image.shape[:2])
    return [part.double().numpy().reshape(shape).transpose(1, 2, 0) for part in unit_pairs(keys, image.size, CPU)]


CASES = [(sizes, severity) for sizes in ("large", "small") for severity in (1, 3, 5)]
cases = pytest.mark.parametrize(("sizes", "severity"), CASES)


def numbers(kind, sizes, severity):
    return strength(kind, severity, small=sizes == "small")


@cases
def test_gaussian_noise(sizes, severity):
    image = picture()
    normal = standard_normal(KEYS, image.size, CPU).double().numpy().reshape(3, 31, 36).transpose(1, 2, 0)
    expected = slow.gaussian_noise(image, normal, *numbers("gaussian_noise", sizes, severity))
    np.testing.assert_allclose(made("gaussian_noise", severity, image, sizes), expected, atol=1e-6)
    assert abs(normal.std() - 1) < 0.03


@cases
def test_shot_noise_counts_as_the_quantile_function_does(sizes, severity):
    image = picture()
    words = draw_words(further_keys(KEYS, 1), image.size)
    chance = ((words >> np.uint64(11)) * 2.0**-53).reshape(3, 31, 36).transpose(1, 2, 0)
    expected = slow.shot_noise(image, chance, *numbers("shot_noise", sizes, severity))
    np.testing.assert_allclose(made("shot_noise", severity, image, sizes), expected, atol=1e-6)


@pytest.mark.parametrize(("severity", "sizes"), [(2, "large"), (3, "large"), (1, "small")])
def test_shot_noise_between_bytes_has_mean_and_variance_of_counting(severity, sizes):
    (photons,) = numbers("shot_noise", sizes, severity)
    image = np.full((300, 300, 1), 0.3017)
    values = made("shot_noise", severity, image, sizes)
    assert values.mean() == pytest.approx(0.3017, abs=4 * np.sqrt(0.3017 / photons) / 300)
    assert values.var() == pytest.approx(0.3017 / photons, rel=0.03)


@cases
def test_impulse_noise(sizes, severity):
    image = picture()
    expected = slow.impulse_noise(image, *pairs(KEYS, image), *numbers("impulse_noise", sizes, severity))
    np.testing.assert_array_equal(made("impulse_noise", severity, image, sizes), expected)


@cases
def test_defocus_blur(sizes, severity):
    expected = slow.defocus_blur(picture(), *numbers("defocus_blur", sizes, severity))
    np.testing.assert_allclose(made("defocus_blur", severity, picture(), sizes), expected, atol=1e-6)


def test_discs_are_those_of_the_reference():
    for radius, softness in {*LARGE["defocus_blur"], *SMALL_IMAGES["defocus_blur"]}:
        np.testing.assert_allclose(disc(radius, softness), slow.disc(radius, softness), atol=1e-12)
        assert disc(radius, softness).sum() == pytest.approx(1, abs=0.02)


@cases
def test_glass_blur_copies_in_the_order_of_the_reference(sizes, severity):
    sigma, reach, rounds = numbers("glass_blur", sizes, severity)
    moves = []
    for number in range(rounds):
        words = draw_words(further_keys(KEYS, number), 31 * 36)[0]
        down, across = (
            ((words >> np.uint64(bits)) & np.uint64(0xFFFFFF)).astype(np.int64) * 2 * reach // (1 << 24) - reach
            for bits in (0, 32)
        )
        assert down.min() == across.min() == -reach and down.max() == across.max() == reach - 1
        moves.append(list(zip(down.tolist(), across.tolist(), strict=True)))
    expected = slow.glass_blur(picture(), moves, sigma, reach, rounds)
    np.testing.assert_allclose(made("glass_blur", severity, picture(), sizes), expected, atol=1e-6)


@cases
def test_motion_blur(sizes, severity):
    degrees = 90 * uniform(KEYS, 1)[0, 0] - 45
    expected = slow.smeared(picture(), degrees, *numbers("motion_blur", sizes, severity))
    np.testing.assert_allclose(made("motion_blur", severity, picture(), sizes), expected, atol=1e-9)


@cases
def test_zoom_blur(sizes, severity):
    expected = slow.zoom_blur(picture(), *numbers("zoom_blur", sizes, severity))
    np.testing.assert_allclose(made("zoom_blur", severity, picture(), sizes), expected, atol=1e-6)


@cases
def test_snow(sizes, severity):
    mean, deviation, zoom, *rest = numbers("snow", sizes, severity)
    cut = int(np.ceil(31 / zoom)), int(np.ceil(36 / zoom))
    drawn = standard_normal(further_keys(KEYS, 0), cut[0] * cut[1], CPU).double().numpy().reshape(cut)
    degrees = -135 + 90 * uniform(further_keys(KEYS, 1), 1)[0, 0]
    expected = slow.snow(picture(), drawn * deviation + mean, degrees, zoom, *rest)
    difference = np.abs(made("snow", severity, picture(), sizes) - expected)
    assert difference.max() < 2 / 255 + 1e-9 and (difference > 1e-6).mean() < 0.01  # a flake may round to the next byte


@cases
def test_frost_lays_its_texture_over_the_image(sizes, severity):
    image, (kept, ice) = picture(), numbers("frost", sizes, severity)
    texture = weather.frost_texture(KEYS, torch.zeros(1, 3, 31, 36))[0].permute(1, 2, 0).double().numpy()
    expected = np.clip(kept * image + ice * texture, 0, 1)
    np.testing.assert_allclose(made("frost", severity, image, sizes), expected, atol=1e-5)


def test_frost_has_the_colour_and_spread_of_the_published_textures():
    """Of the five photographs: means 0.31 to 0.79, 0.48 to 0.81 and 0.53 to 0.84; spread within one 0.06 to 0.17."""
    texture = weather.frost_texture(grain_keys(torch.linspace(0, 0.99, 64)), torch.zeros(64, 3, 224, 224))
    red, green, blue = texture.mean((0, 2, 3)).tolist()
    assert 0.5 < red < green < blue < 0.75
    assert 0.06 < texture.mean(1).flatten(1).std(1).mean() < 0.17
    panes = texture.mean((1, 2, 3))
    assert panes.std() > 0.05 and panes.min() > 0.3 and panes.max() < 0.9


@cases
def test_fog(sizes, severity):
    thickness, decay = numbers("fog", sizes, severity)

    def drawn(level, row, column):
        side = 2 ** (level // 3)
        return 2 * float(unit_pairs(further_keys(KEYS, level), side * side, CPU)[0][0, row * side + column]) - 1

    expected = slow.fog(picture(), slow.plasma(64, decay, drawn), thickness)
    np.testing.assert_allclose(made("fog", severity, picture(), sizes), expected, atol=1e-5)


@cases
def test_brightness_is_that_of_hue_saturation_and_value(sizes, severity):
    expected = slow.brightness(picture(), *numbers("brightness", sizes, severity))
    np.testing.assert_allclose(made("brightness", severity, picture(), sizes), expected, atol=1e-9)


@cases
def test_contrast(sizes, severity):
    expected = slow.contrast(picture(), *numbers("contrast", sizes, severity))
    np.testing.assert_allclose(made("contrast", severity, picture(), sizes), expected, atol=1e-9)


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_elastic_transform_of_photographs(severity):
    (alpha,) = numbers("elastic_transform", "large", severity)
    across, down = (
        0.005 * 131 * (2 * part.double().numpy().reshape(131, 136) - 1)
        for part in unit_pairs(further_keys(KEYS, 0), 131 * 136, CPU)
    )
    sigmas = (0.01 * 131, 0.01 * 136)
    image = picture(131, 136)
    expected = slow.moved(image, alpha * slow.smooth(across, sigmas), alpha * slow.smooth(down, sigmas))
    np.testing.assert_allclose(made("elastic_transform", severity, image), expected, atol=1e-6)


@pytest.mark.parametrize("severity", [1, 2, 5])
def test_elastic_transform_of_small_images(severity):
    from scipy import ndimage

    alpha, sigma, corners = (31 * part for part in numbers("elastic_transform", "small", severity))
    image, middle = picture(), np.array([15.0, 18.0])
    square = np.stack([middle + 10, [middle[0] + 10, middle[1] - 10], middle - 10])
    there = square + corners * (2 * uniform(further_keys(KEYS, 1), 6).reshape(3, 2) - 1)
    solved = np.linalg.solve(np.hstack([there, np.ones((3, 1))]), square)  # from a changed place (x, y, 1) to its own
    rows, columns = np.mgrid[:31, :36]
    back = np.stack([columns, rows, np.ones_like(rows)], -1) @ solved
    planes = [
        ndimage.map_coordinates(plane, (back[..., 1], back[..., 0]), order=1, mode="mirror")
        for plane in np.moveaxis(image, -1, 0)
    ]
    expected = np.stack(planes, -1)
    if alpha:
        across, down = (
            slow.smooth(2 * part.double().numpy().reshape(31, 36) - 1, sigma) * alpha
            for part in unit_pairs(further_keys(KEYS, 0), 31 * 36, CPU)
        )
        expected = slow.moved(expected, across, down)
    np.testing.assert_allclose(made("elastic_transform", severity, image, "small"), expected, atol=1e-6)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("sizes", ["large", "small"])
def test_pixelate_is_what_pillow_makes_of_it(sizes, severity):
    for size in ((32, 32), (64, 224)):  # none in which a pixel's middle lies between two blocks
        image = picture(*size)
        expected = slow.pixelate(image, *numbers("pixelate", sizes, severity))
        np.testing.assert_allclose(made("pixelate", severity, image, sizes), expected, atol=1e-6)


@pytest.mark.parametrize("severity", [1, 5])
def test_jpeg_compression_is_near_what_pillow_writes(severity):
    image = picture(48, 64)
    file = io.BytesIO()
    quality = numbers("jpeg_compression", "large", severity)[0]
    Image.fromarray(np.uint8(np.round(image * 255))).save(file, "JPEG", quality=quality)
    expected = np.asarray(Image.open(file)) / 255
    assert np.abs(made("jpeg_compression", severity, image) - expected).mean() < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_corrupted_alike_alone_and_in_any_batch(kind):
    images = torch.rand(7, 3, 33, 29, generator=torch.Generator().manual_seed(0))
    ids = [f"s{number}" for number in range(7)]
    look = Neighbour(Corruption((1, 5), kind), seed=4, bounds=(0, 1))
    together = look.images(images, ids, 2)
    assert torch.equal(together, look.images(images, ids, 2))
    alone = torch.cat([look.images(images[i : i + 1], ids[i : i + 1], 2) for i in range(7)])
    assert torch.equal(together, alone)
    assert torch.equal(look.images(images[2:5], ids[2:5], 2), together[2:5])
    others = look.images(images, [f"t{number}" for number in range(7)], 2)
    assert not torch.equal(together, others)  # by the severity that is drawn, if by nothing else


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(28, 28), (32, 65), (96, 64)])
def test_any_size_and_number_of_channels_stays_within_the_bounds(kind, size):
    for channels, bounds in ((3, (0.0, 1.0)), (1, (-1.0, 1.0)), (3, (0.0, 255.0))):
        low, high = bounds
        images = low + (high - low) * torch.rand(2, channels, *size, generator=torch.Generator().manual_seed(1))
        before = images.clone()
        changed = Neighbour(Corruption(5, kind), bounds=bounds).images(images, ["a", "b"], 1)
        assert changed.shape == images.shape and changed.dtype == images.dtype
        assert changed.min() >= low and changed.max() <= high and not torch.equal(changed, images)
        assert torch.equal(images, before)


@pytest.mark.parametrize("kind", KINDS)
def test_higher_severities_change_more(kind):
    image = torch.from_numpy(picture(64, 64)).permute(2, 0, 1)[None].repeat(8, 1, 1, 1).float()
    ids = [f"s{number}" for number in range(8)]
    change = [
        float((Neighbour(Corruption(s, kind), bounds=(0, 1)).images(image, ids, 1) - image).abs().mean())
        for s in (1, 5)
    ]
    assert 0 < change[0] < change[1]


def test_global_chance_is_neither_used_nor_moved():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for kind in KINDS:
        Neighbour(Corruption(3, kind), bounds=(0, 1)).images(images, ["a", "b"], 1)
    assert random.getstate() == states[0] and np.random.get_state()[1].tolist() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])


def test_small_images_get_the_severities_of_small_images():
    small, large = (torch.full((1, 3, side, side), 0.5) for side in (32, 64))
    values = [
        float(Neighbour(Corruption(1, "brightness", sizes), bounds=(0, 1)).images(image, ["a"], 1).mean())
        for image, sizes in ((small, "auto"), (large, "auto"), (small, "large"), (large, "small"))
    ]
    assert values == pytest.approx([0.55, 0.6, 0.6, 0.55])


def test_there_are_fifteen_kinds_with_five_severities_each():
    assert len(KINDS) == 15 and [len(kinds) for kinds in FAMILIES.values()] == [3, 4, 4, 4]
    assert all(len(table[kind]) == 5 for table in (LARGE, SMALL_IMAGES) for kind in KINDS)


def test_a_configuration_names_kind_and_severity():
    assert variation({"corruption": {"kind": "fog", "severity": [2, 4]}}) == Corruption((2, 4), "fog")
    drawn = Neighbour(Corruption((2, 4), "fog")).drawn([f"s{i}" for i in range(300)], 1)[:, 0]
    assert sorted(set(drawn.tolist())) == [2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "fogg"}, "'fogg' is no common corruption: did you mean 'fog'.*there are gaussian_noise"),
        ({"severity": 6}, "severity of Corruption is 6, that is from 6 to 6: expected 1 to 5"),
        ({"severity": (0, 3)}, "expected 1 to 5"),
        ({"sizes": "tiny"}, "sizes is 'tiny': expected one of auto, large, small"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Corruption(**options)


def test_missing_bounds_and_other_shapes_are_refused():
    with pytest.raises(ConfigError, match="Corruption must know the smallest and largest value"):
        Corruption(3, "fog").apply(torch.rand(1, 3, 32, 32), torch.tensor([[3.0, 0.1]]))
    with pytest.raises(DataError, match="need images of shape"):
        Corruption(3, "fog").apply(torch.rand(1, 3, 8, 8, 8), torch.tensor([[3.0, 0.1]]), (0, 1))
