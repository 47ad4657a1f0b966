"""The books: what biases and stabilisers absorb is known, not hidden."""

import pytest
import torch
from torch import nn

from weakspot import relevance as lrp
from weakspot.relevance import LRP0, Composite, Epsilon, relevance


def test_books_of_one_layer_by_hand():
    """z = 1·2 + 3·1 + 1 = 6, ε = 2: R = 6 goes 6·2/8 and 6·3/8 to the inputs, 6·1/8 to the bias, 6·2/8 to ε."""
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, 1.0]]))
        model.bias.fill_(1.0)
    found = relevance(model, torch.tensor([[1.0, 3.0]]), method=Composite(dense=Epsilon(2.0)))
    torch.testing.assert_close(found.input, torch.tensor([[1.5, 2.25]]))
    (balance,) = found.conservation.layers
    assert (balance.layer, balance.operation, balance.rule) == ("(model)", "linear", "Epsilon")
    assert balance.received == 6
    assert balance.biases == pytest.approx(0.75)
    assert balance.stabilisers == pytest.approx(1.5)
    assert balance.passed == pytest.approx(3.75)
    assert found.conservation.unexplained == pytest.approx(0, abs=1e-6)


def test_redistribution_of_one_layer_by_hand():
    """b = 1 of z = 6 is shared 2 : 3 in proportion, or half and half."""
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, 1.0]]))
        model.bias.fill_(1.0)
    x = torch.tensor([[1.0, 3.0]])
    found = relevance(model, x, method=lrp.deep_importance())
    torch.testing.assert_close(found.input, torch.tensor([[2.4, 3.6]]))
    found = relevance(model, x, method=lrp.deep_importance(bias="evenly"))
    torch.testing.assert_close(found.input, torch.tensor([[2.5, 3.5]]))
    found = relevance(model, x, method=lrp.deep_importance(bias="absorbed"))
    torch.testing.assert_close(found.input, torch.tensor([[2.0, 3.0]]))


def test_even_redistribution_also_reaches_inputs_that_are_zero():
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, 1.0]]))
        model.bias.fill_(1.0)
    for bias, expected in (("evenly", [[1.5, 1.5]]), ("redistributed", [[1.5, 1.5]])):
        nothing = relevance(model, torch.zeros(1, 2), method=Composite(dense=LRP0(), bias=bias))
        torch.testing.assert_close(nothing.input, torch.tensor(expected) / 3)


def test_a_sum_is_split_by_value_or_by_magnitude():
    class Sum(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a + b

    a, b = torch.tensor([[3.0]]), torch.tensor([[-1.0]])
    signed = relevance(Sum(), (a, b), method=Composite(stabiliser=1e-9))
    assert [part.item() for part in signed.input] == pytest.approx([3.0, -1.0])
    by_size = relevance(Sum(), (a, b), method=Composite(sums="magnitude", stabiliser=1e-9))
    assert [part.item() for part in by_size.input] == pytest.approx([1.5, 0.5])


def test_every_layer_hands_on_what_the_next_one_receives():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    found = relevance(model, torch.randn(4, 5), layers=["0:input", "2:input", "4:input"])
    last, middle, first = found.conservation.layers
    assert (last.layer, middle.layer, first.layer) == ("4", "2", "0")
    for balance, name in ((last, "4:input"), (middle, "2:input"), (first, "0:input")):
        assert balance.passed == pytest.approx(float(found.layers[name].sum()), rel=1e-5)
    assert middle.received == pytest.approx(last.passed, rel=1e-5)
    assert first.received == pytest.approx(middle.passed, rel=1e-5)
    assert abs(found.conservation.biases) > 1e-3


def test_the_books_can_be_left_out():
    assert relevance(nn.Linear(4, 3), torch.rand(2, 4), conservation=False).conservation is None


def test_the_books_print_as_a_table():
    text = str(relevance(nn.Sequential(nn.Linear(4, 3)), torch.rand(2, 4)).conservation)
    assert text.splitlines()[0].split() == ["layer", "operation", "rule", "received", "biases", "stabilisers"]
    assert text.splitlines()[1].split()[:3] == ["0", "linear", "Epsilon"]
    assert text.splitlines()[-1].startswith("start ")


def test_composites_choose_by_name_type_position_and_kind():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3), nn.Conv2d(2, 2, 3), nn.Flatten(), nn.Linear(8, 4), nn.Linear(4, 3)
    )
    composite = Composite(
        dense=lrp.Epsilon(), convolution=lrp.ZPlus(), first=lrp.Flat(), layers={"2": lrp.Gamma(), "5*": LRP0()}
    )
    rules = {b.layer: b.rule for b in relevance(model, torch.rand(1, 1, 8, 8), method=composite).conservation.layers}
    assert rules == {"0": "Flat", "1": "ZPlus", "2": "Gamma", "4": "Epsilon", "5": "LRP0"}
    by_type = Composite(layers={nn.Conv2d: lrp.WSquare(), nn.Module: LRP0()})
    rules = {b.layer: b.rule for b in relevance(model, torch.rand(1, 1, 8, 8), method=by_type).conservation.layers}
    assert rules == {"0": "WSquare", "1": "WSquare", "2": "WSquare", "4": "LRP0", "5": "LRP0"}


