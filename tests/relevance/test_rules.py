"""Every rule against plain matrices, on dense, convolutional and transposed-convolutional nets."""

import pytest
import torch
from torch import nn

from tests.relevance import reference
from weakspot.core.errors import ConfigError
from weakspot.relevance import (
    LRP0,
    AlphaBeta,
    Composite,
    Epsilon,
    Flat,
    Gamma,
    WSquare,
    ZBox,
    ZPlus,
    relevance,
)


def dense() -> tuple[list[nn.Module], tuple[int, ...]]:
    return [nn.Linear(6, 8), nn.Linear(8, 7), nn.Linear(7, 4)], (6,)


def convolutional() -> tuple[list[nn.Module], tuple[int, ...]]:
    return [
        nn.Conv2d(2, 4, 3, padding=1),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        nn.Conv2d(6, 4, (2, 1), dilation=(1, 2), padding=(1, 0)),
        nn.Conv2d(4, 4, 3),
    ], (2, 5, 6)


def transposed() -> tuple[list[nn.Module], tuple[int, ...]]:
    return [
        nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2),
        nn.Conv2d(4, 3, 3, padding=1),
        nn.ConvTranspose2d(3, 2, 2, bias=False),
    ], (2, 3, 3)


def one_and_three_dimensional(dimensions: int) -> tuple[list[nn.Module], tuple[int, ...]]:
    conv = {1: nn.Conv1d, 3: nn.Conv3d}[dimensions]
    up = {1: nn.ConvTranspose1d, 3: nn.ConvTranspose3d}[dimensions]
    return [conv(2, 3, 3, padding=1), up(3, 2, 2, stride=2), conv(2, 2, 3)], (2, *[3] * dimensions)


NETS = {
    "dense": dense,
    "2-D": convolutional,
    "transposed": transposed,
    "1-D": lambda: one_and_three_dimensional(1),
    "3-D": lambda: one_and_three_dimensional(3),
}
RULES = {
    "LRP-0": (LRP0(), reference.epsilon(1e-16)),
    "epsilon": (Epsilon(0.01), reference.epsilon(0.01)),
    "z-plus": (ZPlus(), reference.alpha_beta(1, 0)),
    "alpha-beta": (AlphaBeta(2, 1), reference.alpha_beta(2, 1)),
    "gamma": (Gamma(0.25), reference.gamma(0.25)),
}
FIRST = {
    "flat": (Flat(), reference.flat),
    "w-square": (WSquare(), reference.w_square),
    "z-box": (ZBox(-1.0, 1.5), reference.z_box(-1.0, 1.5)),
}


def build(net: str) -> tuple[nn.Sequential, list[nn.Module], torch.Tensor]:
    torch.manual_seed(3)
    layers, shape = NETS[net]()
    chain: list[nn.Module] = []
    for layer in layers:
        chain += [layer, nn.ReLU()]
    model = nn.Sequential(*chain[:-1], nn.Flatten()).double()
    layers = [layer.double() for layer in layers]
    return model, layers, torch.randn(3, *shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def check(net: str, composite: Composite, rule, first=None) -> None:
    model, layers, x = build(net)
    names = [f"{2 * i}:input" for i in range(len(layers))]
    found = relevance(model, x, method=composite, layers=names)
    for row, sample in enumerate(x):
        expected = reference.propagate(layers, sample, rule, first)
        for name, values in zip(names, expected, strict=True):
            scale = max(1.0, abs(values).max())
            torch.testing.assert_close(
                found.layers[name][row], torch.from_numpy(values), rtol=1e-6, atol=1e-6 * scale, msg=f"{net} {name}"
            )
        torch.testing.assert_close(found.input[row], found.layers[names[0]][row])


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("name", RULES)
def test_rules_equal_the_plain_matrix_reference(net, name):
    rule, expected = RULES[name]
    check(net, Composite(dense=rule, convolution=rule), expected)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("name", FIRST)
def test_first_layer_rules_equal_the_plain_matrix_reference(net, name):
    first, expected = FIRST[name]
    check(net, Composite(dense=ZPlus(), convolution=ZPlus(), first=first), reference.alpha_beta(1, 0), expected)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bias", ["redistributed", "evenly"])
def test_redistributed_bias_equals_the_plain_matrix_reference(net, bias):
    composite = Composite(dense=LRP0(), convolution=LRP0(), bias=bias)
    check(net, composite, reference.redistributed(evenly=bias == "evenly"))


def test_single_precision_is_close_to_double_precision():
    model, _, x = build("2-D")
    exact = relevance(model, x, method=Composite(convolution=ZPlus())).input
    rough = relevance(model.float(), x.float(), method=Composite(convolution=ZPlus())).input
    torch.testing.assert_close(rough.double(), exact, rtol=1e-4, atol=1e-6)


def test_alpha_and_beta_must_differ_by_one():
    with pytest.raises(ConfigError, match=r"alpha − beta = 1.*got alpha=3, beta=1.*AlphaBeta\(2, 1\)"):
        AlphaBeta(3, 1)


def test_nonnegative_inputs_are_recognised_without_changing_the_result():
    """After a ReLU the sign-splitting rules do half the work; a layer that hides the ReLU must give the same."""
    torch.manual_seed(0)
    first, second, x = nn.Linear(5, 6), nn.Linear(6, 3), torch.randn(4, 5)
    composite = Composite(dense=Gamma(0.5))
    plain = relevance(nn.Sequential(first, nn.ReLU(), second), x, method=composite)
    hidden = relevance(nn.Sequential(first, nn.LeakyReLU(0.0), second), x, method=composite)
    torch.testing.assert_close(plain.input, hidden.input)
