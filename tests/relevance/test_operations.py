"""Operations as people write them: functional, in place, by operator; and what can't be handled says so."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot import relevance as lrp
from weakspot.core.errors import SubjectError
from weakspot.relevance import Composite, Output, Pass, register, relevance
from weakspot.relevance.tracer import HANDLERS

EXACT = Composite(bias="redistributed")


class Apply(nn.Module):
    """A function between two layers."""

    def __init__(self, function, inputs: int = 6, outputs: int = 6) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, inputs), nn.Linear(outputs, 3, bias=False)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x)))


def explain(function, *, inputs: int = 6, outputs: int = 6, method: lrp.Method = EXACT) -> lrp.Relevance:
    torch.manual_seed(1)
    return relevance(Apply(function, inputs, outputs), torch.randn(5, 4), method=method, layers=["first", "last:input"])


ELEMENTWISE = {
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": Tensor.tanh,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softplus": F.softplus,
    "mish": F.mish,
    "selu": F.selu,
    "celu": F.celu,
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(-1, 1),
    "prelu": lambda x: F.prelu(x, torch.tensor(0.3)),
    "softmax": lambda x: x.softmax(1),
    "dropout": lambda x: F.dropout(x, 0.5, False),
    "abs": abs,
    "neg": lambda x: -x,
    "pow": lambda x: x**2,
    "scaled": lambda x: x * 3.0 / 2,
    "in place": lambda x: x.relu_(),
    "in-place functional": lambda x: F.relu(x, inplace=True),
    "in-place positional": lambda x: F.leaky_relu(x, 0.1, True),
    "rms_norm": lambda x: F.rms_norm(x, (6,)),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "log_softmax": lambda x: F.log_softmax(x, 1),
}


def under_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return F.relu(x)


ELEMENTWISE["no_grad"] = under_no_grad


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_element_wise_functions_pass_relevance_on(name):
    found = explain(ELEMENTWISE[name])
    torch.testing.assert_close(found.layers["first"], found.layers["last:input"])


MOVING = {
    "flatten": (lambda x: x.view(5, 2, 3).permute(0, 2, 1).flatten(1), 6),
    "cat": (lambda x: torch.cat([x, x.flip(1)], 1), 12),
    "stack": (lambda x: torch.stack([x, x], 2).reshape(5, -1), 12),
    "chunk": (lambda x: torch.cat(x.chunk(2, 1)[::-1], 1), 6),
    "split": (lambda x: x.split([2, 4], 1)[1], 4),
    "index": (lambda x: x[:, [0, 3, 5]], 3),
    "slice": (lambda x: x[..., 1:-1], 4),
    "max": (lambda x: x.view(5, 3, 2).max(2).values, 3),
    "amax": (lambda x: x.view(5, 3, 2).amax(2), 3),
    "max_pool1d": (lambda x: F.max_pool1d(x[:, None], 2)[:, 0], 3),
    "max_pool2d": (lambda x: F.max_pool2d(x.view(5, 1, 2, 3), (2, 1)).flatten(1), 3),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x.view(5, 1, 2, 3), 1).flatten(1), 1),
    "max_pool3d": (lambda x: F.max_pool3d(x.view(5, 1, 1, 2, 3), (1, 2, 1)).flatten(1), 3),
    "expand": (lambda x: x[:, :, None].expand(-1, -1, 2).flatten(1), 12),
    "repeat": (lambda x: x.repeat(1, 2), 12),
    "roll": (lambda x: torch.roll(x, 1, 1), 6),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x[:, :4, None, None], 2).flatten(1), 4),
    "unfold": (lambda x: x.unfold(1, 3, 1).flatten(1), 12),
    "nearest": (lambda x: F.interpolate(x[:, None], scale_factor=2)[:, 0], 12),
    "reflection pad": (lambda x: F.pad(x[:, None], (2, 2), mode="reflect")[:, 0], 10),
    "zero pad": (lambda x: F.pad(x, (1, 2)), 9),
    "T": (lambda x: x.T.T, 6),
    "unbind": (lambda x: torch.stack(x.unbind(1)[:3], 1), 3),
    "where": (lambda x: torch.where(x > 0, x, x), 6),
}


@pytest.mark.parametrize("name", MOVING)
def test_moved_values_take_their_relevance_with_them(name):
    function, outputs = MOVING[name]
    found = explain(function, outputs=outputs)
    torch.testing.assert_close(found.layers["first"].sum(1), found.start - padding(found), rtol=1e-4, atol=1e-5)
    zero = found.layers["first"].abs().sum()
    assert zero > 0


def padding(found: lrp.Relevance) -> Tensor:
    kept = found.conservation.constants
    assert abs(kept) < 1e-5  # zeros earn no relevance
    return torch.zeros_like(found.start)


SHARING = {
    "mean": (lambda x: x.view(5, 3, 2).mean(2), 3),
    "sum": (lambda x: x.view(5, 3, 2).sum(-1), 3),
    "avg_pool1d": (lambda x: F.avg_pool1d(x[:, None], 2)[:, 0], 3),
    "avg_pool2d": (lambda x: F.avg_pool2d(x.view(5, 1, 2, 3), (2, 1)).flatten(1), 3),
    "avg_pool3d": (lambda x: F.avg_pool3d(x.view(5, 1, 1, 2, 3), (1, 2, 1)).flatten(1), 3),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x[:, None], 2)[:, 0], 2),
    "lp_pool2d": (lambda x: F.lp_pool2d(x.relu().view(5, 1, 2, 3), 2, (2, 1)).flatten(1), 3),
    "linear interpolation": (lambda x: F.interpolate(x[:, None], scale_factor=2, mode="linear")[:, 0], 12),
    "residual": (lambda x: x + x.relu(), 6),
    "difference": (lambda x: x - 0.3 * x.flip(1), 6),
    "reversed difference": (lambda x: 1 - x, 6),
    "square": (lambda x: x * x, 6),
    "product": (lambda x: x * (x.flip(1) + 2), 6),
    "gate": (lambda x: torch.sigmoid(x.flip(1)) * x, 6),
    "broadcast gate": (lambda x: x * torch.sigmoid(x.mean(1, keepdim=True)), 6),
    "glu": (lambda x: F.glu(x, 1), 3),
    "matmul": (lambda x: (x.view(5, 2, 3) @ x.view(5, 3, 2)).flatten(1), 4),
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x.view(5, 2, 3), x.view(5, 2, 3)).flatten(1), 4),
    "attention": (lambda x: ((x.view(5, 2, 3) @ x.view(5, 3, 2)).softmax(-1) @ x.view(5, 2, 3)).flatten(1), 6),
    "constant matrix": (lambda x: x @ torch.arange(18.0).view(6, 3), 3),
    "constant from the left": (lambda x: (torch.ones(2, 5) @ x[:, None].expand(5, 5, 6)).flatten(1), 12),
    "addmm": (lambda x: torch.addmm(torch.ones(3), x, torch.arange(18.0).view(6, 3)), 3),
    "normalize": (lambda x: F.normalize(x, dim=1), 6),
    "layer norm by hand": (lambda x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1e-5).sqrt(), 6),
    "layer_norm": (lambda x: F.layer_norm(x, (6,), torch.ones(6) * 2, torch.ones(6)), 6),
    "group_norm": (lambda x: F.group_norm(x, 2, torch.ones(6) * 2, torch.ones(6)), 6),
    "instance_norm": (lambda x: F.instance_norm(x.view(5, 2, 3)).flatten(1), 6),
    "batch_norm": (lambda x: F.batch_norm(x.relu(), torch.ones(6), torch.ones(6) * 2, torch.ones(6), torch.ones(6)), 6),
    "batch statistics": (lambda x: F.batch_norm(x, None, None, training=True), 6),
    "keywords": (lambda x: torch.add(input=F.linear(input=x, weight=torch.eye(6)), other=x), 6),
    "unbatched convolution": (lambda x: F.conv1d(x, torch.ones(2, 5, 1)).T.repeat(3, 1)[:5], 2),
    "same padding": (lambda x: F.conv1d(x[:, None], torch.ones(1, 1, 4), padding="same")[:, 0], 6),
    "dynamic weights": (lambda x: F.linear(x[:1, :3], x[:, 3:]).T.repeat(1, 3), 3),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("name", SHARING)
def test_weighted_sums_and_products_conserve(name):
    function, outputs = SHARING[name]
    found = explain(function, outputs=outputs)
    books = found.conservation
    scale = float(found.layers["first"].abs().sum())
    assert scale > 0
    assert books.constants == pytest.approx(0, abs=1e-4 * scale)
    assert float(found.layers["first"].sum()) == pytest.approx(books.start, abs=1e-4 * scale)


def test_gates_weigh_and_get_nothing():
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.signal, self.gate = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.signal(x) * torch.sigmoid(self.gate(y))

    x, y = torch.randn(2, 4), torch.randn(2, 4)
    signal, gate = relevance(Gated(), (x, y), method=EXACT).input
    assert gate.abs().sum() == 0
    assert signal.abs().sum() > 0


def test_equal_factors_get_half_each():
    class Product(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x * y

    x, y = torch.rand(2, 4), torch.rand(2, 4)
    first, second = relevance(Product(), (x, y), start=Output()).input
    torch.testing.assert_close(first, x * y / 2)
    torch.testing.assert_close(second, x * y / 2)


class InPlace(nn.Module):
    """Everything that in-place operations can break: kept inputs, kept outputs, views of each other."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.c = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.in_place = in_place

    def forward(self, x: Tensor) -> Tensor:
        if not self.in_place:
            h = self.a(x)
            y = self.b(h) + h.relu()
            left = y[:, :3] * 2
            y = torch.cat([left, y[:, 3:]], 1)
            return self.c(torch.cat([y[:, :5], y[:, 5:] * 0.5], 1))
        h = self.a(x)
        y = self.b(h)
        h.relu_()  # the input that the layer b keeps
        y += h  # the output that it keeps
        left = y[:, :3]
        left *= 2  # a view
        y[:, 5] *= 0.5
        return self.c(y)