def test_normalising_the_image_first_does_not_hide_the_first_layer():
    """(image − mean) / std passes relevance on, and the layer after it still counts as the first."""

    class Normalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.conv((image - 0.5) / 0.25).mean((2, 3))

    torch.manual_seed(0)
    model, image = Normalised(), torch.rand(2, 3, 6, 6)
    box = lrp.epsilon_gamma_box(-2.0, 2.0)
    found = relevance(model, image, method=box, layers=["conv:input"])
    torch.testing.assert_close(found.input, found.layers["conv:input"])
    assert {b.rule for b in found.conservation.layers} == {"", "ZBox"}


def test_integrated_gradients_are_complete():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(3, 4)
    found = relevance(model, x, method=lrp.IntegratedGradients(steps=100, baseline=0.1), layers=["0", "1"])
    winner = model(x).argmax(1, keepdim=True)
    expected = (model(x) - model(torch.full_like(x, 0.1))).gather(1, winner)[:, 0].detach()
    for values in (found.input, found.layers["0"], found.layers["1"]):
        torch.testing.assert_close(values.sum(1), expected, rtol=1e-3, atol=1e-3)


def test_gradient_times_input_with_in_place_layers_behind_a_tap():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))
    plain = nn.Sequential(model[0], nn.ReLU(), model[2])
    x = torch.randn(3, 4)
    found, expected = (relevance(m, x, method=lrp.GradientTimesInput(), layers=["0"]) for m in (model, plain))
    torch.testing.assert_close(found.layers["0"], expected.layers["0"])


PROMISES = {
    "LRP-0": Composite(dense=LRP0(), convolution=LRP0()),
    "epsilon": Composite(dense=Epsilon(1e-9), convolution=Epsilon(1e-9)),
    "gamma": Composite(dense=lrp.Gamma(0.25), convolution=lrp.Gamma(0.25)),
    "z-plus": Composite(dense=lrp.ZPlus(), convolution=lrp.ZPlus()),
    "alpha-beta": Composite(dense=lrp.AlphaBeta(2, 1), convolution=lrp.AlphaBeta(2, 1)),
    "flat at the input": Composite(dense=lrp.ZPlus(), convolution=lrp.ZPlus(), first=lrp.Flat()),
    "w-square at the input": Composite(dense=lrp.ZPlus(), convolution=lrp.ZPlus(), first=lrp.WSquare()),
    "z-box at the input": Composite(dense=lrp.ZPlus(), convolution=lrp.ZPlus(), first=lrp.ZBox(0.0, 1.0)),
    "epsilon-plus-flat": lrp.epsilon_plus_flat(epsilon=1e-9),
}


@pytest.mark.parametrize("composite", PROMISES.values(), ids=PROMISES)
def test_without_biases_every_layer_holds_what_each_sample_began_with(composite):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, bias=False), nn.ReLU(), nn.Conv2d(16, 16, 3, bias=False), nn.ReLU(inplace=True),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 4 * 4, 32, bias=False), nn.ReLU(), nn.Linear(32, 10, bias=False),
    )  # fmt: skip
    layers = [f"{index}:input" for index in (2, 6, 8)]
    found = relevance(model, torch.rand(8, 3, 12, 12), method=composite, layers=layers)
    for values in (found.input, *found.layers.values()):
        torch.testing.assert_close(values.flatten(1).sum(1), found.start, rtol=1e-4, atol=0)
