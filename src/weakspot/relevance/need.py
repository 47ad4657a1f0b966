"""Relevance as a need of a probe (`core/needs.py`), computed in the same forward pass for all probes."""

from dataclasses import dataclass, field

import torch

from weakspot.core.errors import ConfigError
from weakspot.core.layers import Point
from weakspot.core.needs import Attributed, Attribution, RelevanceRequest
from weakspot.core.tasks import Task
from weakspot.relevance.composites import Composite, epsilon_plus
from weakspot.relevance.propagation import Method, propagation
from weakspot.relevance.starts import Output, Start, Winner


@dataclass(frozen=True)
class LayerRelevance(Attribution):
    """Relevance of the tapped layers, by a composite of rules or by gradients.

    method: a composite, `GradientTimesInput()` or `IntegratedGradients()`.
    start: which outputs to explain; by default the winning logit of a classifier, and all outputs of a regression.
    """

    method: Method = field(default_factory=epsilon_plus)
    start: Start | None = None

    def attribute(self, request: RelevanceRequest) -> Attributed:
        """One forward pass under observation, and one backward pass as far as the layers."""
        start = self.start or default_start(request.task)
        layers = [_asked(point) for point in request.points]
        watched = propagation(request.model, self.method, layers=layers, conservation=False, forward=request.forward)
        with torch.enable_grad(), watched as trace:
            outputs = request.forward(trace.watch(request.inputs))
        relevance = trace.relevance(outputs, start=start, rows=request.rows, to_inputs=False)
        maps = [relevance.layers[_caught(point)] for point in request.points]
        return Attributed(relevance.outputs, maps, relevance.start if isinstance(self.method, Composite) else None)


def default_start(task: Task) -> Start:
    """What is explained unless it is said."""
    if task in ("classification", "multilabel"):
        return Winner()
    if task in ("regression", "keypoints"):
        return Output()
    raise ConfigError("which outputs of a segmentation are to be explained? say it with start=Region(...)")


def _asked(point: Point) -> str:
    """The name by which the layer is asked for: all its uses are caught."""
    if point.side == "activated":
        raise ConfigError(
            f"relevance is that of a layer's input or output, not of what follows it: tap {point.name!r} at side "
            "'output', or the activation's own module"
        )
    return point.name + (":input" if point.side == "input" else "")


def _caught(point: Point) -> str:
    use = "" if point.use == 1 else f"#{point.use}"
    return f"{point.name}{use}" + (":input" if point.side == "input" else "")
