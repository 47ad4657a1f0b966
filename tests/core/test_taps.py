"""What is taken from inside a model, against plain computations of the same."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.core.helpers import SEEN, Grab, everything, look_at, whole_numbers
from tests.core.test_layers import ByKeyword
from weakspot.core.driver import examine
from weakspot.core.errors import ProbeError, SubjectError
from weakspot.core.subject import Subject
from weakspot.core.taps import Layout, Tap, Want, channel_means, extremes, wanted
from weakspot.data.sources import ArraySource
from weakspot.relevance import GradientTimesInput, Output, epsilon_plus
from weakspot.relevance.need import LayerRelevance


def plain_means(values, channel_dim):
    """Means by hand, in float64, over everything but samples and channels."""
    moved = values.double().movedim(channel_dim, 1)
    return moved.reshape(*moved.shape[:2], -1).mean(2)


CONV = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2, stride=2), nn.Flatten(), nn.Linear(16, 5)).eval()
LINEAR = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)).eval()
VOLUME = nn.Sequential(nn.Conv3d(1, 2, 3), nn.ReLU(), nn.Conv3d(2, 3, 1)).eval()


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, tokens):
        return self.head(self.norm(F.gelu(self.embed(tokens))).mean(1))


@pytest.mark.parametrize(
    ("net", "shape", "layer", "plain", "dim"),
    [
        (CONV, (2, 6, 6), "0", CONV[0], 1),
        (CONV, (2, 6, 6), "2", CONV[:3], 1),
        (CONV, (2, 6, 6), "4", CONV, 1),
        (LINEAR, (6,), "0", LINEAR[0], 1),
        (VOLUME, (1, 5, 4, 3), "2", VOLUME, 1),
    ],
)
def test_channel_means_extremes_and_maps(net, shape, layer, plain, dim):
    inputs = torch.randn(7, *shape, generator=torch.Generator().manual_seed(1))
    tap, maps = Tap(layer, scaled=True), Tap(layer, maps=True)
    (seen,) = look_at(net, inputs, tap, maps, task="regression")
    with torch.no_grad():
        expected = plain(inputs)
    channels = seen.channels(tap)
    flat = expected.reshape(7, -1).double()
    torch.testing.assert_close(channels.mean.double(), plain_means(expected, dim), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(channels.low[:, 0].double(), flat.min(1).values)
    torch.testing.assert_close(channels.high[:, 0].double(), flat.max(1).values)
    torch.testing.assert_close(seen.maps(maps)[layer], expected)


def test_the_scaled_mean_is_the_mean_of_the_scaled_map():
    inputs = torch.randn(5, 2, 6, 6, generator=torch.Generator().manual_seed(2))
    tap = Tap(("0", "2"), scaled=True)
    (seen,) = look_at(CONV, inputs, tap)
    expected = []
    with torch.no_grad():
        for values in (CONV[0](inputs).double(), CONV[:3](inputs).double()):
            low, high = values.amin((1, 2, 3), keepdim=True), values.amax((1, 2, 3), keepdim=True)
            expected.append(((values - low) / (high - low)).mean((2, 3)))
    torch.testing.assert_close(seen.channels(tap).scaled.double(), torch.cat(expected, 1), rtol=1e-5, atol=1e-6)


def test_a_constant_layer_scales_to_zero():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    nn.init.zeros_(net[0].weight)
    nn.init.ones_(net[0].bias)
    tap = Tap("0", scaled=True)
    (seen,) = look_at(net, torch.randn(5, 3), tap)
    assert torch.equal(seen.channels(tap).scaled, torch.zeros(5, 4))


def test_scaled_means_that_were_not_asked_for_are_an_error():
    tap = Tap("0")
    (seen,) = look_at(LINEAR, torch.randn(2, 6), tap)
    assert seen.channels(tap).low is None
    with pytest.raises(SubjectError, match=r"use Tap\(\.\.\., scaled=True\)"):
        _ = seen.channels(tap).scaled


def test_tokens_are_positions_and_features_are_channels():
    net, inputs = Tokens().eval(), torch.randn(3, 5, 4)
    taps = Tap("embed"), Tap("norm"), Tap("embed", side="activated")
    (seen,) = look_at(net, inputs, *taps)
    with torch.no_grad():
        embedded = net.embed(inputs)
        active = F.gelu(embedded)
        expected = [embedded.mean(1), net.norm(active).mean(1), active.mean(1)]
    for tap, plain in zip(taps, expected, strict=True):
        torch.testing.assert_close(seen.channels(tap).mean, plain)


def test_inside_torchs_own_transformer():
    """In evaluation torch takes a short cut past the layers inside; taps must not be fooled by it."""
    net = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(40, 3)).eval()
    inputs = torch.randn(3, 5, 8)
    tap = Tap("0.linear1", side="activated")
    (seen,) = look_at(net, inputs, tap)
    block = net[0]
    with torch.no_grad():
        attended = block.norm1(inputs + block.self_attn(inputs, inputs, inputs)[0])
        expected = F.relu(block.linear1(attended)).mean(1)
    torch.testing.assert_close(seen.channels(tap).mean, expected)
    torch.testing.assert_close(seen.outputs, net(inputs).detach(), rtol=1e-4, atol=1e-5)


class Reused(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.shared, self.activation, self.last = nn.Linear(3, 3), activation, nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.activation(self.shared(self.activation(self.shared(x)))))


ACTIVATIONS = {
    "module": nn.ReLU,
    "in-place module": lambda: nn.ReLU(inplace=True),
    "function": lambda: F.relu,
    "in-place function": lambda: F.relu_,
    "method": lambda: lambda x: x.relu_(),
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_each_use_of_a_layer_before_and_after_its_activation(kind):
    net, inputs = Reused(ACTIVATIONS[kind]()).eval(), torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        first = net.shared(inputs)
        second = net.shared(first.relu())
    taps = {
        Tap("shared*"): [first, second],
        Tap("shared*", side="activated"): [first.relu(), second.relu()],
        Tap("shared*", side="input"): [inputs, first.relu()],
        Tap("penultimate"): [second.relu()],
    }
    (seen,) = look_at(net, inputs, *taps, *(Tap(tap.layers, tap.side, maps=True) for tap in taps))
    for tap, expected in taps.items():
        torch.testing.assert_close(seen.channels(tap).mean, torch.cat(expected, 1))
        maps = seen.maps(Tap(tap.layers, tap.side, maps=True))
        torch.testing.assert_close(torch.cat(list(maps.values()), 1), torch.cat(expected, 1))
    torch.testing.assert_close(seen.outputs, net.last(second.relu()).detach())


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU(inplace=True)])
def test_activated_goes_through_the_normalisation(activation):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), activation, nn.Flatten(), nn.Linear(72, 2)).eval()
    net[1].running_mean.copy_(torch.tensor([0.3, -0.2]))
    inputs = torch.randn(4, 1, 8, 8)
    taps = [Tap("0", "activated"), Tap("1", "activated"), Tap("0"), Tap("1")]
    (seen,) = look_at(net, inputs, *taps)
    with torch.no_grad():
        conv = net[0](inputs)
        normal = F.batch_norm(conv, net[1].running_mean, net[1].running_var, net[1].weight, net[1].bias)
    for tap, expected in zip(taps, [normal.relu(), normal.relu(), conv, normal], strict=True):
        torch.testing.assert_close(seen.channels(tap).mean, expected.mean((2, 3)))


def test_layers_lie_side_by_side_in_the_order_of_the_model():
    (seen,) = look_at(CONV, torch.randn(2, 2, 6, 6), Tap())
    channels = seen.channels(Tap())
    assert channels.layout.labels == ["0", "2", "4"]
    assert channels.layout.neurons == channels.mean.shape[1] == 3 + 4 + 5
    assert channels.layout.layer_of.tolist() == [0] * 3 + [1] * 4 + [2] * 5
    assert channels.layout.channel_of.tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]


def test_an_empty_layout_has_no_neurons():
    assert Layout(()).neurons == 0


class Several(nn.Module):
    """Inner modules that give tuples and mappings."""

    class Pair(nn.Module):
        def forward(self, x):
            return None, x * 2, x * 3

    class Named(nn.Module):
        def forward(self, x):
            return {"note": "text", "value": x + 1, "other": x + 2}

    def __init__(self):
        super().__init__()
        self.pair, self.named, self.fc = self.Pair(), self.Named(), nn.Linear(3, 2)

    def forward(self, x):
        _, twice, thrice = self.pair(x)
        return self.fc(self.named(twice)["value"] + thrice)


@pytest.mark.parametrize(("layer", "plain"), [("pair", lambda x: 2 * x), ("named", lambda x: 2 * x + 1)])
def test_the_first_tensor_of_a_tuple_or_mapping_is_tapped(layer, plain):
    inputs = torch.randn(4, 3)
    (seen,) = look_at(Several(), inputs, Tap(layer))
    torch.testing.assert_close(seen.channels(Tap(layer)).mean, plain(inputs))


def test_layers_called_by_keyword_are_tapped_at_the_right_use():
    net, inputs = ByKeyword(), torch.randn(4, 3)
    taps = [Tap("first"), Tap("either#2"), Tap("last"), Tap("first", "activated")]
    (seen,) = look_at(net, inputs, *taps)
    with torch.no_grad():
        first = net.first(inputs)
        expected = [first, first.relu(), net.last(first.relu()), first.relu()]
    for tap, plain in zip(taps, expected, strict=True):
        torch.testing.assert_close(seen.channels(tap).mean, plain)


def value_times_gradient(tap):
    """value · ∂(sum of outputs)/∂value."""
    return LayerRelevance(tap, method=GradientTimesInput(), start=Output())


@pytest.mark.parametrize("layer", ["pair", "named", "fc"])
def test_relevance_inside_tuples_and_mappings(layer):
    net, inputs = Several(), torch.randn(4, 3)
    attribution = value_times_gradient(Tap(layer))
    (seen,) = look_at(net, inputs, attribution=attribution)
    weights = net.fc.weight.detach().sum(0)
    expected = {
        "pair": 2 * inputs * weights,
        "named": (2 * inputs + 1) * weights,
        "fc": (5 * inputs + 1) @ net.fc.weight.detach().T + net.fc.bias.detach(),
    }[layer]
    torch.testing.assert_close(seen.relevance(attribution)[layer], expected)
    assert not seen.outputs.requires_grad
    assert all(parameter.grad is None for parameter in net.parameters())


@pytest.mark.parametrize("method", [epsilon_plus(), GradientTimesInput()], ids=["rules", "gradient"])
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_values_after_an_activation_are_taken_in_the_pass_that_finds_relevance(kind, method):
    net, inputs = Reused(ACTIVATIONS[kind]()).eval(), torch.randn(6, 3, generator=torch.Generator().manual_seed(4))
    tap, attribution = Tap("shared", side="activated"), LayerRelevance(Tap("shared"), method=method, start=Output())
    (seen,) = look_at(net, inputs, tap, attribution=attribution)
    with torch.no_grad():
        torch.testing.assert_close(seen.channels(tap).mean[:, :3], net.shared(inputs).relu())
    assert seen.relevance(attribution)["shared"].abs().sum() > 0


@pytest.mark.parametrize("kind", ACTIVATIONS)
@pytest.mark.parametrize("side", ["input", "output"])
def test_relevance_survives_in_place_activations(kind, side):
    net, inputs = Reused(ACTIVATIONS[kind]()).eval(), torch.randn(6, 3, generator=torch.Generator().manual_seed(4))
    attribution = value_times_gradient(Tap("shared#2", side))
    (seen,) = look_at(net, inputs, attribution=attribution)
    with torch.no_grad():
        hidden = net.shared(inputs).relu()
        second = net.shared(hidden)
        from_active = net.last.weight.sum(0).expand_as(second)
        from_second = from_active * (second > 0)
        expected = {
            "input": hidden * (from_second @ net.shared.weight),
            "output": second * from_second,
        }[side]
    (relevance,) = seen.relevance(attribution).values()
    torch.testing.assert_close(relevance, expected)


def test_bfloat16_is_reduced_in_float32():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2)).to(torch.bfloat16).eval()
    inputs = torch.randn(3, 1, 8, 8)
    tap = Tap("0", scaled=True)
    (seen,) = look_at(net, inputs, tap, preprocess=lambda x: x.to(torch.bfloat16))
    with torch.no_grad():
        expected = net[0](inputs.to(torch.bfloat16)).double()
    channels = seen.channels(tap)
    assert channels.mean.dtype == channels.low.dtype == torch.float32
    torch.testing.assert_close(channels.mean.double(), expected.mean((2, 3)), rtol=1e-6, atol=1e-7)
    assert torch.equal(channels.low[:, 0].double(), expected.amin((1, 2, 3)))


def test_double_precision_stays():
    assert channel_means(torch.ones(2, 3, 4, dtype=torch.float64), 1).dtype == torch.float64


def test_channel_means_never_share_memory_with_the_layer():
    values = torch.zeros(2, 3)
    means = channel_means(values, 1)
    values += 1
    assert means.sum() == 0


def test_extremes_by_hand():
    low, high = extremes(torch.tensor([[[1.0, -2.0], [3.0, 0.0]], [[5.0, 5.0], [5.0, 5.0]]]))
    assert (low.tolist(), high.tolist()) == ([[-2.0], [5.0]], [[3.0], [5.0]])


class Windows(nn.Module):
    """Cuts each sample in two windows, which run as samples of their own."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(3, 3), nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.inner(x.reshape(-1, 3)).reshape(len(x), 6))