@pytest.mark.parametrize("composite", [lrp.Composite(), lrp.Composite(dense=lrp.ZPlus()), EXACT])
def test_in_place_operations_change_nothing(composite):
    x = torch.randn(3, 4)
    found = relevance(InPlace(True), x, method=composite, layers=["a", "b"])
    expected = relevance(InPlace(False), x, method=composite, layers=["a", "b"])
    torch.testing.assert_close(found.outputs, expected.outputs)
    torch.testing.assert_close(found.input, expected.input)
    torch.testing.assert_close(found.layers["a"], expected.layers["a"])


def test_dropout_that_does_nothing_before_an_in_place_activation():
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(6, 3)).eval()
    x = torch.randn(3, 4)
    found = relevance(model, x, method=EXACT, layers=["0"])
    expected = relevance(nn.Sequential(model[0], nn.ReLU(), model[4]), x, method=EXACT, layers=["0"])
    torch.testing.assert_close(found.layers["0"], expected.layers["0"])


FILLED = {
    "threshold": lambda x: F.threshold(x, 0.1, -2.0),
    "clamp_max": lambda x: x.relu().clamp_max(-0.5),
    "masked_fill": lambda x: x.relu().masked_fill(x < 0, -1.0),
    "masked_fill_": lambda x: x.relu().masked_fill_(x < 0, -1.0),
    "pad": lambda x: F.pad(x.relu()[:, 1:], (1, 0), value=-1.0),
    "view of a ReLU": lambda x: fill_view(x.relu()),
}


