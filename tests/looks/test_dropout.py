"""Monte-Carlo dropout whose masks belong to the sample, the look and the call, and to nothing else."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from weakspot.core.errors import SubjectError
from weakspot.core.subject import Subject
from weakspot.looks import McDropout

IDS = [f"s{i}" for i in range(6)]


def sampled(net, inputs, ids=None, number=1, seed=0):
    subject = Subject(net)
    with subject.borrowed() as forward, torch.no_grad():
        return McDropout(seed).outputs(forward, inputs, ids or IDS[: len(inputs)], number)


class Drops(nn.Module):
    """Only a dropout, called in the way that is chosen."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


ELEMENT = {
    "module": nn.Dropout(0.5),
    "in-place module": nn.Dropout(0.5, inplace=True),
    "function": Drops(lambda x: F.dropout(x, 0.5)),
    "function, off": Drops(lambda x: F.dropout(x, 0.5, training=False)),
    "function, by keyword": Drops(lambda x: F.dropout(input=x, p=0.5, training=False)),
    "in-place function": Drops(lambda x: F.dropout(x, 0.5, False, True)),
    "torch's": Drops(lambda x: torch.dropout(x, 0.5, train=False)),
}
CHANNEL = {
    "1d": (nn.Dropout1d(0.5), (3, 4)),
    "2d": (nn.Dropout2d(0.5), (3, 4, 4)),
    "3d": (nn.Dropout3d(0.5), (3, 2, 2, 2)),
    "in place": (nn.Dropout2d(0.5, inplace=True), (3, 4, 4)),
    "function, off": (Drops(lambda x: F.dropout2d(x, 0.5, training=False)), (3, 4, 4)),
    "torch's": (Drops(lambda x: torch.feature_dropout(x, 0.5, False)), (3, 4, 4)),
}


@pytest.mark.parametrize("net", ELEMENT.values(), ids=ELEMENT)
def test_every_kind_of_call_drops_elements(net):
    outputs = sampled(nn.Sequential(net), torch.ones(6, 400))
    assert set(outputs.unique().tolist()) == {0.0, 2.0}
    assert 0.4 < float((outputs == 0).float().mean()) < 0.6
    assert len({tuple(row.tolist()) for row in outputs}) == 6
    torch.testing.assert_close(outputs, sampled(nn.Sequential(nn.Dropout(0.5)), torch.ones(6, 400)))


@pytest.mark.parametrize(("net", "shape"), CHANNEL.values(), ids=CHANNEL)
def test_channel_dropout_drops_whole_channels(net, shape):
    outputs = sampled(nn.Sequential(net), torch.ones(6, *shape), number=3)
    per_channel = outputs.flatten(2)
    assert torch.equal(per_channel, per_channel[..., :1].expand_as(per_channel))
    assert set(per_channel.unique().tolist()) == {0.0, 2.0}


