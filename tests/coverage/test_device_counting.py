"""What a GPU counts for subsets of the inputs, run on this machine's processor, against the plain versions."""

import numpy as np
import pytest
import torch

from weakspot.coverage import device_counting
from weakspot.coverage.device_counting import bits_covered, bits_shares, cells_covered, cells_shares
from weakspot.coverage.metrics_agreement import random_subsets, subset_coverage
from weakspot.coverage.reached_targets import Bits, Cells

RNG = np.random.default_rng(3)
REACHES = {
    "bits": (Bits.of(RNG.random((40, 77)) < 0.05), bits_covered, bits_shares),
    "cells": (Cells(RNG.integers(0, 12, (40, 9)).astype(np.int16), 10), cells_covered, cells_shares),
}


@pytest.mark.parametrize("block", [1 << 26, 300])
@pytest.mark.parametrize("kind", REACHES)
def test_subsets_and_shares_are_those_of_the_plain_version(kind, block, monkeypatch):
    monkeypatch.setattr(device_counting, "_BLOCK", block)
    reach, covered, shares = REACHES[kind]
    subsets = random_subsets(40, 7, 12, seed=1)
    found = covered(reach, torch.from_numpy(np.stack(subsets))).numpy() / reach.targets
    assert np.array_equal(found, subset_coverage(reach, subsets))
    order = np.argsort(RNG.random(40))
    assert np.allclose(shares(reach, torch.from_numpy(order)).numpy(), reach.shares(order), rtol=1e-12)
