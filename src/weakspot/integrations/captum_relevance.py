"""Captum: its layer attributions as the relevance that a probe is shown."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.needs import Attribution, RelevanceRequest
from weakspot.integrations.needed import needed


@dataclass(frozen=True)
class CaptumRelevance(Attribution):
    """Relevance of the tapped layers by a layer method of captum, of the class that the model predicts.

    method: a class of `captum.attr`, such as "LayerGradientXActivation", "LayerIntegratedGradients" or "LayerGradCam".
    options: of its `attribute`, such as n_steps or baselines.

    Methods that give one map for all channels, as Grad-CAM does, give every channel of a layer the same relevance.
    """

    method: str = "LayerGradientXActivation"
    options: tuple[tuple[str, Any], ...] = field(default_factory=tuple)

    def attribute(self, request: RelevanceRequest) -> tuple[Tensor, list[Tensor]]:
        """One forward pass for the outputs, then what captum needs for each layer."""
        kind = getattr(needed("captum.attr", "captum"), self.method, None)
        if kind is None or not self.method.startswith("Layer"):
            raise ConfigError(f"captum.attr has no layer method {self.method!r}: name one that begins with Layer")
        if request.task != "classification":
            raise ConfigError(f"captum explains the predicted class here, and the task is {request.task}")
        with torch.no_grad():
            outputs = request.forward(request.inputs)
        wanted = torch.ones(len(outputs), dtype=torch.bool) if request.rows is None else request.rows(outputs).bool()
        return outputs, [self._of(kind, point, outputs, wanted.to(outputs.device), request) for point in request.points]

    def _of(self, kind: Any, point: Any, outputs: Tensor, wanted: Tensor, request: RelevanceRequest) -> Tensor:
        if point.use != 1 or point.side == "activated":
            raise ConfigError(f"captum cannot tell {point.label} apart: tap a layer that runs once, at input or output")
        layer = request.model.get_submodule(point.name)
        held: list[Tensor] = []
        handle = layer.register_forward_hook(lambda _, given, made: held.append(_first(given, made, point.side)))
        try:
            with torch.no_grad():
                request.forward(request.inputs[:1])
        finally:
            handle.remove()
        relevance = torch.zeros((len(outputs), *held[0].shape[1:]), dtype=held[0].dtype, device=outputs.device)
        if wanted.any():
            with torch.enable_grad():
                found = kind(request.forward, layer).attribute(
                    request.inputs[wanted],
                    target=outputs[wanted].argmax(1),
                    attribute_to_layer_input=point.side == "input",
                    **dict(self.options),
                )
            found = found[0] if isinstance(found, tuple) else found
            relevance[wanted] = found.detach().to(relevance.dtype).expand_as(relevance[wanted])
        return relevance


def _first(given: Any, made: Any, side: str) -> Tensor:
    """The first tensor that a layer is given, or gives."""
    value = given if side == "input" else made
    tensor: Tensor = value[0] if isinstance(value, tuple) else value
    return tensor
