"""Archives of torch.export: the same numbers as the model they were made from, also from inside."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export, save

from tests.models.nets import net
from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.coverage.neurons import NeuronCoverage
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
    from weakspot.coverage.importance import NeuronImportance

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


class Touches:
    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.mkdir, (str(self._path),)


def altered(source, target, change):
    """A copy of an archive with members changed: `change` gives the new bytes of a member, or None to keep it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = change(info.filename.partition("/")[2], old.read(info))
            new.writestr(info.filename, content)
    return target


def test_a_copy_that_is_not_altered_loads(archives, tmp_path):
    """So that what the next tests see refused is refused for what was altered."""
    copy = altered(archives / "free.pt2", tmp_path / "copy.pt2", lambda member, content: content)
    assert isinstance(load_exported(copy), nn.Module)


def in_graph(key, value):
    def change(member, content):
        if not member.startswith("models/"):
            return content
        graph = json.loads(content)

        def walk(part):
            if isinstance(part, dict):
                for name in part:
                    if name == key:
                        part[name] = value
                        return True
                return any(walk(item) for item in part.values())
            return isinstance(part, list) and any(walk(item) for item in part)

        assert walk(graph)
        return json.dumps(graph).encode()

    return change


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("target", "torch.os.system"),
        ("target", "torch.ops.load_library"),
        ("target", "torch.ops.aten.relu.default.__globals__"),
        ("target", "_operator.call"),
        ("expr_str", "__import__('os').mkdir('TARGET')"),
        ("expr_str", "exec(chr(112))"),
        ("expr_str", "Symbol.__subclasses__()"),
    ],
)
def test_an_archive_whose_graph_would_run_code_is_refused(archives, tmp_path, key, value):
    target = tmp_path / "touched"
    evil = altered(archives / "free.pt2", tmp_path / "evil.pt2", in_graph(key, value.replace("TARGET", str(target))))
    with pytest.raises(ConfigError, match=r"could run code .*refused, nothing was executed"):
        load_exported(evil)
    assert not target.exists()


def test_sample_inputs_that_would_run_code_are_not_loaded(archives, tmp_path):
    import io

    target, buffer = tmp_path / "touched", io.BytesIO()
    torch.save((Touches(target),), buffer)

    def change(member, content):
        return buffer.getvalue() if member.startswith("data/sample_inputs/") else content

    with pytest.raises(ConfigError, match="cannot read the model"):
        load_exported(altered(archives / "free.pt2", tmp_path / "evil.pt2", change))
    assert not target.exists()


def test_pickled_constants_are_refused(archives, tmp_path):
    target = tmp_path / "touched"
    evil = altered(archives / "free.pt2", tmp_path / "evil.pt2", lambda member, content: content)
    with zipfile.ZipFile(evil, "a") as archive:
        archive.writestr("free/data/constants/opaque_obj_0", pickle.dumps(Touches(target)))
    with pytest.raises(ConfigError, match=r"opaque_obj_0.*refused"):
        load_exported(evil)
    assert not target.exists()


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\3\4"])
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / "x.pt2").write_bytes(content)
    with pytest.raises(ConfigError, match=r"is no archive of torch.export.save"):
        load_exported(tmp_path / "x.pt2")


def test_another_zip_is_no_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("a/b", "c")
    with pytest.raises(ConfigError, match="or one of an old torch: export the model again"):
        load_exported(tmp_path / "x.pt2")


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
