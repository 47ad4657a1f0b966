"""JPEG without a file, against Pillow's files."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from weakspot.core.errors import ConfigError, DataError
from weakspot.looks import Jpeg, Neighbour
from weakspot.looks.jpeg import quality_scale


def stored(image, quality, halved):
    """Through a file in memory; image (height, width[, 3]), bytes."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, subsampling=2 if halved else 0)
    return np.asarray(Image.open(file)).astype(float)


def photographs(svhn):
    """Eight real pictures of 64 × 128, each made of eight crops."""
    crops = svhn[0][:64]
    crops = crops if crops.shape[-1] == 3 else crops.transpose(0, 2, 3, 1)
    return crops.reshape(8, 2, 4, 32, 32, 3).transpose(0, 1, 3, 2, 4, 5).reshape(8, 64, 128, 3)


@pytest.mark.parametrize("quality", [5, 25, 50, 75, 95, 100])
@pytest.mark.parametrize("halved", [True, False])
def test_colour_is_what_pillow_makes_of_it(svhn, quality, halved):
    images = photographs(svhn)[:, :61, :117]
    inputs = torch.from_numpy(images.astype(np.float32)).movedim(-1, 1)
    numbers = torch.full((8, 1), float(quality), dtype=torch.float64)
    ours = Jpeg((1, 100), halved).apply(inputs, numbers, (0, 255)).movedim(1, -1).numpy()
    files = np.stack([stored(image, quality, halved) for image in images])
    lost = np.abs(files - images).mean()
    assert np.abs(ours - files).mean() < (0.6 if halved else 0.35)  # of 255: libjpeg counts in whole numbers
    assert abs(np.abs(ours - images).mean() - lost) < 0.05 * lost + 0.05


@pytest.mark.parametrize("quality", [10, 50, 90])
def test_grey_is_what_pillow_makes_of_it(svhn, quality):
    images = photographs(svhn)[..., 0]
    ours = Jpeg((1, 100)).apply(torch.from_numpy(images)[:, None], torch.full((8, 1), quality), (0, 255))
    files = np.stack([stored(image, quality, True) for image in images])
    assert np.abs(ours[:, 0].numpy() - files).mean() < 0.2


def test_every_sample_has_its_own_quality(svhn):
    images = torch.from_numpy(photographs(svhn)[:2]).movedim(-1, 1)
    together = Jpeg().apply(images, torch.tensor([[40.0], [90.0]]), (0, 255))
    for sample, quality in enumerate((40.0, 90.0)):
        alone = Jpeg().apply(images[sample : sample + 1], torch.tensor([[quality]]), (0, 255))
        assert torch.equal(together[sample], alone[0])


def test_the_scale_of_the_steps_is_libjpegs():
    assert quality_scale(torch.tensor([1.0, 10.0, 49.0, 50.0, 75.0, 100.0])).tolist() == [5000, 500, 102, 100, 50, 0]


def test_qualities_are_whole_numbers_all_equally_often():
    drawn = Neighbour(Jpeg((60, 63))).drawn([f"s{i}" for i in range(4000)], 1)
    values, counts = drawn.unique(return_counts=True)
    assert values.tolist() == [60, 61, 62, 63]
    assert (counts - 1000).abs().max() < 120
    assert Jpeg(40).range == (40, 100)


def test_what_jpeg_cannot_do_is_said():
    with pytest.raises(DataError, match="one or three channels, got 4"):
        Jpeg().apply(torch.zeros(1, 4, 8, 8), torch.tensor([[50.0]]), (0, 1))
    for wrong in (0, 101, (0, 50)):
        with pytest.raises(ConfigError, match="expected 1 to 100"):
            Jpeg(wrong)
    with pytest.raises(ConfigError, match="expected true or false"):
        Jpeg(50, "4:2:0")
