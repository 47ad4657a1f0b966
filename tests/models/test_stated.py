"""What models say of their inputs, from files and attributes as the libraries write them."""

import json
from types import SimpleNamespace

import pytest
from torch import nn

from weakspot.core.errors import ConfigError
from weakspot.models import Normalise, stated_preparation
from weakspot.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD
from weakspot.models.stated import PROCESSOR


def saved(folder, said):
    (folder / PROCESSOR).write_text(said if isinstance(said, str) else json.dumps(said))
    net = nn.Linear(1, 1)
    net.config = SimpleNamespace(_name_or_path=str(folder))
    return net


def test_a_processor_that_transformers_saved(tmp_path):
    transformers = pytest.importorskip("transformers")
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 24}).save_pretrained(tmp_path)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=32, patch_size=8
    )
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    stated = stated_preparation(transformers.ViTForImageClassification.from_pretrained(tmp_path))
    assert stated.normalise == Normalise(1.0, (0.5,) * 3, (0.5,) * 3)
    assert stated.framing == {"size": [32, 24]} and stated.sure
    assert "has inputs normalised, {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}" in stated.note()


@pytest.mark.parametrize(
    ("said", "normalise", "framing"),
    [
        ({"do_rescale": False, "do_normalize": False}, Normalise(255.0), {}),
        ({"rescale_factor": 1 / 127.5, "do_normalize": False}, Normalise(2.0), {}),
        (
            {"image_mean": [0.1], "image_std": [0.2], "size": 20, "resample": 3},
            Normalise(1.0, (0.1,), (0.2,)),
            {"size": [20, 20], "interpolation": "bicubic"},
        ),
        (
            {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 224, "width": 200}},
            Normalise(),
            {"shorter_side": 256, "crop": [224, 200]},
        ),
        ({"size": {"shortest_edge": 224}, "crop_pct": 0.875}, Normalise(), {"shorter_side": 256, "crop": [224, 224]}),
        ({"size": {"shortest_edge": 256}}, Normalise(), {}),
        ({"do_resize": False, "size": 20}, Normalise(), {}),
    ],
)
def test_processors(tmp_path, said, normalise, framing):
    stated = stated_preparation(saved(tmp_path, said))
    assert stated.normalise.scale == pytest.approx(normalise.scale)
    assert (stated.normalise.mean, stated.normalise.std) == (normalise.mean, normalise.std)
    assert stated.framing == framing


@pytest.mark.parametrize("said", ["{", "[]", '{"image_mean": 1, "image_std": [1]}', '{"size": {"width": 3}}'])
def test_a_broken_file_is_named(tmp_path, said):
    with pytest.raises(ConfigError, match="is no description of an image processor"):
        stated_preparation(saved(tmp_path, said))


def test_timm_says_it_of_its_own_weights():
    net = nn.Linear(1, 1)
    net.pretrained_cfg = {
        "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "input_size": (3, 224, 224), "crop_pct": 0.875,
        "interpolation": "bicubic", "crop_mode": "center",
    }  # fmt: skip
    stated = stated_preparation(net, "timm:create_model", {"pretrained": True})
    assert stated.sure and stated.normalise == Normalise(1.0, IMAGENET_MEAN, IMAGENET_STD)
    assert stated.framing == {"shorter_side": 256, "crop": [224, 224], "interpolation": "bicubic"}
    assert not stated_preparation(net, "timm:create_model").sure
    net.pretrained_cfg = {**net.pretrained_cfg, "crop_mode": "squash"}
    assert stated_preparation(net).framing == {"size": [224, 224], "interpolation": "bicubic"}


def test_torchvision_says_it_of_weights_that_are_asked_for_by_name(monkeypatch):
    """The attributes of torchvision's own preset `ImageClassification`."""
    preset = SimpleNamespace(
        crop_size=[224], resize_size=[232], mean=[0.4, 0.5, 0.6], std=[1.0, 2.0, 3.0],
        interpolation=SimpleNamespace(value="bilinear"),
    )  # fmt: skip
    lists = {"resnet18": {"DEFAULT": SimpleNamespace(transforms=lambda: preset)}}
    monkeypatch.setitem(
        __import__("sys").modules, "torchvision.models", SimpleNamespace(get_model_weights=lists.__getitem__)
    )
    stated = stated_preparation(nn.Linear(1, 1), "torchvision.models:resnet18", {"weights": "ResNet18_Weights.DEFAULT"})
    assert stated.normalise == Normalise(1.0, (0.4, 0.5, 0.6), (1.0, 2.0, 3.0))
    assert stated.framing == {"shorter_side": 232, "crop": [224, 224]}
    assert stated_preparation(nn.Linear(1, 1), "torchvision.models:resnet18", {"weights": "MISSING"}) is None
    assert stated_preparation(nn.Linear(1, 1), "torchvision.models:unknown", {"weights": "DEFAULT"}) is None


def test_a_model_that_says_nothing():
    assert stated_preparation(nn.Linear(1, 1)) is None
    assert stated_preparation(nn.Linear(1, 1), "nets:Net", {"weights": "x"}) is None
