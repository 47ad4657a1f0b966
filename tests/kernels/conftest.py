"""Without a GPU the kernels are interpreted, step by step, on the CPU; that has to be said before they are loaded."""

import os

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True)
def triton():
    return pytest.importorskip("triton", reason="Triton is not installed: there are no kernels to try")


@pytest.fixture
def drawn():
    """Normal numbers of a shape, the same each time."""

    def draw(*shape, seed=0):
        return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)

    return draw
