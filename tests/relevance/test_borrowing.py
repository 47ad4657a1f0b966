"""The model is borrowed: it comes back as it was, also after an error, and nothing piles up."""

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from tests.relevance.networks import build
from weakspot import relevance as lrp
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.relevance import propagation, relevance

METHODS = [lrp.epsilon_plus(), lrp.GradientTimesInput(), lrp.IntegratedGradients(steps=2)]


def fingerprint(model: nn.Module) -> dict[str, object]:
    """Everything about a model that a borrower could change."""
    state: dict[str, object] = {key: value.clone() for key, value in model.state_dict().items()}
    for name, module in model.named_modules():
        state[f"{name} training"] = module.training
        state[f"{name} hooks"] = (
            dict(module._forward_hooks),
            dict(module._forward_pre_hooks),
            dict(module._forward_hooks_with_kwargs),
            dict(module._forward_hooks_always_called),
            dict(module._forward_pre_hooks_with_kwargs),
            dict(module._backward_hooks),
        )
        state[f"{name} attributes"] = sorted(vars(module))
        state[f"{name} buffers"] = [id(buffer) for buffer in module._buffers.values()]
    for name, parameter in model.named_parameters():
        state[f"{name} flags"] = (parameter.requires_grad, parameter.grad, id(parameter))
    return state


def same(before: dict[str, object], after: dict[str, object]) -> bool:
    return before.keys() == after.keys() and all(
        torch.equal(value, after[key]) if isinstance(value, Tensor) else value == after[key]
        for key, value in before.items()
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ResNet", "ViT (MultiheadAttention)", "reused layer"])
def test_the_model_comes_back_as_it_was(name, method, training):
    model, x = build(name)
    model.train(training)
    model.register_forward_hook(lambda *_: None)
    next(model.parameters()).requires_grad_(False)
    before, image = fingerprint(model), x.clone()
    relevance(model, x, method=method, layers=[next(n for n, _ in model.named_children())])
    assert same(before, fingerprint(model))
    assert torch.equal(x, image) and not x.requires_grad and x.grad is None


@pytest.mark.parametrize("method", METHODS)
def test_the_model_comes_back_as_it_was_after_an_error(method):
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("out of paper")

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), Fails()).train()
    before = fingerprint(model)
    with pytest.raises(RuntimeError, match="out of paper"):
        relevance(model, torch.rand(2, 3, 8, 8), method=method, layers=["0"])
    assert same(before, fingerprint(model))
    assert torch.relu(torch.tensor([-1.0])).item() == 0  # and torch itself is free again
    assert torch.overrides._get_current_function_mode_stack() == []


def test_gradients_of_parameters_are_not_touched():
    model, x = build("ResNet")
    model(x).sum().backward()
    before = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    relevance(model, x)
    assert all(torch.equal(parameter.grad, before[name]) for name, parameter in model.named_parameters())


def test_works_under_no_grad():
    model, x = build("ResNet")
    expected = relevance(model, x).input
    with torch.no_grad():
        assert torch.equal(relevance(model, x).input, expected)
        assert not torch.is_grad_enabled()


def tensors_alive() -> int:
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


class InPlace(nn.Module):
    """In-place operations whose results replace what they were computed from."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y *= 2
        y.relu_().cumsum_(2)
        y -= y.mean()
        y[:, 0] = x[:, 0, 1:5, 1:5]
        return self.last(y.mean((2, 3))).sigmoid_()


IN_A_LOOP = [(name, method) for name in ("EfficientNet", "ViT (matmul)", "U-Net 2-D") for method in METHODS]
IN_A_LOOP.append(("in place", METHODS[0]))  # autograd itself can't differentiate that one


@pytest.mark.parametrize(("name", "method"), IN_A_LOOP)
def test_nothing_is_left_behind_without_the_garbage_collector(name, method):
    """Reference counts alone free everything: no cycles, so memory stays flat in a loop."""
    model, x = (InPlace(), torch.rand(2, 3, 6, 6)) if name == "in place" else build(name)
    start = lrp.Region(1) if "U-Net" in name else None
    layers = [next(child for child, _ in model.named_children())]
    relevance(model, x, method=method, layers=layers, start=start)
    gc.collect()
    gc.disable()
    try:
        before = tensors_alive()
        for _ in range(3):
            relevance(model, x, method=method, layers=layers, start=start)
        assert tensors_alive() == before
    finally:
        gc.enable()


def test_an_abandoned_trace_frees_its_graph():
    model, x = build("ResNet")
    gc.disable()
    try:
        with propagation(model, layers=["layer1"]) as trace:
            outputs = model(trace.watch(x))
        alive = weakref.ref(outputs)
        del outputs, trace
        assert alive() is None
    finally:
        gc.enable()


def test_a_trace_is_explained_once():
    model, x = build("ResNet")
    with propagation(model) as trace:
        outputs = model(trace.watch(x))
    trace.relevance(outputs)
    with pytest.raises(SubjectError, match=r"watched and not yet explained, got none.*`trace.relevance` once"):
        trace.relevance(outputs)


def test_tapping_a_layer_does_not_change_the_result():
    model, x = build("ResNet")
    everything = [name for name, module in model.named_modules() if name]
    everything += [f"{name}:input" for name in everything]
    used = [name for name in everything if "downsample" not in name or "layer2.0" in name]
    torch.testing.assert_close(relevance(model, x, layers=used).input, relevance(model, x).input)


@pytest.mark.parametrize("method", METHODS[:2])
def test_a_tap_sees_only_its_own_layer(method):
    """A tensor that also goes another way brings that way's relevance to neither tap."""

    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right, self.same = nn.Linear(4, 3), nn.Linear(4, 3), nn.Identity()
            self.constant = nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.left(x) + self.right(self.same(x)) + self.constant(torch.ones(1, 2))

    torch.manual_seed(0)
    found = relevance(
        Fork(), torch.randn(3, 4), method=method, layers=["left:input", "right:input", "same", "constant"]
    )
    left, right, same, constant = found.layers.values()
    assert left.abs().min() > 0 and right.abs().min() > 0
    torch.testing.assert_close(same, right)
    torch.testing.assert_close(left + right, found.input)
    assert constant.shape == (1, 3) and (constant == 0).all() == isinstance(method, lrp.Composite)


