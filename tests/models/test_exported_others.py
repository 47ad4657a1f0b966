"""Networks of other libraries survive the check of archives: the same outputs from the archive as from the model."""

import pytest
import torch
from torch import nn
from torch.export import Dim, export, save
from torch.nn import functional as F

from tests.models.test_others import timm, transformers  # noqa: F401 - fixtures
from weakspot.models import load_exported

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

FAST = {
    "resnet10t": 64,
    "mobilenetv3_small_050": 64,
    "vit_tiny_patch16_224": {"img_size": 32, "embed_dim": 24, "depth": 2},
}
SLOW = {
    "efficientnet_b0": 64,
    "convnext_atto": 64,
    "densenet121": 64,
    "regnetx_002": 64,
    "maxvit_pico_rw_256": 256,
    "swin_tiny_patch4_window7_224": 224,
    "mixer_s32_224": 224,
    "xcit_nano_12_p8_224": 224,
    "coat_tiny": 224,
    "efficientformer_l1": 224,
    "mobilevit_xxs": 64,
    "vgg11": 64,
}
CLASSIFIERS = ("ViT", "ConvNext", "ResNet", "Swin", "MobileNetV2", "RegNet", "Dinov2", "Segformer")


def assert_same(model, shape, file, *, decomposed=False):
    torch.manual_seed(0)
    program = export(model.eval(), (torch.rand(2, *shape),), dynamic_shapes=({0: Dim("batch")},))
    save(program.run_decompositions() if decomposed else program, file)
    inputs = torch.rand(3, *shape)
    with torch.no_grad():
        torch.testing.assert_close(load_exported(file)(inputs), model(inputs), rtol=1e-4, atol=1e-4)


def assert_all_the_same(timm, networks, file):  # noqa: F811
    for name, size in networks.items():
        options, side = (size, size["img_size"]) if isinstance(size, dict) else ({}, size)
        torch.manual_seed(0)
        assert_same(timm.create_model(name, num_classes=4, pretrained=False, **options), (3, side, side), file)


def test_networks_of_timm(timm, tmp_path):  # noqa: F811
    assert_all_the_same(timm, FAST, tmp_path / "net.pt2")


@pytest.mark.slow
def test_more_networks_of_timm(timm, tmp_path):  # noqa: F811
    assert_all_the_same(timm, SLOW, tmp_path / "net.pt2")


class Unusual(nn.Module):
    """Free height and width, a branch, a part without gradients, odd names, constants, several outputs."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleDict({"a-b": nn.Conv2d(3, 4, 1), "c d": nn.Conv2d(4, 4, 1)})
        self.register_buffer("offset", torch.ones(1), persistent=False)

    def forward(self, images):
        values = self.convs["c d"](self.convs["a-b"](images)) + torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1, 1)
        halved = F.interpolate(F.avg_pool2d(values, 3, 2, 1), size=values.shape[2:], mode="bilinear") + self.offset
        larger = F.adaptive_avg_pool2d(F.interpolate(halved, scale_factor=1.5, mode="bilinear"), (3, 3))
        larger = torch.cond(larger.sum() > 0, lambda values: values + 1, lambda values: values - 1, (larger,))
        with torch.no_grad():
            total = larger.sum()
        return larger.flatten(1) + total, {"map": larger}


@pytest.mark.parametrize("strict", [False, True])
def test_an_unusual_network(tmp_path, strict):
    torch.manual_seed(0)
    model = Unusual().eval()
    sizes = {0: Dim("batch"), 2: 2 * Dim("height", min=4, max=100), 3: Dim("width", min=8, max=200)}
    save(export(model, (torch.zeros(3, 3, 16, 16),), dynamic_shapes=(sizes,), strict=strict), tmp_path / "net.pt2")
    images = torch.rand(2, 3, 12, 20)
    with torch.no_grad():
        given, expected = load_exported(tmp_path / "net.pt2")(images), model(images)
    torch.testing.assert_close(given, expected)


def small(transformers, name):  # noqa: F811
    config = getattr(transformers, f"{name}Config")(num_labels=4)
    if isinstance(getattr(config, "num_hidden_layers", None), int) and name in ("ViT", "Dinov2"):
        config.num_hidden_layers, config.hidden_size, config.num_attention_heads = 2, 24, 2
    torch.manual_seed(0)
    return getattr(transformers, f"{name}ForImageClassification")(config), config


@pytest.mark.parametrize("name", ["ViT", *(pytest.param(name, marks=pytest.mark.slow) for name in CLASSIFIERS[1:])])
def test_networks_of_transformers_give_a_mapping(transformers, tmp_path, name):  # noqa: F811
    model, config = small(transformers, name)
    side = getattr(config, "image_size", None) or 224
    program = export(model.eval(), (torch.rand(2, 3, side, side),), dynamic_shapes={"pixel_values": {0: Dim("batch")}})
    save(program, tmp_path / "net.pt2")
    inputs = torch.rand(3, 3, side, side)
    with torch.no_grad():
        given, expected = load_exported(tmp_path / "net.pt2")(inputs), model(inputs)
    assert type(given) is dict
    torch.testing.assert_close(given["logits"], expected.logits, rtol=1e-4, atol=1e-4)
