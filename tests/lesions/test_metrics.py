"""Voxel maps from running sums against voxel-by-voxel loops."""

import numpy as np
import pytest
import torch

from tests.references.lesions import voxel_measures
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.lesions.metrics import RunningSamples


def sampled(draws, classes, shape, seed=0):
    logits = torch.randn(draws, 2, classes, *shape, generator=torch.Generator().manual_seed(seed))
    return (2 * logits).softmax(2)


@pytest.mark.parametrize(("classes", "lesion", "shape"), [(2, (1,), (3, 2)), (2, (1,), (2, 2, 2)), (4, (1, 3), (2, 3))])
def test_every_voxel_as_in_the_reference(classes, lesion, shape):
    samples = sampled(5, classes, shape)
    running = RunningSamples(lesion)
    for draw in samples:
        running.add(draw)
    maps = running.maps()
    for case in range(2):
        for voxel in np.ndindex(shape):
            expected = voxel_measures(samples[(slice(None), case, slice(None), *voxel)].numpy(), lesion)
            for name, value in expected.items():
                assert float(getattr(maps, name)[(case, *voxel)]) == pytest.approx(value, abs=3e-7, rel=1e-5), name


def test_two_classes_by_hand():
    running = RunningSamples((1,))
    for p in (0.6, 1.0):
        running.add(torch.tensor([[1 - p, p]], dtype=torch.float64))
    maps = running.maps()
    assert maps.lesion.item() == pytest.approx(0.8)
    assert maps.pcs.item() == pytest.approx(0.6)
    assert maps.variance.item() == pytest.approx(0.04)
    assert maps.entropy.item() == pytest.approx(-0.8 * np.log(0.8) - 0.2 * np.log(0.2))
    assert maps.mutual_information.item() == pytest.approx(0.500402 - 0.673012 / 2, abs=1e-6)


def test_samples_that_agree_leave_no_variance_and_no_information():
    running = RunningSamples((1,))
    for _ in range(7):
        running.add(sampled(1, 2, (4, 4))[0])
    maps = running.maps()
    assert float(maps.variance.max()) < 1e-13 and float(maps.mutual_information.max()) < 1e-6
    assert float(maps.variance.min()) >= 0 and float(maps.mutual_information.min()) >= 0


def test_a_small_spread_is_not_lost_to_rounding():
    """Probabilities near 1 whose variance is 1e-10: sums of squares in float32 would give 0 or noise."""
    draws = 1 - 1e-5 * (1 + torch.arange(20.0, dtype=torch.float64))
    running = RunningSamples((1,))
    for p in draws:
        running.add(torch.stack([1 - p, p]).float()[None])
    assert float(running.maps().variance) == pytest.approx(float(draws.var(correction=0)), rel=0.02)


def test_memory_is_that_of_the_sums_however_many_samples():
    running = RunningSamples((1,))
    for draw in sampled(9, 2, (4, 4, 4)):
        running.add(draw)
    held = sum(values.nbytes for values in vars(running).values() if isinstance(values, torch.Tensor))
    assert held == 4 * 2 * 64 * 4  # four maps of float32, for two cases of 64 voxels


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(SubjectError, match="1 class per voxel, expected background and lesion"):
        RunningSamples((1,)).add(torch.ones(1, 1, 2, 2))
    with pytest.raises(ConfigError, match=r"lesion classes are \[2\], and the model knows 0 to 1"):
        RunningSamples((2,)).add(torch.ones(1, 2, 2, 2))
    with pytest.raises(DataError, match="no look"):
        RunningSamples((1,)).maps()
