"""Networks people really have: they run unchanged, shapes fit, and nothing is lost unseen."""

import pytest
import torch
from torch import Tensor, nn

from tests.relevance.networks import NETWORKS, TorchAttention, TwoInputs, ViT, build, lived_in, without_biases
from weakspot import relevance as lrp
from weakspot.relevance import Region, Relevance, relevance

COMPOSITES = {
    "epsilon": lrp.Composite(),
    "epsilon_plus": lrp.epsilon_plus(),
    "alpha2_beta1_flat": lrp.epsilon_alpha2_beta1_flat(),
    "gamma_box": lrp.epsilon_gamma_box(0.0, 1.0),
    "redistributed": lrp.epsilon_plus(bias="redistributed"),
    "hudd": lrp.hudd(),
}


def explain(name: str, model: nn.Module, x: Tensor, composite: lrp.Composite, **options) -> Relevance:
    start = Region(1, torch.ones_like(x[:, 0], dtype=torch.bool)) if "U-Net" in name else None
    return relevance(model, x, method=composite, start=start, **options)


def scale(found: Relevance) -> float:
    """The largest amount of relevance, of either sign, that was ever around."""
    return max(abs(found.conservation.start), float(found.input.abs().sum()), 1e-12)


@pytest.mark.parametrize("composite", COMPOSITES)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_runs_unchanged_and_the_books_balance(name, composite):
    model, x = build(name)
    found = explain(name, model, x, COMPOSITES[composite])
    torch.testing.assert_close(found.outputs, model(x).detach())
    assert found.input.shape == x.shape
    assert found.input.isfinite().all()
    assert found.input.abs().sum() > 0
    books = found.conservation
    assert abs(books.unexplained) < 1e-4 * scale(found)
    kept = abs(books.biases) + abs(books.stabilisers)
    assert (kept == 0) == (COMPOSITES[composite].bias == "redistributed")


@pytest.mark.parametrize("name", NETWORKS)
def test_bias_free_networks_conserve_at_every_layer(name):
    """What each operation hands on is what it received, and the inputs get it all."""
    model, x = build(name, seed=1)
    without_biases(model)
    for composite in (lrp.Composite(), lrp.deep_importance()):
        found = explain(name, model, x, composite)
        books = found.conservation
        for balance in books.layers:
            assert abs(balance.biases) < 1e-5 * scale(found), balance
            assert abs(balance.received - balance.passed) < 1e-4 * scale(found), balance
        assert books.inputs == pytest.approx(books.start, abs=1e-4 * scale(found))


@pytest.mark.parametrize("name", NETWORKS)
def test_redistributed_biases_conserve_exactly_per_sample(name):
    model, x = build(name)
    for composite in (lrp.epsilon_plus(bias="redistributed"), lrp.Composite(bias="redistributed")):
        found = explain(name, model, x, composite)
        if "ViT" in name:  # the class token is no input; what it keeps is in the books
            assert found.conservation.start == pytest.approx(
                found.conservation.inputs + found.conservation.constants, abs=1e-4 * scale(found)
            )
        else:
            total = found.input.flatten(1).sum(1)
            torch.testing.assert_close(total, found.start, rtol=1e-4, atol=1e-4 * scale(found))


def test_attention_written_in_three_ways_gives_the_same():
    sdpa, x = build("ViT (SDPA)")
    state = sdpa.state_dict()
    manual = build("ViT (matmul)")[0]
    manual.load_state_dict(state)
    renamed = {
        key.replace("qkv.", "attention.in_proj_").replace("proj.", "attention.out_proj.", 1)
        if ".proj." in key else key.replace("qkv.", "attention.in_proj_"): value
        for key, value in state.items()
    }  # fmt: skip
    expected = relevance(sdpa, x, layers=["blocks.0"])
    for weights in (False, True):
        torch_made = ViT(lambda c, h, weights=weights: TorchAttention(c, h, weights)).eval()
        torch_made.load_state_dict(renamed)
        for other in (manual, torch_made):
            found = relevance(other, x, layers=["blocks.0"])
            torch.testing.assert_close(found.outputs, expected.outputs)
            torch.testing.assert_close(found.input, expected.input, rtol=1e-3, atol=1e-5)
            torch.testing.assert_close(found.layers["blocks.0"], expected.layers["blocks.0"], rtol=1e-3, atol=1e-5)


def test_torch_transformer_encoder():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
    model = nn.Sequential(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Flatten(), nn.Linear(40, 3)
    ).eval()
    found = relevance(model, torch.randn(2, 5, 8), layers=["0.layers.1"])
    assert found.layers["0.layers.1"].shape == (2, 5, 8)
    assert abs(found.conservation.unexplained) < 1e-4 * scale(found)


def test_a_layer_used_twice_has_a_tap_for_each_use():
    model, x = build("reused layer")
    found = relevance(model, x, layers=["block", "block:input", "block.conv1"])
    assert list(found.layers) == [
        "block:input", "block.conv1", "block", "block#2:input", "block.conv1#2", "block#2",
    ]  # fmt: skip
    assert found.layers["block"].shape == (2, 8, 8, 8)
    assert found.layers["block#2"].shape == (2, 8, 16, 16)


