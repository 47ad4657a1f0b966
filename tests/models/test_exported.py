"""Archives of torch.export: the same numbers as the model they were made from, also from inside."""

import os

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export, save

from tests.models.nets import net
from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.data.sources import ArraySource
from weakspot.models import load_exported

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """One archive for any batch, one for batches of 3, one for 2 to 8, one in training mode."""
    folder, example = tmp_path_factory.mktemp("archives"), (torch.zeros(3, 3, 9, 9),)
    save(export(net(), example, dynamic_shapes=({0: Dim("batch")},)), folder / "free.pt2")
    save(export(net(), example), folder / "fixed.pt2")
    save(export(net(), example, dynamic_shapes=({0: Dim("batch", min=2, max=8)},)), folder / "limits.pt2")
    save(export(net().train(), example), folder / "training.pt2")
    return folder


@pytest.fixture
def images():
    return torch.rand(7, 3, 9, 9, generator=torch.Generator().manual_seed(0))


def test_a_free_batch_size_gives_a_module_with_the_same_outputs(archives, images):
    model = load_exported(archives / "free.pt2")
    assert isinstance(model, nn.Module)
    with torch.no_grad():
        for count in (1, 2, 7):
            assert torch.equal(model.eval()(images[:count]), net()(images[:count]))


def test_its_layers_are_those_of_the_model(archives, images):
    def weighted(model):
        return [layer for layer in Subject(model).layers(images[:1]) if layer.weighted]

    found, expected = weighted(load_exported(archives / "free.pt2")), weighted(net())
    assert [layer.label for layer in found] == ["stem", "block.conv", "block.conv#2", "fc"]
    assert [(layer.kind, layer.shape, layer.activation) for layer in found] == [
        (layer.kind, layer.shape, layer.activation) for layer in expected
    ]


def test_questions_about_layers_and_relevance_get_the_same_answers(archives):
    from weakspot.coverage.importance_probes import NeuronImportance

    source = ArraySource(np.random.default_rng(0).random((12, 3, 9, 9), dtype=np.float32))
    probes = [NeuronCoverage(), NeuronImportance(layers="all")]
    ours, theirs = (
        examine(Subject(model, classes=10), source, probes) for model in (load_exported(archives / "free.pt2"), net())
    )
    assert ours[0].table.equals(theirs[0].table)
    np.testing.assert_allclose(ours[1].arrays["relevance"], theirs[1].arrays["relevance"], rtol=1e-5)


def test_a_fixed_batch_size_is_a_black_box_that_takes_any_number_and_says_so(archives, images):
    model = load_exported(archives / "fixed.pt2")
    with torch.no_grad():
        torch.testing.assert_close(model(images), net()(images))
        torch.testing.assert_close(model(images[:3]), net()(images[:3]))
    assert model.notes == (
        "fixed.pt2 was exported for batches of 3: samples are run 3 at a time, and questions about layers cannot be "
        "asked; export it with dynamic_shapes to free the batch size",
    )
    subject = Subject(model, fingerprint=model.fingerprint())
    assert subject.layers(images[:1]) == ()
    assert len(model.fingerprint()) == 64


class Turned(nn.Module):
    """The same weights, and another graph."""

    def __init__(self, sign):
        super().__init__()
        self.layer, self.sign = nn.Linear(3, 2), sign
        nn.init.ones_(self.layer.weight)
        nn.init.ones_(self.layer.bias)

    def forward(self, x):
        return self.layer(x) * self.sign


@pytest.mark.parametrize("shapes", [({0: Dim("batch")},), None], ids=["a free batch size", "a fixed one"])
def test_another_graph_is_another_model(tmp_path, shapes):
    """Of equal weights alone two archives could not be told apart."""
    found = []
    for number, sign in enumerate((1, 1, -1)):
        path = tmp_path / f"{number}.pt2"
        save(export(Turned(sign), (torch.zeros(2, 3),), dynamic_shapes=shapes), path)
        model = load_exported(path)
        named = None if isinstance(model, nn.Module) else model.fingerprint()
        found.append(Subject(model, fingerprint=named).fingerprint())
    assert found[1] != found[2]
    assert shapes is None or found[0] == found[1]  # the archive itself holds more than the graph


def test_limits_of_the_batch_size_are_told(archives, images):
    model = load_exported(archives / "limits.pt2")
    assert model(images).shape == (7, 10)
    with pytest.raises(SubjectError, match="exported for batches of 2 to 8, and got 1: choose another batch size"):
        model(images[:1])


def test_an_archive_in_training_mode_is_refused(archives):
    with pytest.raises(ConfigError, match=r"exported in training mode .*call model.eval\(\)"):
        load_exported(archives / "training.pt2")


class TwoInputs(nn.Module):
    def forward(self, a, b):
        return a + b


def test_several_inputs_are_refused(tmp_path):
    save(export(TwoInputs(), (torch.zeros(2, 1), torch.zeros(2, 1))), tmp_path / "two.pt2")
    with pytest.raises(ConfigError, match="takes 2 inputs: export the model with one tensor"):
        load_exported(tmp_path / "two.pt2")


class TwoOutputs(nn.Module):
    def forward(self, a):
        return {"sum": a.sum(1), "both": (a, a.mean())}


def test_mappings_of_outputs_survive_a_fixed_batch_size(tmp_path):
    save(export(TwoOutputs(), (torch.zeros(2, 3),)), tmp_path / "two.pt2")
    values = torch.arange(15.0).reshape(5, 3)
    given = load_exported(tmp_path / "two.pt2")(values)
    assert torch.equal(given["sum"], values.sum(1))
    assert torch.equal(given["both"][0], values)


def test_no_file(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        load_exported(tmp_path / "none.pt2")


def test_the_environment_is_left_as_it_was(archives, monkeypatch):
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    load_exported(archives / "free.pt2")
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0")
    load_exported(archives / "free.pt2")
    assert os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] == "0"
