"""Models of other libraries as they come: what they return is picked by name, their layers are looked into."""

import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
import torch

from weakspot import Subject, examine
from weakspot.core.errors import SubjectError
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.data.sources import ArraySource
from weakspot.models import stated_preparation

SOURCE = ArraySource(np.random.default_rng(0).random((6, 3, 32, 32), dtype=np.float32), np.arange(6) % 4)

SMALL = {"img_size": 32, "embed_dim": 24, "depth": 2}


def coverage(model, **options):
    return examine(Subject(model, classes=4, **options), SOURCE, [NeuronCoverage()])[0]


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def test_hugging_face_vision_transformer(transformers):
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=32, patch_size=8,
        num_labels=4,
    )  # fmt: skip
    torch.manual_seed(0)
    net = transformers.ViTForImageClassification(config)
    inputs = SOURCE.read(np.arange(6)).inputs
    with torch.no_grad():
        expected = net.eval()(inputs).logits
    assert torch.equal(Subject(net, output="logits").forward(inputs).detach(), expected)
    finding = coverage(net, output="logits")
    assert finding.summary["inputs"].value == 6
    assert "classifier" in finding.table["layer"].to_pylist()
    assert coverage(net).summary == finding.summary  # there is no other output to take
    net.config.output_hidden_states = True
    with pytest.raises(SubjectError, match="'logits', 'hidden_states', expected a tensor: say which one with output="):
        coverage(net)


def test_hugging_face_convolutional_network(transformers):
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=4
    )
    torch.manual_seed(0)
    finding = coverage(transformers.ResNetForImageClassification(config), output="logits")
    assert finding.summary["inputs"].value == 6


class Permissive(type):
    """A class whose every attribute is its own name."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class EmptyModule(ModuleType):
    """A module in which every name is a class that does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Permissive(name, (), {"__module__": self.__name__})


class EmptyTorchvision(MetaPathFinder, Loader):
    """timm asks for torchvision, which its networks do not use: where it is missing, an empty one will do."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == "torchvision" else None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


@pytest.fixture
def timm():
    before, finder = set(sys.modules), EmptyTorchvision()
    sys.meta_path.append(finder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield pytest.importorskip("timm")
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("timm", "torchvision"):
                del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "options", "last"), [("resnet10t", {}, "fc"), ("vit_tiny_patch16_224", SMALL, "head")]
)
def test_timm(timm, name, options, last):
    torch.manual_seed(0)
    net = timm.create_model(name, num_classes=4, pretrained=False, **options)
    assert last in coverage(net).table["layer"].to_pylist()
    stated, config = stated_preparation(net), net.pretrained_cfg
    assert (stated.normalise.mean, stated.normalise.std) == (tuple(config["mean"]), tuple(config["std"]))
    side, share = config["input_size"][1], config["crop_pct"]
    assert (stated.framing["shorter_side"], stated.framing["crop"]) == (int(side / share), [side, side])


def test_torchvision():
    models = pytest.importorskip("torchvision.models", reason="needs torchvision", exc_type=ImportError)
    torch.manual_seed(0)
    finding = coverage(models.resnet18(num_classes=4))
    assert "fc" in finding.table["layer"].to_pylist()
