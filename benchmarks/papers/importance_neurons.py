"""DeepImportance's first question, Table 2 and Figure 4: do important neurons move more than random ones?

    python benchmarks/papers/importance_neurons.py [--nets LeNet-5 …] [--device cuda] [--figures FOLDER]

writes importance_neurons.csv beside this script; with --figures also the pictures of Figures 3 to 5. Data and networks
as in importance_nets.py.

The tenth of the pixels with the highest relevance is overwritten, as in the paper: with 0 where the score, scaled to at
most 1, is above 0.5, else with 1. How far the values of m neurons of the subject layer move (Euclidean distance, over
the test images) is measured for the m most important neurons and for m drawn at random, five times; m is 6, for the
steering net 8. Two things stand beside that the paper does not have: the m neurons with the largest mean value on the
training images, which cost no relevance at all, and random pixels overwritten in the same way.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import steering_nets
from importance_nets import PUBLISHED, Case, case
from measuring import machine, read_rows, write_rows

from weakspot import Plan, Run, Step, Subject, examine
from weakspot.attacks import Attack, Attacked, GaussianNoise, RelevantNoise
from weakspot.attacks.attack import Case as Batch
from weakspot.attacks.noise import random_pixels
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import limited
from weakspot.coverage.importance_probes import NeuronImportance
from weakspot.coverage.trace_probes import LayerTraces
from weakspot.relevance import Output, Winner, deep_importance, relevance

TABLE_2 = {
    "LeNet-1": (0.07, 0.28), "LeNet-4": (1.09, 4.79), "LeNet-5": (0.93, 4.18), "ConvNet": (47.22, 112.03),
    "DAVE-2": (1.16, 2.83),
}  # fmt: skip
"""Published distances: random neurons, important neurons."""
DRAWS = 5
HOW = ExecutionOptions(batch_size=1000, shard_size=10_000)
BLUE, RED = (90, 120, 170), (220, 60, 40)


@dataclass(frozen=True, kw_only=True)
class Overwritten(Attack):
    """The tenth of the pixels with the highest relevance, or a random tenth, set to 0 or 1 by their scores."""

    share: float = 0.1
    at_random: bool = False

    def change(self, case: Batch) -> Tensor:
        score = pixel_relevance(case.subject, case.inputs)
        score = score / score.amax(1, keepdim=True).clamp(min=1e-12)
        count = int(self.share * score.shape[1])
        at_random = random_pixels(case.ids, score.shape[1], count, seed=case.seed).to(score.device)
        chosen = at_random if self.at_random else score.argsort(1, descending=True)[:, :count]
        values = torch.where(score.gather(1, chosen) > 0.5, 0.0, 1.0).to(case.inputs)
        flat = case.inputs.flatten(2)
        places = chosen[:, None].expand(-1, flat.shape[1], -1)
        return flat.scatter(2, places, values[:, None].expand_as(places)).view_as(case.inputs)


def pixel_relevance(subject: Subject, inputs: Tensor) -> Tensor:
    """Summed over channels, (samples, pixels); the subject must be borrowed."""
    model = subject.model
    assert isinstance(model, nn.Module)
    start = Winner() if subject.task == "classification" else Output()
    return relevance(model, inputs, method=deep_importance(), start=start, conservation=False).input.flatten(2).sum(1)  # type: ignore[no-any-return]


def traced(one: Case) -> dict[str, Any]:
    """The values of the subject layer for the test images as they are and overwritten, and the neurons' order."""
    changed = {
        "relevant": Attacked(one.data["test"], one.subject, Overwritten(), batch_size=1000),
        "random": Attacked(one.data["test"], one.subject, Overwritten(at_random=True), batch_size=1000),
    }
    data = {**one.data, **changed}
    traces = {name: Step.of(LayerTraces, split=name, layers=one.layer) for name in data}
    order = Step.of(NeuronImportance, layers=one.layer)
    plan = Plan.of([*traces.values(), order])
    with tempfile.TemporaryDirectory() as folder:
        findings = plan.run(one.subject, data, Run.create(Path(folder) / "run"), execution=HOW)
        found = {step.key: finding for step, finding in zip(plan.steps, findings, strict=True)}
        values = {name: np.array(found[step.key].arrays["trace"]) for name, step in traces.items()}
        return {**values, "order": np.array(found[order.key].arrays["order"])}


