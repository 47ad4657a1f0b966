"""Where relevance starts."""

import pytest
import torch
from torch import nn

from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.relevance import (
    ClassContrast,
    Composite,
    Epsilon,
    ForClass,
    GradientTimesInput,
    IntegratedGradients,
    Output,
    Region,
    Winner,
    Worst,
    epsilon_plus,
    propagation,
    relevance,
)

OUTPUTS = torch.tensor([[1.0, 5.0, 2.0], [4.0, -1.0, 3.0]])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Winner(), [[0, 1, 0], [1, 0, 0]]),
        (ForClass(2), [[0, 0, 1], [0, 0, 1]]),
        (ForClass(torch.tensor([0, 1])), [[1, 0, 0], [0, 1, 0]]),
        (ClassContrast(1, 2), [[0, 1, -1], [0, 1, -1]]),
        (ClassContrast(torch.tensor([1, 0]), 2), [[0, 1, -1], [1, 0, -1]]),
        (Output(), [[1, 1, 1], [1, 1, 1]]),
        (Output(0), [[1, 0, 0], [1, 0, 0]]),
        (Worst(torch.tensor([[1.0, 4.0, 9.0], [4.0, -1.0, 2.0]])), [[0, 0, 1], [0, 0, 1]]),
    ],
)
def test_starts_choose_outputs(start, expected):
    assert start.weights(OUTPUTS).tolist() == expected


def test_region_sums_the_logits_of_a_class_where_it_wins_or_where_one_says():
    outputs = torch.tensor([[[[1.0, 5.0]], [[2.0, 3.0]]]])
    assert Region(1).weights(outputs).tolist() == [[[[0, 0]], [[1, 0]]]]
    mask = torch.tensor([[[False, True]]])
    assert Region(1, mask).weights(outputs).tolist() == [[[[0, 0]], [[0, 1]]]]


def test_region_of_keypoint_like_worst_output():
    outputs, targets = torch.zeros(1, 2, 2), torch.tensor([[[0.1, 0.2], [-3.0, 0.3]]])
    assert Worst(targets).weights(outputs).tolist() == [[[0, 0], [1, 0]]]


@pytest.mark.parametrize(
    ("start", "outputs", "error", "message"),
    [
        (Winner(), torch.zeros(4), SubjectError, r"Winner needs outputs \(N, classes\), got shape \(4,\); use Output"),
        (ForClass(3), OUTPUTS, ConfigError, r"classes must lie in 0 … 2, got 3"),
        (ForClass(torch.tensor([0])), OUTPUTS, DataError, r"one class per sample, shape \(2,\), got shape \(1,\)"),
        (Worst(torch.zeros(2)), OUTPUTS, DataError, r"targets of the outputs' shape \(2, 3\), got \(2,\)"),
        (Region(0), OUTPUTS, SubjectError, r"Region needs outputs \(N, classes, positions ...\).*use ForClass"),
        (Region(0, torch.zeros(1, 2)), torch.zeros(1, 2, 3), DataError, r"mask of shape \(1, 3\), got \(1, 2\)"),
    ],
)
def test_starts_that_do_not_fit_say_so(start, outputs, error, message):
    with pytest.raises(error, match=message):
        start.weights(outputs)


def test_relevance_starts_with_the_value_of_the_chosen_outputs():
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3, bias=False), torch.randn(5, 4)
    outputs = model(x).detach()
    found = relevance(model, x, method=Composite(dense=Epsilon(1e-9)), start=ClassContrast(0, 1))
    torch.testing.assert_close(found.start, outputs[:, 0] - outputs[:, 1])
    torch.testing.assert_close(found.input, x * (model.weight[0] - model.weight[1]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", [None, GradientTimesInput()])
@pytest.mark.parametrize("last", [nn.Softmax(1), nn.LogSoftmax(1), nn.Sigmoid()])
def test_a_final_softmax_or_sigmoid_is_dropped(last, method):
    torch.manual_seed(0)
    logits, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.randn(5, 4)
    found = relevance(nn.Sequential(logits, last), x, method=method)
    expected = relevance(logits, x, method=method)
    torch.testing.assert_close(found.input, expected.input)
    torch.testing.assert_close(found.start, expected.start)
    torch.testing.assert_close(found.outputs, last(expected.outputs))


def test_rows_by_mask_and_by_function():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.randn(6, 4)
    every = relevance(model, x, layers=["1"])
    targets = torch.tensor([0, 1, 2, 0, 1, 2])
    wrong = every.outputs.argmax(1) != targets
    assert 0 < int(wrong.sum()) < 6
    for rows in (wrong, lambda outputs: outputs.argmax(1) != targets):
        some = relevance(model, x, layers=["1"], rows=rows)
        torch.testing.assert_close(some.input, every.input * wrong[:, None])
        torch.testing.assert_close(some.layers["1"], every.layers["1"] * wrong[:, None])
        assert (some.start != 0).tolist() == wrong.tolist()


def test_rows_must_be_a_boolean_mask():
    with pytest.raises(DataError, match=r"boolean mask of shape \(6,\), got torch.int64 of shape \(2,\).*argmax"):
        relevance(nn.Linear(4, 3), torch.randn(6, 4), rows=torch.tensor([0, 1]))


def test_the_frame_runs_the_forward_pass_itself():
    """One forward pass under the context manager, rows decided on its outputs, one backward pass."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.rand(6, 4)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    with propagation(model, layers=["1"]) as trace:
        outputs = model((trace.watch(x) - 0.5) / 0.25)
    found = trace.relevance(outputs, rows=outputs.detach()[:, 0] > 0)
    expected = relevance(model, (x - 0.5) / 0.25, layers=["1"], rows=lambda o: o[:, 0] > 0)
    assert len(calls) == 2  # one each
    torch.testing.assert_close(found.layers["1"], expected.layers["1"])
    torch.testing.assert_close(found.input, expected.input, rtol=1e-4, atol=1e-6)


def test_outputs_that_do_not_come_from_the_watched_inputs_are_an_error():
    model, x = nn.Linear(4, 3), torch.rand(2, 4)
    with propagation(model) as trace:
        trace.watch(x)
        outputs = model(x)
    with pytest.raises(SubjectError, match=r"outputs that depend on the watched inputs.*trace.watch\(inputs\)"):
        trace.relevance(outputs)
    with propagation(model) as trace:
        outputs = model(x)
    with pytest.raises(SubjectError, match=r"expected inputs with floating-point numbers, watched.*got none"):
        trace.relevance(outputs)


@pytest.mark.parametrize("method", [epsilon_plus(), GradientTimesInput(), IntegratedGradients(steps=4)])
def test_without_the_inputs_the_way_back_ends_at_the_layers(method, monkeypatch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
    x, shapes, grad = torch.rand(7, 6), [], torch.autograd.grad

    def watched(outputs, inputs, *args, **options):
        shapes.extend(tuple(target.shape) for target in inputs)
        return grad(outputs, inputs, *args, **options)

    monkeypatch.setattr(torch.autograd, "grad", watched)
    whole = relevance(model, x, method=method, layers=["2", "3:input"])
    assert (7, 6) in shapes
    shapes.clear()
    with propagation(model, method, layers=["2", "3:input"], conservation=False) as trace:
        outputs = model(trace.watch(x))
    part = trace.relevance(outputs, to_inputs=False)
    assert (7, 4) in shapes and (7, 6) not in shapes
    assert part.input is None and part.conservation is None
    for name, values in whole.layers.items():
        torch.testing.assert_close(part.layers[name], values, rtol=0, atol=0)
