"""Which pixels, and how much."""

import numpy as np
import pytest
import torch
from scipy import stats

from weakspot.attacks.noise import gaussian, noisy, pixel_count, random_pixels, relevant_pixels
from weakspot.core.errors import DataError

IDS = [f"sample {i}" for i in range(400)]


def test_noise_goes_where_it_is_told_and_is_clipped():
    inputs = torch.full((1, 2, 2, 2), 0.5)
    changed = noisy(inputs, torch.tensor([[3]]), torch.tensor([[[0.2], [-0.7]]]), (0.0, 1.0))
    expected = inputs.clone()
    expected[0, :, 1, 1] = torch.tensor([0.7, 0.0])
    torch.testing.assert_close(changed, expected)
    assert (inputs == 0.5).all()


def test_random_pixels_are_different_and_anywhere():
    pixels = random_pixels(IDS, 50, 10, seed=0).numpy()
    assert all(len(set(row)) == 10 for row in pixels)
    counts = np.bincount(pixels.ravel(), minlength=50)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert (random_pixels(IDS[5:7], 50, 10, seed=0).numpy() == pixels[5:7]).all()


def test_relevant_pixels_are_the_highest_over_all_channels():
    relevance = torch.zeros(1, 2, 2, 3)
    relevance[0, :, 0, 1] = torch.tensor([5.0, -1.0])
    relevance[0, :, 1, 2] = torch.tensor([1.0, 1.0])
    relevance[0, :, 0, 0] = torch.tensor([-9.0, 0.0])
    assert relevant_pixels(relevance, 2).tolist() == [[1, 5]]


def test_the_noise_is_gaussian():
    drawn = gaussian(IDS, 3, 20, sigma=0.3, seed=2).numpy()
    assert stats.kstest(drawn.ravel() / 0.3, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]) < 0.2
    assert (gaussian(IDS[9:10], 3, 20, sigma=0.3, seed=2).numpy() == drawn[9:10]).all()


def test_how_many_pixels_the_papers_share_is():
    assert pixel_count(torch.zeros(1, 1, 28, 28), 0.02) == 15  # as in the paper, for MNIST
    assert pixel_count(torch.zeros(1, 3, 32, 32), 0.02) == 20  # and for CIFAR-10
    assert pixel_count(torch.zeros(1, 1, 3, 3), 0.02) == 1
    with pytest.raises(DataError, match="needs images"):
        pixel_count(torch.zeros(1, 5), 0.5)
