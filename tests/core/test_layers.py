"""Which layers a model has, and what a choice of layers means."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.core.helpers import everything
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.layers import ROOT, Point, first_tensor, list_layers, select_layers
from weakspot.core.subject import Subject
from weakspot.coverage import NeuronCoverage
from weakspot.data.sources import ArraySource


def layers_of(model, *shape):
    return Subject(model).layers(torch.randn(1, *shape))


class Functional(nn.Module):
    """One convolution, one linear, and whatever activation is put between them."""

    def __init__(self, between):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2 * 36, 3)
        self.between = between

    def forward(self, images):
        return self.fc(self.between(self, self.conv(images)).flatten(1))


def test_every_layer_that_runs_is_listed_in_order_with_shapes():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 5))
    found = layers_of(net, 3, 8, 8)
    assert [(x.label, x.kind, x.shape, x.input_shape, x.weighted) for x in found] == [
        ("0", "Conv2d", (4, 6, 6), (3, 8, 8), True),
        ("1", "ReLU", (4, 6, 6), (4, 6, 6), False),
        ("2", "Flatten", (144,), (4, 6, 6), False),
        ("3", "Linear", (5,), (144,), True),
    ]


def test_a_module_that_does_not_run_is_not_listed():
    net = Functional(lambda net, x: x)
    assert "norm" not in [layer.label for layer in layers_of(net, 1, 8, 8)]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (lambda net, x: F.relu(x), "relu"),
        (lambda net, x: F.relu(x, inplace=True), "relu"),
        (lambda net, x: x.relu(), "relu"),
        (lambda net, x: x.relu_(), "relu_"),
        (lambda net, x: torch.tanh(x), "tanh"),
        (lambda net, x: F.leaky_relu(x, 0.1), "leaky_relu"),
        (lambda net, x: F.gelu(x), "gelu"),
        (lambda net, x: x.clamp(min=0), "clamp"),
        (lambda net, x: F.relu(net.norm(x)), "relu"),
        (lambda net, x: F.silu(F.batch_norm(x, torch.zeros(2), torch.ones(2))), "silu"),
        (lambda net, x: x, None),
        (lambda net, x: F.relu(x + x), None),
        (lambda net, x: F.relu(x.flip(2)), None),
    ],
)
def test_the_activation_that_follows_a_layer(between, expected):
    assert {x.label: x.activation for x in layers_of(Functional(between), 1, 8, 8)}["conv"] == expected


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU(inplace=True)])
def test_the_activation_behind_a_normalisation_belongs_to_both(activation):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), activation)
    assert [layer.activation for layer in layers_of(net, 1, 8, 8)] == ["relu", "relu", None]


def test_the_activation_behind_a_container_belongs_to_the_layer_inside_too():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))

        def forward(self, x):
            return F.relu(self.block(x))

    assert {x.label: x.activation for x in layers_of(Net(), 3)} == {"block.0": None, "block.1": "relu", "block": "relu"}


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.last = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.shared(torch.relu(self.shared(torch.tanh(self.shared(x))))))


def test_each_use_of_a_module_is_a_layer_of_its_own():
    found = layers_of(Reused(), 3)
    assert [(x.label, x.use) for x in found] == [("shared", 1), ("shared#2", 2), ("shared#3", 3), ("last", 1)]
    assert [x.activation for x in found] == ["tanh", "relu", None, None]


class ByKeyword(nn.Module):
    """Calls its layers by keyword, and one of them first with nothing to tap."""

    class Either(nn.Module):
        def forward(self, names=None, values=None):
            return names if values is None else values

    def __init__(self):
        super().__init__()
        self.first, self.either, self.last = nn.Linear(3, 4), self.Either(), nn.Linear(4, 2)

    def forward(self, x):
        self.either(names=["text"])
        return self.last(input=self.either(values=torch.relu(self.first(input=x))))


def test_layers_called_by_keyword_are_layers_too():
    found = layers_of(ByKeyword(), 3)
    assert [(x.label, x.input_shape, x.activation) for x in found] == [
        ("first", (3,), "relu"),
        ("either#2", (4,), None),
        ("last", (4,), None),
    ]


def test_channels_are_last_where_the_module_says_so():
    net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6))
    assert [(x.shape, x.channel_dim) for x in layers_of(net, 5, 4)] == [((5, 6), 2), ((5, 6), 2)]


def test_what_does_not_say_where_its_channels_are_has_them_where_the_layer_before_has():
    tokens = nn.Sequential(nn.LayerNorm(6), nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout()))
    images = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Identity())
    dims = {layer.label: layer.channel_dim for layer in layers_of(tokens, 5, 6)}
    assert dims == {"0": 2, "1.0": 2, "1.1": 2, "1.2": 2, "1": 2}
    assert {layer.channel_dim for layer in layers_of(images, 3, 8, 8)} == {1}


def test_listing_leaves_the_model_as_it_was():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).train()
    before = everything(net)
    layers_of(net, 1, 8, 8)
    assert everything(net) == before


def test_listing_leaves_the_model_as_it_was_after_an_error():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 4)).train()
    before = everything(net)
    with pytest.raises(RuntimeError):
        layers_of(net, 3)
    assert everything(net) == before
    assert not torch.overrides._get_current_function_mode_stack()


@pytest.fixture
def found():
    return layers_of(Reused(), 3)


@pytest.mark.parametrize(
    ("chosen", "labels"),
    [
        ("all", ["shared", "shared#2", "shared#3", "last"]),
        ("shared", ["shared"]),
        ("shared*", ["shared", "shared#2", "shared#3"]),
        (("last", "shared#2"), ["shared#2", "last"]),
        (["last"], ["last"]),
        ("*", ["shared", "shared#2", "shared#3", "last"]),
    ],
)
def test_choices_of_layers(found, chosen, labels):
    assert [point.label for point in select_layers(found, chosen, "output")] == labels


def test_penultimate_is_the_input_of_the_last_weighted_layer(found):
    assert select_layers(found, "penultimate", "output") == (Point("last", 1, "input", 1, 3),)


def test_penultimate_of_a_reused_last_layer_is_its_last_use():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc(self.fc(x))

    assert select_layers(layers_of(Net(), 3), "penultimate", "output")[0].label == "fc#2 (input)"


def test_penultimate_skips_what_follows_the_last_weighted_layer():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(1))
    (point,) = select_layers(layers_of(net, 3), "penultimate", "output")
    assert (point.name, point.side, point.channels) == ("2", "input", 4)


@pytest.mark.parametrize("chosen", ["penultimate", "all"])
def test_without_weighted_layers_they_must_be_named(chosen):
    net = nn.Sequential(nn.ReLU())
    with pytest.raises(SubjectError, match=f"no convolution or linear layer: name the layer instead of '{chosen}'"):
        select_layers(layers_of(net, 3), chosen, "output")


@pytest.mark.parametrize("net", [nn.Linear(3, 2), nn.Conv1d(1, 2, 1)], ids=["linear", "convolution"])
def test_a_layer_alone_is_a_layer(net):
    inputs = torch.rand(5, *([1] if isinstance(net, nn.Conv1d) else []), 3)
    (layer,) = list_layers(net, net, inputs[:1])
    assert (layer.label, layer.weighted) == (ROOT, True)
    (point,) = select_layers([layer], "all", "output")
    (found,) = examine(Subject(net, task="regression"), ArraySource(inputs.numpy()), [NeuronCoverage(threshold=0.5)])
    assert point.channels == 2 and found.table["layer"].to_pylist() == [ROOT]
    with torch.no_grad():  # each input's values are scaled to [0, 1] before a channel's mean is taken
        values = net(inputs).reshape(5, 2, -1)
    low, high = values.amin((1, 2), keepdim=True), values.amax((1, 2), keepdim=True)
    covered = (((values - low) / (high - low)).mean(2) > 0.5).any(0)
    assert found.summary["coverage"].value == covered.float().mean()


def test_activated_falls_back_to_the_output_where_nothing_follows(found):
    assert [p.side for p in select_layers(found, "all", "activated")] == ["activated", "activated", "output", "output"]


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("shard", "did you mean shared"), ("nothing like it", "`weakspot layers` lists them"), (("last", "x"), "'x'")],
)
def test_an_unknown_layer_is_named_with_the_nearest(found, asked, hint):
    with pytest.raises(ConfigError, match=hint):
        select_layers(found, asked, "output")


def test_a_layer_with_one_number_per_sample_has_no_channels():
    class Norm(nn.Module):
        def forward(self, x):
            return x.sum(1)

    with pytest.raises(SubjectError, match=r"layer 0 has one number per sample.*choose another layer"):
        select_layers(layers_of(nn.Sequential(Norm(), nn.Unflatten(0, (1, 1))), 3), "0", "output")


def test_the_first_tensor_of_nested_outputs():
    first, second = torch.zeros(1), torch.ones(1)
    assert first_tensor((None, first, second), "x") is first
    assert first_tensor({"a": "text", "b": second}, "x") is second
    with pytest.raises(SubjectError, match="layer deep gives str, which holds no tensor"):
        first_tensor("text", "deep")