def test_windows_that_multiply_the_batch_cannot_be_tapped_and_say_so():
    with pytest.raises(
        SubjectError, match=r"inner gives shape \(8, 3\) for 4 samples, expected 4 rows.*cannot be tapped"
    ):
        look_at(Windows(), torch.randn(4, 6), Tap("inner"))
    (seen,) = look_at(Windows(), torch.randn(4, 6), Tap("last"))
    assert seen.channels(Tap("last")).mean.shape == (4, 2)


class Sometimes(nn.Module):
    def __init__(self):
        super().__init__()
        self.always, self.sometimes = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        x = self.always(x)
        return self.sometimes(x) if x.shape[0] == 4 else x


def test_a_layer_that_runs_for_some_batches_only_is_an_error():
    with pytest.raises(SubjectError, match="layer sometimes did not run for this batch"):
        look_at(Sometimes(), torch.randn(5, 3), Tap("sometimes"), batch_size=4)
    assert len(look_at(Sometimes(), torch.randn(5, 3), Tap("always"), batch_size=4)) == 2


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        x = torch.relu(self.fc(x))
        if len(x) > 1:
            raise RuntimeError("out of luck")
        return x


@pytest.mark.parametrize("side", ["input", "output", "activated"])
def test_hooks_are_gone_after_an_exception_in_the_model(side):
    net = Fails().train()
    before = everything(net)
    with pytest.raises(RuntimeError, match="out of luck"):
        look_at(net, torch.randn(4, 3), Tap("fc", side))
    assert everything(net) == before
    assert not torch.overrides._get_current_function_mode_stack()