def fill_view(x: Tensor) -> Tensor:
    x[:, :3] -= 1
    return x


@pytest.mark.parametrize("name", FILLED)
def test_negative_numbers_are_not_taken_for_outputs_of_a_relu(name):
    """The short cut for non-negative inputs must not be taken where something negative was written among them."""
    plain = explain(lambda x: FILLED[name](x) * 1.0, method=Composite(dense=lrp.ZPlus()))
    found = explain(FILLED[name], method=Composite(dense=lrp.ZPlus()))
    torch.testing.assert_close(found.layers["last:input"], plain.layers["last:input"])


def test_autocast():
    torch.manual_seed(0)
    model, x = (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval(),
        torch.rand(2, 3, 6, 6),
    )
    exact = relevance(model, x).input
    with torch.autocast("cpu", torch.bfloat16):
        rough = relevance(model, x).input
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.1, atol=0.05 * float(exact.abs().max()))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.div(x, 2.0, rounding_mode="floor"), "torch.div in layer .* with rounding"),
        (lambda x: torch.mul(x, 2.0, out=torch.empty(5, 6)), "torch.mul in layer .* for results written into `out`"),
        (lambda x: torch.lerp(x, x.flip(1), 0.5), "torch.lerp in layer .* has no relevance rule"),
        (
            lambda x: F.linear(x, x[:, :6].repeat(2, 1)[:6], torch.ones(6)),
            "weights computed from the data together with a bias",
        ),
    ],
)
def test_what_cannot_be_handled_says_why(function, message):
    with pytest.raises(SubjectError, match=message):
        explain(function)