def test_several_inputs_by_position_and_by_name():
    torch.manual_seed(0)
    model, image, numbers = TwoInputs().eval(), torch.rand(2, 3, 8, 8), torch.rand(2, 4)
    found = relevance(model, (image, numbers), method=lrp.epsilon_plus(bias="redistributed"))
    assert [part.shape for part in found.input] == [image.shape, numbers.shape]
    total = found.input[0].flatten(1).sum(1) + found.input[1].sum(1)
    torch.testing.assert_close(total, found.start, rtol=1e-4, atol=1e-5)
    named = relevance(model, {"numbers": numbers, "image": image}, method=lrp.epsilon_plus(bias="redistributed"))
    torch.testing.assert_close(named.input["numbers"], found.input[1])


def test_merging_batch_norm_by_hand_changes_nothing():
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(3, 6, 3, groups=3), nn.BatchNorm2d(6)
    tail = nn.Sequential(nn.ReLU(), nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(4 * 4 * 4, 3))
    model = lived_in(nn.Sequential(conv, norm, tail))
    merged = nn.utils.fusion.fuse_conv_bn_eval(conv, norm)
    x = torch.rand(2, 3, 8, 8)
    for composite in (lrp.epsilon_plus(), lrp.epsilon_gamma_box(0.0, 1.0), lrp.deep_importance()):
        found = relevance(model, x, method=composite, layers=["1"])
        expected = relevance(nn.Sequential(merged, tail), x, method=composite, layers=["0"])
        torch.testing.assert_close(found.input, expected.input, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(found.layers["1"], expected.layers["0"], rtol=1e-4, atol=1e-6)


def test_batch_norm_is_not_merged_where_its_input_is_used_elsewhere():
    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(8, 3)

        def forward(self, x: Tensor, late: bool = True) -> Tensor:
            y = self.conv(x)
            early = None if late else y.mean((2, 3))
            z = self.norm(y).mean((2, 3))
            return self.head(torch.cat([y.mean((2, 3)) if early is None else early, z], 1))

    torch.manual_seed(0)
    model, x = lived_in(Fork()), torch.rand(2, 3, 6, 6)
    late, early = relevance(model, x), relevance(lambda_module(model, late=False), x)
    torch.testing.assert_close(late.input, early.input)
    assert abs(late.conservation.unexplained) < 1e-5
    assert any(b.operation == "batch_norm" and b.biases != 0 for b in late.conservation.layers)


def lambda_module(model: nn.Module, **options) -> nn.Module:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x, **options)

    return Wrapped()


def test_keras_model_on_the_torch_backend(keras):
    layers = keras.layers
    inputs = keras.Input((12, 12, 3))
    x = layers.ReLU()(layers.BatchNormalization(name="norm")(layers.Conv2D(6, 3, padding="same", name="conv")(inputs)))
    x = layers.Add()([x, layers.Conv2D(6, 3, padding="same", activation="relu")(x)])
    x = layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x))
    model = keras.Model(inputs, layers.Dense(5, activation="softmax", bias_initializer="random_normal")(x)).eval()
    image = torch.rand(2, 12, 12, 3)
    found = relevance(model, image, layers=["conv", "conv:input"])
    assert found.layers["conv"].shape == (2, 12, 12, 6)
    torch.testing.assert_close(found.layers["conv:input"], found.input)
    books = found.conservation
    assert abs(books.unexplained) < 1e-5
    assert {b.rule for b in books.layers if b.layer == "conv"} == {"ZPlus"}
    assert not any(b.layer == "norm" for b in books.layers), "batch norm counts as part of the convolution before it"
    logits = torch.log(found.outputs.max(1).values / found.outputs.min(1).values)
    assert (found.start.abs() < 10 * logits + 10).all()
    assert not torch.allclose(found.start, found.outputs.max(1).values), "the softmax is dropped"


@pytest.mark.parametrize(
    "name",
    ["resnet18", "vgg11_bn", "densenet121", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "vit_b_16"],
)
def test_the_real_networks_of_torchvision(name):
    models = pytest.importorskip("torchvision.models", reason="needs torchvision", exc_type=Exception)
    torch.manual_seed(0)
    size = 224 if name == "vit_b_16" else 64
    found = relevance(getattr(models, name)().eval(), torch.rand(1, 3, size, size))
    assert found.input.isfinite().all()
    assert abs(found.conservation.unexplained) < 1e-3 * scale(found)


def test_real_trained_resnet_on_real_images(svhn_net, svhn):
    images = torch.from_numpy(svhn[0][:8]).permute(0, 3, 1, 2).float() / 255
    found = relevance(svhn_net, images, layers=["group3.4", "classifier:input"])
    assert found.channels("group3.4").shape == (8, 64)
    torch.testing.assert_close(
        found.layers["group3.4"].sum((1, 2, 3)), found.layers["classifier:input"].sum(1), rtol=1e-4, atol=1e-4
    )
    exact = relevance(svhn_net, images, method=lrp.deep_importance())
    torch.testing.assert_close(exact.input.sum((1, 2, 3)), exact.start, rtol=1e-4, atol=1e-4)