def test_an_unknown_layer_is_an_error_with_a_suggestion():
    model, x = build("ResNet")
    with pytest.raises(
        ConfigError, match=r"must name modules of the model, got 'layer1.0.convv'; did you mean layer1.0.conv"
    ):
        relevance(model, x, layers=["layer1.0.convv"])
    with pytest.raises(ConfigError, match=r"list of names, got the single string 'fc'; write \['fc'\]"):
        relevance(model, x, layers="fc")


def test_a_layer_that_does_not_run_is_an_error():
    model = nn.Sequential(nn.Linear(4, 3))
    model[0].unused = nn.ReLU()
    with pytest.raises(SubjectError, match=r"run the layers \['0.unused'\], but it did not use them"):
        relevance(model, torch.rand(2, 4), layers=["0.unused"])


def test_channels_of_a_layer_that_was_not_asked_for():
    found = relevance(nn.Linear(4, 3), torch.rand(2, 4))
    with pytest.raises(ConfigError, match=r"one of the layers \[\], got 'fc'; ask for it in `layers`"):
        found.channels("fc")


def test_channels_add_up_positions():
    model, x = build("ResNet")
    found = relevance(model, x, layers=["layer2", "fc"])
    full = found.layers["layer2"]
    torch.testing.assert_close(found.channels("layer2"), full.sum((2, 3)))
    torch.testing.assert_close(found.channels("layer2", reduction="mean"), full.mean((2, 3)))
    torch.testing.assert_close(found.channels("fc"), found.layers["fc"])
    tokens = relevance(*build("ViT (SDPA)"), layers=["blocks.0"])
    torch.testing.assert_close(tokens.channels("blocks.0", axis=-1), tokens.layers["blocks.0"].sum(1))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda x: x, r"expected a torch.nn.Module, got function"),
        (nn.Sequential(nn.DataParallel(nn.Linear(2, 2))), r"0 is a DataParallel, whose operations cannot be seen"),
    ],
)
def test_models_that_cannot_be_seen_into_are_an_error(model, message):
    with pytest.raises(SubjectError, match=message):
        relevance(model, torch.rand(1, 2))


def test_a_model_that_returns_more_than_a_tensor_needs_output():
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"logits": self.fc(x), "features": x}

    x = torch.rand(2, 4)
    with pytest.raises(SubjectError, match="return a tensor, got dict; say which one to explain with `output="):
        relevance(Both(), x)
    assert relevance(Both(), x, output=lambda returned: returned["logits"]).input.shape == x.shape


def test_unknown_methods_and_options_are_an_error():
    with pytest.raises(
        ConfigError, match="method must be a Composite, GradientTimesInput or IntegratedGradients, got 'lrp'"
    ):
        relevance(nn.Linear(4, 3), torch.rand(2, 4), method="lrp")
    with pytest.raises(ConfigError, match="bias must be one of absorbed, redistributed, evenly, got 'dropped'"):
        lrp.Composite(bias="dropped")
    with pytest.raises(ConfigError, match="sums must be one of signed, magnitude, got 'odd'"):
        lrp.Composite(sums="odd")
    with pytest.raises(ConfigError, match=r"the rule for 'dense' must be a Rule such as Epsilon\(\), got 'epsilon'"):
        lrp.Composite(dense="epsilon")
    with pytest.raises(ConfigError, match="steps must be at least 1, got 0"):
        lrp.IntegratedGradients(steps=0)