def rows(one: Case) -> Iterator[dict[str, Any]]:
    found = traced(one)
    number, width = 8 if one.subject.task == "regression" else 6, len(found["order"])
    chosen = {("important", 0): found["order"][:number]}
    chosen["most active", 0] = np.argsort(-found["train"].mean(0), kind="stable")[:number]
    for draw in range(DRAWS):
        chosen["random", draw] = np.random.default_rng(draw).choice(width, number, replace=False)
    for pixels in ("relevant", "random"):
        for (neurons, draw), own in chosen.items():
            distance = np.linalg.norm((found["test"] - found[pixels])[:, own], axis=1)
            quartiles = {f"q{q}": round(float(np.percentile(distance, q)), 4) for q in (5, 25, 50, 75, 95)}
            told = {"network": one.name, "pixels": pixels, "neurons": neurons, "m": number, "draw": draw}
            figures = {"mean": round(float(distance.mean()), 4), "std": round(float(distance.std()), 4), **quartiles}
            published = dict(zip(("random", "important"), TABLE_2[one.name], strict=True))
            yield {**told, **figures, "published": published.get(neurons, "") if pixels == "relevant" else ""}


def figure_3(one: Case, folder: Path) -> None:
    """A digit, its most relevant tenth, and of the neurons that mattered most to it activation (blue) and relevance."""
    first = limited(one.data["test"], 1)
    image = first.read(np.arange(1)).inputs.to(one.subject.device)
    with one.subject.borrowed():
        score = pixel_relevance(one.subject, image)[0].cpu().numpy().reshape(28, 28)
    grey = np.repeat((255 * image[0, 0].cpu().numpy()).astype(np.uint8)[..., None], 3, 2)
    marked = grey.copy()
    marked[score >= np.quantile(score, 0.9)] = RED
    probes = [LayerTraces(layers=one.layer), NeuronImportance(layers=one.layer)]
    traces, importance = examine(one.subject, first, probes)
    both = np.array(traces.arrays["trace"])[0], np.array(importance.arrays["relevance"])
    digits = Image.fromarray(np.concatenate([grey, marked], 1)).resize((560, 280), Image.Resampling.NEAREST)
    whole = Image.new("RGB", (990, 280), "white")
    whole.paste(digits, (0, 0))
    whole.paste(_bars(*both), (570, 0))
    whole.save(folder / "importance-relevance.png")


def _bars(activation: np.ndarray, relevance: np.ndarray) -> Image.Image:
    bars = Image.new("RGB", (420, 280), "white")
    draw = ImageDraw.Draw(bars)
    top = np.argsort(-relevance)[:10]
    for place, neuron in enumerate(top):
        for side, (numbers, colour) in enumerate(((activation, BLUE), (relevance, RED))):
            height = 240 * float(numbers[neuron] / np.abs(numbers[top]).max())
            left = 15 + 40 * place + 15 * side
            draw.rectangle([left, 260 - max(height, 0), left + 13, 260 - min(height, 0)], fill=colour)
    return bars


def figure_5(one: Case, folder: Path) -> None:
    """A frame as it is, with noise on random pixels, and with the same noise on relevant ones."""
    few = limited(one.data["test"], 3)
    sets = [few, *(Attacked(few, one.subject, noise) for noise in (GaussianNoise(), RelevantNoise()))]
    shown = [each.read(np.arange(1, 2)).inputs[0].permute(1, 2, 0).numpy() for each in sets]
    Image.fromarray((255 * np.concatenate(shown, 1)).round().astype(np.uint8)).save(folder / "importance-noise.png")


def main() -> None:
    parser = steering_nets.argument_parser(__doc__, __file__)
    parser.add_argument("--nets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--limit", type=int, help="test and training images, for a trial")
    options = parser.parse_args()
    everything: list[dict[str, Any]] = [row for row in read_rows(options.results) if row["network"] not in options.nets]
    for name in options.nets:
        one = case(name, options.device, options.weights)
        one = Case(one.name, one.subject, {k: limited(s, options.limit) for k, s in one.data.items()}, one.layer)
        everything += [{**row, "machine": machine(options.device)} for row in rows(one)]
        write_rows(options.results, everything, columns=list(everything[-1]))
        print(f"{name}: done", flush=True)
        if options.figures and name == "LeNet-5":
            figure_3(one, options.figures)
        if options.figures and name == "DAVE-2":
            figure_5(one, options.figures)


if __name__ == "__main__":
    main()
