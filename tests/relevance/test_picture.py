"""Pictures: centred on zero, legible without red-green vision, and with nothing invented."""

import numpy as np
import pytest
import torch

from weakspot.core.errors import DataError
from weakspot.relevance import picture

# Machado, Oliveira, Fernandes 2009: what a person without one kind of cone sees, in linear RGB
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(pixels: np.ndarray) -> np.ndarray:
    values = pixels / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB."""
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = np.clip(rgb, 0, 1) @ matrix.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)


def test_zero_is_white_and_signs_have_their_own_colour():
    negative, zero, positive = picture.colours(np.array([-1.0, 0.0, 1.0])).astype(int)
    assert zero.min() == zero.max() > 240
    assert positive[0] > positive[2] + 50, "positive is red"
    assert negative[2] > negative[0] + 50, "negative is blue"


def test_lightness_falls_on_both_sides_of_zero():
    lightness = lab(linear(picture.colours(np.linspace(-1, 1, 101))))[:, 0]
    assert (np.diff(lightness[:51]) > 0).all()
    assert (np.diff(lightness[50:]) < 0).all()


@pytest.mark.parametrize("kind", BLINDNESS)
def test_signs_can_be_told_apart_by_colour_blind_people(kind):
    strengths = np.linspace(0.3, 1, 15)
    seen = [lab(linear(picture.colours(sign * strengths)) @ np.array(BLINDNESS[kind]).T) for sign in (-1, 1)]
    distance = np.linalg.norm(seen[0] - seen[1], axis=1)
    assert distance.min() > 20, "a distance of 2.3 is just noticeable"


def test_heat_map_adds_channels_and_scales_by_the_largest_magnitude():
    relevance = torch.zeros(3, 2, 2)
    relevance[0, 0, 0], relevance[1, 0, 0], relevance[2, 1, 1] = 1.0, 1.0, -4.0
    pixels = picture.heat_map(relevance)
    assert (pixels == picture.colours(np.array([[0.5, 0.0], [0.0, -1.0]]))).all()
    shared = picture.heat_map(relevance, limit=8.0)
    assert (shared[1, 1] == picture.colours(np.array(-0.5))).all()
    assert (picture.heat_map(np.zeros((2, 2))) == picture.colours(np.zeros((2, 2)))).all()


def test_overlay_shows_the_input_where_relevance_is_zero():
    image = np.zeros((3, 2, 2))
    image[:, 0] = 1.0
    relevance = np.array([[0.0, 1.0], [0.0, -1.0]])
    pixels = picture.overlay(image, relevance).astype(int)
    assert (pixels[0, 0] == 255).all() and (pixels[1, 0] == 102).all()
    assert pixels[0, 1, 0] > pixels[0, 1, 2] and pixels[1, 1, 2] > pixels[1, 1, 0]


def test_side_by_side_has_a_row_per_sample_and_three_columns():
    images, relevances = torch.rand(2, 1, 8, 8), torch.randn(2, 1, 8, 8)
    sheet = picture.side_by_side(images, relevances, width=64)
    assert sheet.size == (3 * 64 + 4 * picture.GAP, 2 * (64 + 2 * picture.GAP + picture.BAR + 14))
    pixels = np.asarray(sheet)
    left = picture.GAP + 64 + picture.GAP
    assert (pixels[picture.GAP + 4, left + 4] == picture.heat_map(relevances[0])[0, 0]).all()
    assert (pixels[picture.GAP + 4, picture.GAP + 4] == np.uint8(np.round(float(images[0, 0, 0, 0]) * 255))).all()


def test_bytes_are_taken_as_they_are():
    image = np.full((1, 4, 4), 200, np.uint8)
    assert (picture.overlay(image, np.zeros((4, 4))) == round(255 - 0.6 * 55)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: picture.heat_map(np.zeros((1, 3, 4, 4))),
            r"map \(H, W\) or \(channels, H, W\), got shape \(1, 3, 4, 4\); take one",
        ),
        (
            lambda: picture.heat_map(np.full((2, 2), np.nan)),
            r"finite relevance, got NaN or infinity; look at the conservation",
        ),
        (lambda: picture.overlay(np.zeros((3, 4, 4)), np.zeros((5, 5))), r"the image's size \(4, 4\), got \(5, 5\)"),
        (
            lambda: picture.overlay(np.zeros((4, 4, 3)), np.zeros((4, 4))),
            r"image \(H, W\) or \(1 or 3 channels, H, W\), got",
        ),
        (lambda: picture.side_by_side([], []), r"as many relevance maps as images, got 0 for 0"),
    ],
)
def test_arrays_that_are_no_pictures_say_so(call, message):
    with pytest.raises(DataError, match=message):
        call()
