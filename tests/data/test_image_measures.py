"""Measures of images, against plain loops over pixels and images whose measures are known."""

import colorsys
import math

import numpy as np
import pytest
import torch

from weakspot.data.image_measures import MEASURES, image_measures, measurable


def slow(image):
    """Every measure of one image (channels, height, width), pixel by pixel."""
    channels, height, width = image.shape
    places = [(y, x) for y in range(height) for x in range(width)]
    inner = [(y, x) for y in range(1, height - 1) for x in range(1, width - 1)]

    def grey(y, x):
        colour = [float(value) for value in image[:, y, x]]
        weights = (0.299, 0.587, 0.114) if channels == 3 else [1 / channels] * channels
        return sum(weight * value for weight, value in zip(weights, colour, strict=True))

    def spread(values):
        mean = sum(values) / len(values)
        return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))

    def laplacian(y, x):
        return grey(y - 1, x) + grey(y + 1, x) + grey(y, x - 1) + grey(y, x + 1) - 4 * grey(y, x)

    def corners(y, x):
        straight = grey(y - 1, x) + grey(y + 1, x) + grey(y, x - 1) + grey(y, x + 1)
        diagonal = grey(y - 1, x - 1) + grey(y - 1, x + 1) + grey(y + 1, x - 1) + grey(y + 1, x + 1)
        return diagonal - 2 * straight + 4 * grey(y, x)

    contrast = spread([grey(*place) for place in places])
    tensor = [[0.0, 0.0], [0.0, 0.0]]
    for y, x in inner:
        gradient = grey(y, x + 1) - grey(y, x - 1), grey(y - 1, x) - grey(y + 1, x)
        for a in (0, 1):
            for b in (0, 1):
                tensor[a][b] += gradient[a] * gradient[b]
    _, vectors = np.linalg.eigh(np.array(tensor))
    edge = vectors[:, 0]  # of the smaller eigenvalue: along the edge
    measures = {
        "brightness": sum(grey(*place) for place in places) / len(places),
        "contrast": contrast,
        "sharpness": spread([laplacian(*place) for place in inner]) / contrast,
        "noise": math.sqrt(math.pi / 2) / (6 * len(inner)) * sum(abs(corners(*place)) for place in inner) / contrast,
        "edge angle": math.degrees(math.atan2(edge[1], edge[0])) % 180,
        "saturation": math.nan,
        "hue": math.nan,
    }
    if channels == 3:
        chroma = sum(float(image[:, y, x].max() - image[:, y, x].min()) for y, x in places)
        measures["saturation"] = chroma / sum(float(image[:, y, x].max()) for y, x in places)
        red, green, blue = image.reshape(3, -1).mean(1)
        measures["hue"] = math.degrees(math.atan2(math.sqrt(3) * (green - blue), 2 * red - green - blue)) % 360
    return measures


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_measures_are_those_of_plain_loops(channels):
    rng = np.random.default_rng(channels)
    images = rng.random((4, channels, 6, 9), dtype=np.float32) * np.linspace(0.3, 1, 9, dtype=np.float32)
    found = image_measures(torch.from_numpy(images))
    assert list(found) == list(MEASURES)
    for number, image in enumerate(images):
        for name, value in slow(image.astype(np.float64)).items():
            assert found[name][number].item() == pytest.approx(value, abs=2e-4, nan_ok=True), name


def test_a_measure_does_not_depend_on_the_batch():
    images = torch.rand(37, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    together = image_measures(images)
    for start in range(0, 37, 5):
        part = image_measures(images[start : start + 5])
        for name in MEASURES:
            np.testing.assert_array_equal(part[name], together[name][start : start + 5], err_msg=name)


@pytest.mark.parametrize("hue", [10, 120, 240, 300])
def test_the_hue_of_one_colour_is_that_of_hsv(hue):
    colour = torch.tensor(colorsys.hsv_to_rgb(hue / 360, 1.0, 0.8))
    found = image_measures(colour[None, :, None, None].expand(1, 3, 8, 8))
    assert found["hue"].item() == pytest.approx(hue, abs=6)  # HSV's hue is that of a hexagon, here of a circle
    assert found["saturation"].item() == pytest.approx(1.0)


@pytest.mark.parametrize("angle", [0, 30, 90, 150])
def test_the_edge_angle_is_that_of_the_stripes(angle):
    y, x = torch.meshgrid(-torch.arange(40.0), torch.arange(40.0), indexing="ij")  # y upwards
    turn = math.radians(angle)
    stripes = torch.sin(0.5 * (-math.sin(turn) * x + math.cos(turn) * y))
    found = image_measures(stripes[None, None])["edge angle"].item()
    assert min(abs(found - angle), 180 - abs(found - angle)) < 2


def test_noise_is_estimated_and_blur_lowers_sharpness():
    generator = torch.Generator().manual_seed(1)
    smooth = torch.linspace(0, 1, 64).expand(1, 1, 64, 64)
    noisy = smooth + 0.1 * torch.randn(1, 1, 64, 64, generator=generator)
    measured = image_measures(noisy)
    assert (measured["noise"] * measured["contrast"]).item() == pytest.approx(0.1, rel=0.05)
    assert image_measures(noisy / 4)["noise"].item() == pytest.approx(measured["noise"].item(), rel=1e-4)
    assert image_measures(smooth)["noise"].item() < 1e-4
    blurred = torch.nn.functional.avg_pool2d(noisy, 5, stride=1, padding=2)
    assert image_measures(blurred)["sharpness"] < image_measures(noisy)["sharpness"] / 2


def test_constant_images_have_no_edges_and_no_hue():
    found = {name: value.item() for name, value in image_measures(torch.full((1, 3, 5, 5), 0.5)).items()}
    assert found["brightness"] == 0.5
    assert found["contrast"] == found["sharpness"] == found["noise"] == found["saturation"] == 0
    assert math.isnan(found["hue"]) and math.isnan(found["edge angle"])


def test_what_is_no_image_is_not_measured():
    assert not measurable(torch.zeros(3, 20)) and not measurable(torch.zeros(3, 1, 4, 4, 4))
