"""zennit and captum as they can be brought to run on the trained networks; the helpers of the relevance benchmarks."""

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from measuring import SHARED, architectures
from torch import Tensor, nn

Attribute = Callable[[Tensor], Tensor]


def network(name: str, device: str) -> nn.Module:
    """A trained network for street-view house numbers."""
    models = architectures()
    net = models.build(name, "svhn")
    return models.load_half_precision(net, str(SHARED / "models" / f"{name}-svhn.safetensors")).to(device)


def images(count: int, device: str) -> tuple[Tensor, Tensor]:
    """Real test images in [0, 1] and their labels."""
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        pixels, labels = stored["x_test"][:count], stored["y_test"][:count]
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).to(device), torch.from_numpy(labels).to(device)


def winner(outputs: Tensor) -> Tensor:
    """Relevance starts with the winning logit."""
    return torch.zeros_like(outputs).scatter_(1, outputs.argmax(1, keepdim=True), 1.0) * outputs.detach()


@contextmanager
def zennit_epsilon_plus(net: nn.Module) -> Iterator[Attribute]:
    """zennit's EpsilonPlus with merged batch norms; its hooks stay on the model within the block."""
    sys.modules.setdefault("zennit.torchvision", types.ModuleType("zennit.torchvision"))
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import EpsilonPlus

    composite = EpsilonPlus(canonizers=[SequentialMergeBatchNorm()])
    with composite.context(net) as modified:

        def attribute(batch: Tensor) -> Tensor:
            batch = batch.clone().requires_grad_()
            outputs = modified(batch)
            (found,) = torch.autograd.grad(outputs, batch, winner(outputs))
            return found

        yield attribute


@contextmanager
def captum_epsilon_plus(net: nn.Module) -> Iterator[Attribute]:
    """captum's LRP with ε for dense and α1β0 for convolutional layers.

    It refuses modules it does not know; those are given its ε rule here, so that it runs at all.
    """
    from captum.attr import LRP
    from captum.attr._utils.lrp_rules import Alpha1_Beta0_Rule, EpsilonRule

    leaves = [module for module in net.modules() if not list(module.children())]

    def attribute(batch: Tensor) -> Tensor:
        for module in leaves:  # captum takes the rules off again after each call
            convolution = isinstance(module, nn.Conv2d)

            module.rule = Alpha1_Beta0_Rule() if convolution else EpsilonRule()
        batch = batch.clone().requires_grad_()
        found: Any = LRP(net).attribute(batch, target=net(batch).argmax(1))
        return found.detach()

    yield attribute
