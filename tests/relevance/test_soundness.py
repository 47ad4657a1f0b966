"""Relevance that vanishes or diverges is noticed, on networks with depthwise convolutions, SiLU and gates too."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.relevance.networks import efficientnet, mobilenet_v3
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.causes.probes import RootCauses
from weakspot.causes.unsafe_probes import UnsafeSet
from weakspot.core.needs import Attributed
from weakspot.coverage.importance_probes import NeuronImportance
from weakspot.data.sources import ArraySource
from weakspot.relevance import deep_importance, epsilon_plus, hudd, propagation
from weakspot.relevance.soundness import relevance_problem, unsound_samples
from weakspot.report import render

RULES = {"hudd": hudd(), "epsilon_plus": epsilon_plus(), "lrp": deep_importance()}


def bottlenecks(blocks, activation=nn.SiLU):
    """Expand, depthwise, project, without a skip: relevance has one way back."""
    torch.manual_seed(1)
    layers = [nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), activation()]
    for _ in range(blocks):
        layers += [
            nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), activation(),
            nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=False), nn.BatchNorm2d(24), activation(),
            nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8),
        ]  # fmt: skip
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).train()
    with torch.no_grad():
        for _ in range(10):
            net(torch.rand(16, 1, 8, 8))
    return net.eval()


def counted(net, rules, images):
    layers = [f"{name}:input" for name, part in net.named_modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    with propagation(net, rules, layers=layers, conservation=False) as trace:
        outputs = net(trace.watch(images))
    found = trace.relevance(outputs, to_inputs=False)
    return unsound_samples(found.layers.values(), found.start).tolist(), found


def test_counts_are_those_of_plain_sums():
    counts, found = counted(bottlenecks(8), deep_importance(), torch.rand(12, 1, 8, 8))
    absorbed = diverged = 0
    for image in range(12):
        sizes = [sum(abs(value) for value in maps[image].flatten().tolist()) for maps in found.layers.values()]
        absorbed += sizes[0] < 0.1 * abs(float(found.start[image]))
        diverged += max(sizes) > 100 * abs(float(found.start[image]))
    assert counts == [12, absorbed, diverged] and diverged > 6


@pytest.mark.parametrize("activation", [nn.SiLU, nn.ReLU6, nn.Hardswish])
def test_deep_depthwise_networks_absorb_or_diverge_but_for_redistributed_biases(activation):
    net, images = bottlenecks(8, activation), torch.rand(10, 1, 8, 8)
    counts = {name: counted(net, rules, images)[0] for name, rules in RULES.items()}
    assert counts["hudd"][1] == counts["epsilon_plus"][1] == 10  # absorbed
    assert counts["lrp"][2] >= 9  # diverging
    assert counted(net, epsilon_plus(bias="redistributed"), images)[0] == [10, 0, 0]


@pytest.mark.parametrize("make", [efficientnet, mobilenet_v3])
@pytest.mark.parametrize("rules", [epsilon_plus(bias="redistributed"), deep_importance()], ids=["plus", "lrp0"])
def test_gates_and_swish_alone_break_nothing(make, rules):
    torch.manual_seed(0)
    assert counted(make().eval(), rules, torch.rand(8, 3, 16, 16))[0][1:] == [0, 0]


def test_relevance_that_is_no_number_counts_as_diverging_and_nothing_begun_as_nothing():
    maps = [torch.tensor([[torch.nan], [1.0], [0.0]])]
    assert unsound_samples(maps, torch.tensor([1.0, 1.0, 0.0])).tolist() == [2, 0, 1]


def test_what_is_wrong_is_said_from_a_tenth_of_the_inputs_on():
    assert relevance_problem([100, 9, 9], "x") is None and relevance_problem([0, 0, 0], "x") is None
    assert "less than a tenth of the relevance of 10 %" in relevance_problem([100, 10, 0], "x")


def examined(step, tmp_path, **data):
    subject = Subject(bottlenecks(8), scores="logits", classes=list("abcd"), bounds=(0, 1))
    run = Run.create(tmp_path / "run")
    Plan.of([step]).run(subject, data, run)
    return run


@pytest.fixture(scope="module")
def source():
    rng = np.random.default_rng(0)
    return ArraySource(rng.random((40, 1, 8, 8)).astype(np.float32), rng.integers(0, 4, 40))


@pytest.mark.parametrize(
    ("method", "problem"),
    [("hudd", "less than a tenth"), ("epsilon_plus_redistributed", None), ("gradient", None)],
)
def test_root_causes_say_that_their_heat_maps_do_not_hold(source, tmp_path, method, problem):
    run = examined(Step.of(RootCauses, method=method, replicates=0), tmp_path, test=source)
    said = run["causes.root_causes"].summary.get("relevance_problem")
    assert said is None if problem is None else problem in said.value and "epsilon_plus_redistributed" in said.value
    assert ("Do not rely on these heat maps" in render(run)) == (problem is not None)


def unsafe_set(causes, source):
    subject = Subject(bottlenecks(8), scores="logits", classes=list("abcd"), bounds=(0, 1))
    return examine(subject, source, [UnsafeSet(causes=causes)])[0].summary.get("relevance_problem")


@pytest.mark.parametrize("method", ["hudd", "epsilon_plus_redistributed", "gradient"])
def test_the_unsafe_set_says_it_of_its_own_images(source, tmp_path, method):
    run = examined(Step.of(RootCauses, method=method, layer="0", clusters=3, replicates=0), tmp_path, test=source)
    causes = run["causes.root_causes"]
    summary = {name: entry for name, entry in causes.summary.items() if name != "relevance_problem"}
    said = unsafe_set(replace(causes, summary=summary), source)
    assert said is None if method != "hudd" else "less than a tenth of the relevance of 100 %" in said.value


def test_the_unsafe_set_says_it_of_the_errors_that_it_is_compared_with(source, tmp_path):
    """At the last convolution little is absorbed yet; the clusters were chosen among all layers."""
    run = examined(Step.of(RootCauses, layer="65", clusters=3, replicates=0), tmp_path, test=source)
    causes = run["causes.root_causes"]
    assert unsafe_set(causes, source).value == causes.summary["relevance_problem"].value
    summary = {name: entry for name, entry in causes.summary.items() if name != "relevance_problem"}
    assert unsafe_set(replace(causes, summary=summary), source) is None


@pytest.mark.parametrize(("method", "problem"), [("lrp", "diverges to over 100 times"), ("gradient", None)])
def test_importance_says_it_too(source, tmp_path, method, problem):
    run = examined(Step.of(NeuronImportance, method=method, layers=("0",)), tmp_path, train=source)
    said = run["coverage.neuron_importance"].summary.get("relevance_problem")
    assert said is None if problem is None else problem in said.value


def test_an_attribution_of_ones_own_need_not_say_where_it_began():
    outputs, maps = torch.ones(2), [torch.ones(2, 3)]
    assert Attributed(*(outputs, maps)).start is None


def test_the_page_has_the_measured_figures():
    """Of benchmarks/peers/relevance_bounds.csv, in the order of its columns."""
    root = Path(__file__).resolve().parents[2]
    with (root / "benchmarks/peers/relevance_bounds.csv").open() as file:
        rows = list(csv.DictReader(file))
    page = (root / "docs/relevance.md").read_text()
    for net in dict.fromkeys(row["net"] for row in rows):
        line = next(line for line in page.splitlines() if line.startswith(f"| {net} |"))
        printed = [float(cell.strip(" *")) for cell in line.split("|")[2:-1]]
        assert printed == [float(row["left"]) for row in rows if row["net"] == net]
        bold = ["**" in cell for cell in line.split("|")[2:-1]]
        assert bold == [max(int(row["absorbed"]), int(row["diverged"])) > 8 for row in rows if row["net"] == net]
