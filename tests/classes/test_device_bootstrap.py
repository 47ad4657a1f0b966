"""What a GPU works out of resampled images, run on this machine's processor, against the plain version."""

import numpy as np
import pytest
import torch

from weakspot.classes import device_bootstrap
from weakspot.classes.device_bootstrap import resampled_distances
from weakspot.classes.membership import class_members
from weakspot.classes.metrics_bootstrap import bootstrap_distance

CPU = torch.device("cpu")


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("block", [1 << 28, 200])
def test_estimates_are_those_of_the_plain_version(normalise, block, monkeypatch):
    monkeypatch.setattr(device_bootstrap, "_BLOCK", block)
    rng = np.random.default_rng(0)
    active = rng.random((60, 21)) < rng.random(21)
    active[:20] = active[20:40]  # classes 0 and 1 activate the same: their distance is lost in cancellation
    members = class_members(np.repeat(np.arange(3), 20), 3)

    def found(squared=None):
        return bootstrap_distance(
            np.packbits(active, axis=1), members, neurons=21, seed=3, replicates=8, normalise=normalise, squared=squared
        )

    def on_device(*arguments):
        return resampled_distances(CPU, *arguments)

    plain, other = found(), found(on_device)
    assert np.allclose(plain.squared, other.squared, atol=1e-6)  # the plain version divides in 32 bits
    assert np.allclose(plain.error, other.error, atol=1e-6)