def test_writing_into_a_buffer():
    def write(x: Tensor) -> Tensor:
        buffer = torch.zeros(5, 8)
        buffer[:, 1:7] = x
        return buffer

    found = explain(write, outputs=8)
    torch.testing.assert_close(found.layers["first"].sum(1), found.start, rtol=1e-4, atol=1e-5)


def test_learned_tokens_keep_what_falls_on_them():
    found = explain(lambda x: torch.cat([x, torch.ones(5, 2)], 1), outputs=8)
    books = found.conservation
    assert abs(books.constants) > 1e-3
    assert books.unexplained == pytest.approx(0, abs=1e-5)


def test_an_operation_without_a_rule_is_an_error_that_names_it_and_the_layer():
    model = nn.Sequential(nn.Linear(4, 6), Apply(lambda x: torch.cumprod(x, 1), 6, 6))
    model[1].first = nn.Linear(6, 6)
    with pytest.raises(
        SubjectError, match=r"torch\.cumprod in layer '1' \(Apply\) has no relevance rule.*register\(torch\.cumprod"
    ):
        relevance(model, torch.randn(2, 4))


def test_a_user_registers_a_rule_in_one_line():
    function = torch.special.i0e
    assert function not in HANDLERS
    try:
        register(function, Pass())
        found = explain(function)
        torch.testing.assert_close(found.layers["first"], found.layers["last:input"])
    finally:
        HANDLERS.pop(function, None)


class Straight(torch.autograd.Function):
    """A user's own function, of which torch shows nothing."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


class Rounding(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Straight.apply(x)


def test_operations_that_cannot_be_seen_are_an_error():
    model = nn.Sequential(nn.Linear(4, 6), Rounding(), nn.Linear(6, 3))
    with pytest.raises(SubjectError, match=r"layer '2' \(Linear\) uses a tensor made by StraightBackward.*register"):
        relevance(model, torch.randn(2, 4) * 5)


def test_a_module_class_can_be_registered_as_one_operation():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), Rounding(), nn.Linear(6, 3))
    try:
        register(Rounding, Pass())
        found = relevance(model, torch.randn(2, 4) * 5, layers=["0", "1"])
    finally:
        HANDLERS.pop(Rounding, None)
    torch.testing.assert_close(found.layers["0"], found.layers["1"])
    assert "forward" not in vars(model[1])


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_functions_are_an_error():
    scripted = torch.jit.script(_scripted)
    with pytest.raises(SubjectError, match="cannot see"):
        explain(scripted)


def _scripted(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def test_inference_mode_inside_a_model_is_an_error():
    def inferred(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return x.relu()

    with pytest.raises(SubjectError, match=r"layer '\(model\)' \(Apply\) runs under torch.inference_mode; remove it"):
        explain(inferred)


def test_constants_of_the_model_carry_no_graph():
    """Weights computed from parameters are constants, also where they are views or were computed before."""
    weight = nn.Parameter(torch.randn(6, 6))
    early = weight * 2
    found = explain(lambda x: F.linear(x, (weight / weight.norm()).T) + F.linear(x, early))
    assert float(found.layers["first"].sum()) == pytest.approx(found.conservation.start, rel=1e-4, abs=1e-4)
    assert weight.grad is None