def test_the_model_meets_the_same_numbers_with_and_without_taps():
    inputs = whole_numbers(5, 2, 6, 6)
    every = [Tap(side=side, scaled=True) for side in ("input", "output", "activated")]
    (seen,) = look_at(CONV, inputs, *every)
    assert torch.equal(seen.outputs, CONV(inputs).detach())


def test_taps_may_be_given_as_a_list():
    assert Tap(["a", "b"]) == Tap(("a", "b"))
    assert hash(Tap(["a"])) == hash(Tap(("a",)))


class Forgetful(Grab):
    """Reads a tap that it did not ask for."""

    def observe(self, seen):
        seen.channels(Tap("0"))


class ForgetfulOfMaps(Grab):
    """Reads maps that it did not ask for."""

    def observe(self, seen):
        seen.maps(Tap("0"))


@pytest.mark.parametrize("probe", [Forgetful, ForgetfulOfMaps])
def test_reading_a_tap_that_was_not_asked_for_is_an_error_of_the_probe(probe):
    with pytest.raises(ProbeError, match="nothing was taken at 0: the probe's needs do not name this tap"):
        examine(Subject(LINEAR), ArraySource(torch.randn(2, 6)), [probe()])


def test_the_union_of_wishes():
    first, second = object(), object()
    wants = wanted([(Tap(scaled=True), (first,)), (Tap(maps=True), (first, second))])
    assert wants == {first: Want(mean=True, extremes=True, maps=True), second: Want(maps=True)}


def test_only_the_samples_that_a_probe_wants_reach_it():
    inputs = torch.randn(4, 6)
    (seen,) = look_at(LINEAR, inputs, Tap("0", scaled=True), Tap("0", maps=True))
    from dataclasses import replace

    import numpy as np

    some = replace(seen, rows=np.array([True, False, False, True]))
    with torch.no_grad():
        expected = LINEAR[0](inputs)[[0, 3]]
    channels = some.channels(Tap("0", scaled=True))
    torch.testing.assert_close(channels.mean, expected)
    torch.testing.assert_close(channels.high[:, 0], expected.amax(1))
    torch.testing.assert_close(some.maps(Tap("0", maps=True))["0"], expected)
    torch.testing.assert_close(some.inputs, inputs[[0, 3]])
    assert (some.ids, len(some.outputs)) == (("0", "3"), 2)
    assert math.isclose(len(SEEN), 1)
