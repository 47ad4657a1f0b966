"""A small Run that one call makes, from tensors and a module."""

import numpy as np
import pytest

import weakspot
from weakspot.data import digits


@pytest.fixture(scope="session")
def pairs():
    """Inputs and targets of 60 digits, as tensors."""
    batch = digits.test().read(np.arange(60))
    return batch.inputs, batch.targets


@pytest.fixture(scope="session")
def answers(pairs, tmp_path_factory):
    """Robustness, and the classes by outputs, of the digits' net. Not to be changed."""
    return weakspot.ask(
        digits.model(),
        test=pairs,
        class_names=digits.CLASSES,
        scores="logits",
        robustness={"neighbours": {"rotate": 20}, "looks": 4},
        confidence={},
        run=tmp_path_factory.mktemp("answers") / "run",
    )
