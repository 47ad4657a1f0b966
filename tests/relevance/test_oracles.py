"""The same numbers as zennit and captum where those work."""

import pytest
import torch
from torch import nn

from weakspot import relevance as lrp
from weakspot.relevance import AlphaBeta, Composite, Epsilon, Gamma, ZPlus, relevance

RULES = {
    "epsilon": (Epsilon(1e-2), lambda z: z.rules.Epsilon(epsilon=1e-2)),
    "gamma": (Gamma(0.25), lambda z: z.rules.Gamma(gamma=0.25)),
    "z-plus": (ZPlus(), lambda z: z.rules.ZPlus()),
    "alpha-beta": (AlphaBeta(2, 1), lambda z: z.rules.AlphaBeta(alpha=2, beta=1)),
}


def sequential() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, stride=2), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5),
    )  # fmt: skip


def by_zennit(zennit, model: nn.Module, x: torch.Tensor, rule, canonizers=()) -> torch.Tensor:
    composite = zennit.composites.LayerMapComposite(
        layer_map=[
            *zennit.composites.layer_map_base(),
            (zennit.types.Convolution, rule),
            (zennit.types.Linear, rule),
        ],
        canonizers=list(canonizers),
    )
    x = x.clone().requires_grad_()
    with composite.context(model) as modified:
        output = modified(x)
        start = torch.zeros_like(output).scatter_(1, output.argmax(1, keepdim=True), 1.0) * output.detach()
        (found,) = torch.autograd.grad(output, x, start)
    return found


def agree(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float = 1e-5) -> None:
    assert theirs.abs().max() > 1e-6, "an oracle of zeros proves nothing"
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * float(theirs.abs().max()))


@pytest.mark.parametrize("name", RULES)
def test_equal_to_zennit_on_a_sequential_net(zennit, name):
    torch.manual_seed(0)
    model, x = sequential(), torch.randn(3, 3, 14, 14)
    rule, theirs = RULES[name]
    ours = relevance(model, x, method=Composite(dense=rule, convolution=rule)).input
    agree(ours, by_zennit(zennit, model, x, theirs(zennit)))


def residual_net(zennit) -> nn.Module:
    class Block(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            # zennit merges each batch norm into the layer registered before it
            self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
            self.relu1 = nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
            self.relu2, self.sum, self.as_people_write_it = nn.ReLU(), zennit.layer.Sum(), False

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
            if self.as_people_write_it:
                y += x
                return torch.relu_(y)
            return self.relu2(self.sum(torch.stack([x, y], dim=-1)))

    from tests.relevance.networks import lived_in

    return lived_in(
        nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            Block(6),
            Block(6),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, 5),
        )
    )


@pytest.mark.parametrize("name", RULES)
def test_equal_to_zennit_on_a_residual_net_with_merged_batch_norm(zennit, name):
    """zennit needs its own Sum module and a canonizer that rewrites the weights; we take the net as it is."""
    torch.manual_seed(1)
    model, x = residual_net(zennit), torch.randn(3, 3, 10, 10)
    rule, theirs = RULES[name]
    ours = relevance(model, x, method=Composite(dense=rule, convolution=rule)).input
    merged = by_zennit(zennit, model, x, theirs(zennit), [zennit.canonizers.SequentialMergeBatchNorm()])
    agree(ours, merged)
    model[3].as_people_write_it = model[4].as_people_write_it = True
    agree(relevance(model, x, method=Composite(dense=rule, convolution=rule)).input, merged)


@pytest.mark.parametrize("preset", ["EpsilonPlus", "EpsilonAlpha2Beta1", "EpsilonGammaBox", "EpsilonPlusFlat"])
def test_presets_equal_zennit(zennit, preset):
    torch.manual_seed(2)
    model, x = sequential(), torch.rand(3, 3, 14, 14)
    low, high = torch.zeros_like(x), torch.ones_like(x)
    options = {"low": low, "high": high} if preset == "EpsilonGammaBox" else {}
    theirs = getattr(zennit.composites, preset)(**options)
    ours = {
        "EpsilonPlus": lrp.epsilon_plus(),
        "EpsilonAlpha2Beta1": lrp.epsilon_alpha2_beta1(),
        "EpsilonGammaBox": lrp.epsilon_gamma_box(0.0, 1.0),
        "EpsilonPlusFlat": lrp.epsilon_plus_flat(),
    }[preset]
    x_ = x.clone().requires_grad_()
    with theirs.context(model) as modified:
        output = modified(x_)
        start = torch.zeros_like(output).scatter_(1, output.argmax(1, keepdim=True), 1.0) * output.detach()
        (expected,) = torch.autograd.grad(output, x_, start)
    agree(relevance(model, x, method=ours).input, expected)


def test_equal_to_captum_on_a_vgg_style_net(captum):
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
    )  # fmt: skip

    class Vgg(nn.Module):  # captum refuses nn.Flatten
        def __init__(self) -> None:
            super().__init__()
            self.features, self.head = model, nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))

        def forward(self, x):
            return self.head(torch.flatten(self.features(x), 1))

    net, x = Vgg().double(), torch.randn(3, 3, 12, 12, dtype=torch.float64)
    from captum.attr._utils.lrp_rules import EpsilonRule

    for module in net.modules():
        if not list(module.children()):
            module.rule = EpsilonRule(epsilon=1e-9)
    theirs = captum.attr.LRP(net).attribute(x.clone().requires_grad_(), target=net(x).argmax(1)).detach()
    for module in net.modules():
        if hasattr(module, "rule"):
            del module.rule
    ours = relevance(net, x, method=Composite(dense=Epsilon(1e-9), convolution=Epsilon(1e-9), stabiliser=1e-9)).input
    agree(ours, theirs, 1e-5)


def test_gradient_times_input_equals_captum(captum):
    torch.manual_seed(4)
    model, x = sequential(), torch.randn(3, 3, 14, 14)
    theirs = captum.attr.InputXGradient(model).attribute(x.clone().requires_grad_(), target=model(x).argmax(1))
    agree(relevance(model, x, method=lrp.GradientTimesInput()).input, theirs.detach())


def test_integrated_gradients_equal_captum(captum):
    torch.manual_seed(5)
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(4, 6)
    target = model(x).argmax(1)
    theirs = captum.attr.IntegratedGradients(model).attribute(x, target=target, n_steps=200)
    found = relevance(model, x, method=lrp.IntegratedGradients(steps=200), layers=["0"])
    agree(found.input, theirs.float(), 1e-3)
    layer = captum.attr.LayerConductance(model, model[0]).attribute(x, target=target, n_steps=400)
    agree(found.layers["0"], layer.detach().float(), 1e-2)