class Net(nn.Module):
    """Convolution, batch normalisation, two dropouts."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.channel = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout2d(0.5)
        self.element, self.fc = nn.Dropout(0.25, inplace=True), nn.Linear(4 * 36, 3)

    def forward(self, x):
        return self.fc(self.element(self.channel(F.relu(self.norm(self.conv(x)))).flatten(1)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    made = Net()
    made.norm.running_mean.fill_(0.1)
    return made.double().train()


@pytest.fixture
def images():
    return torch.randn(6, 1, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_masks_depend_on_neither_the_batch_nor_its_order(net, images):
    together = sampled(net, images)
    for rows in ([2], [5, 0], [3, 4, 1], [5, 4, 3, 2, 1, 0]):
        part = sampled(net, images[rows], [IDS[row] for row in rows])
        torch.testing.assert_close(part, together[rows], rtol=1e-12, atol=1e-12)


def test_the_same_look_is_the_same_and_another_is_another(net, images):
    first = sampled(net, images)
    assert torch.equal(sampled(net, images), first)
    assert torch.equal(sampled(net, images, number=2), sampled(net, images, number=2))
    for other in (sampled(net, images, number=2), sampled(net, images, seed=1), sampled(net, images, [*"abcdef"])):
        assert not torch.isclose(other, first).any()


def test_torchs_own_chance_is_neither_used_nor_moved(net, images):
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = sampled(net, images)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(sampled(net, images), first)


def test_two_dropouts_of_one_forward_draw_different_masks():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return torch.cat([self.drop(x), self.drop(x)], 1)

    first, second = sampled(Twice(), torch.ones(4, 200)).split(200, 1)
    assert 0.3 < float((first == second).float().mean()) < 0.7


def test_batch_normalisation_stays_in_evaluation(net, images):
    """By hand: the masks seen in the outputs of the dropout, everything else in evaluation."""
    captured = {}
    hooks = [
        module.register_forward_hook(lambda m, a, o, name=name: captured.__setitem__(name, (a[0].clone(), o.clone())))
        for name, module in net.named_children()
    ]
    sampled(net, images)
    for hook in hooks:
        hook.remove()
    normal = net.norm
    shape = (1, 4, 1, 1)
    expected = (captured["conv"][1] - normal.running_mean.reshape(shape)) / (
        normal.running_var.reshape(shape) + normal.eps
    ).sqrt() * normal.weight.reshape(shape) + normal.bias.reshape(shape)
    torch.testing.assert_close(captured["norm"][1], expected)
    dropped, kept = captured["channel"]
    ratio = (kept / dropped.where(dropped != 0, 1)).where(dropped != 0, -1)
    assert set(ratio.unique().round(decimals=6).tolist()) == {-1.0, 0.0, 2.0}


def test_training_flags_and_buffers_are_not_touched(net, images):
    flags = [module.training for module in net.modules()]
    buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
    net.channel.train(False)
    flags = [module.training for module in net.modules()]
    sampled(net, images)
    assert [module.training for module in net.modules()] == flags
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in net.named_buffers())


def test_the_mean_over_many_draws_is_the_value():
    inputs = torch.arange(1.0, 6.0).expand(6, 5).contiguous()
    net, draws = nn.Sequential(nn.Dropout(0.3)), 2000
    outputs = torch.stack([sampled(net, inputs, number=number) for number in range(1, draws + 1)])
    spread = inputs * (0.3 / 0.7) ** 0.5 / draws**0.5
    assert ((outputs.mean(0) - inputs).abs() < 4.5 * spread).all()
    assert ((outputs == 0).float().mean((0, 1)) - 0.3).abs().max() < 0.03


def test_the_factor_is_torchs():
    outputs = sampled(nn.Sequential(nn.Dropout(0.2)), torch.full((6, 50), 3.0))
    torch.testing.assert_close(outputs.max(), torch.tensor(3.0 / 0.8))


def test_nothing_dropped_and_everything_dropped():
    inputs = torch.randn(6, 5)
    assert torch.equal(sampled(nn.Sequential(nn.Dropout(0.5), nn.Dropout(1.0)), inputs), torch.zeros(6, 5))
    with_half = sampled(nn.Sequential(nn.Dropout(0.0), nn.Dropout(0.5)), inputs)
    assert ((with_half == 0) | torch.isclose(with_half, 2 * inputs)).all()


def test_in_place_dropout_does_not_reach_the_samples_inputs():
    inputs = torch.ones(6, 50)
    sampled(nn.Sequential(nn.Dropout(0.5, inplace=True)), inputs)
    assert torch.equal(inputs, torch.ones(6, 50))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_precision_stays(dtype):
    outputs = sampled(nn.Sequential(nn.Dropout(0.5)), torch.ones(6, 50, dtype=dtype))
    assert outputs.dtype == dtype
    assert set(outputs.unique().tolist()) == {0.0, 2.0}


def test_dropout_inside_torchs_transformer_is_met():
    torch.manual_seed(0)
    net = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True))
    inputs = torch.randn(6, 5, 8)
    first, second = sampled(net, inputs), sampled(net, inputs, number=2)
    assert not torch.isclose(first, second).all()
    torch.testing.assert_close(sampled(net, inputs[[3]], [IDS[3]]), first[[3]])


def test_a_model_without_dropout_is_an_error():
    with pytest.raises(SubjectError, match=r"met no dropout.*use an ensemble"):
        sampled(nn.Linear(3, 2), torch.zeros(2, 3))


@pytest.mark.parametrize("net", [nn.AlphaDropout(), nn.FeatureAlphaDropout()])
def test_alpha_dropout_is_refused(net):
    with pytest.raises(SubjectError, match="alpha_dropout has no stateless form yet"):
        sampled(nn.Sequential(net), torch.zeros(2, 3, 4))


class Slices(nn.Module):
    """Sees the slices of a volume as a batch of images, as a 2-D net on volumes does."""

    def __init__(self, drop):
        super().__init__()
        self.drop = drop

    def forward(self, x):
        return self.drop(x.flatten(0, 1)).unflatten(0, x.shape[:2])


@pytest.mark.parametrize("drop", [nn.Dropout(0.5), nn.Dropout2d(0.5)])
def test_slices_of_a_volume_as_a_batch_keep_to_their_sample(drop):
    volumes = torch.ones(4, 5, 12, 4, 4)
    together = sampled(Slices(drop), volumes)
    for rows in ([2], [3, 0]):
        assert torch.equal(sampled(Slices(drop), volumes[rows], [IDS[row] for row in rows]), together[rows])
    slices = together.flatten(0, 1).flatten(1)
    assert len({tuple(own.tolist()) for own in slices}) > 15
    assert set(slices.unique().tolist()) == {0.0, 2.0}


def test_dropout_behind_a_mix_of_samples_is_an_error():
    net = nn.Sequential(nn.Flatten(0, 1), nn.Unflatten(0, (3, 4)), nn.Dropout(0.5), nn.Flatten(0, 1))
    with pytest.raises(SubjectError, match=r"dropout meets 3 rows for 2 samples.*batches of 1"):
        sampled(net, torch.ones(2, 6, 4))


def test_the_mode_is_gone_after_an_error():
    with pytest.raises(RuntimeError):
        sampled(nn.Sequential(nn.Dropout(0.5), nn.Linear(7, 2)), torch.ones(2, 3))
    assert not torch.overrides._get_current_function_mode_stack()
