"""The Subject: picks outputs, borrows the model and gives it back, and knows one model from another."""

import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.core.helpers import Grab, everything, look_at
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.look import Original
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource
from weakspot.looks import McDropout


@dataclass
class Answer:
    logits: Tensor
    other: int = 0


@pytest.mark.parametrize(
    ("wrap", "choice"),
    [
        (lambda x: x, None),
        (lambda x: (None, x), 1),
        (lambda x: [x, x + 1], 0),
        (lambda x: (x + 1, x), -1),
        (lambda x: {"aux": x + 1, "logits": x}, "logits"),
        (lambda x: OrderedDict(logits=x), "logits"),
        (Answer, "logits"),
        (lambda x: {"deep": [x + 1, {"logits": x}]}, lambda raw: raw["deep"][1]["logits"]),
    ],
)
def test_output_picks_the_tensor(wrap, choice):
    inputs = torch.randn(3, 2)
    assert torch.equal(Subject(wrap, output=choice, fingerprint="x").forward(inputs), inputs)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_a_black_box_may_answer_with_an_array(kind):
    given = np.arange(6).reshape(3, 2).astype(kind)
    given.flags.writeable = False
    found = Subject(lambda inputs: {"said": given}, output="said", fingerprint="x").forward(torch.zeros(3, 2))
    assert found.tolist() == given.tolist() and found.numpy().dtype == kind


@pytest.mark.parametrize(
    ("given", "choice", "message"),
    [
        (np.array(["a", "b", "c"]), None, r"the model gave a ndarray, expected a tensor"),
        ((1, 2), None, r"the model gave a tuple of 2, expected a tensor: say which one with output="),
        ({"a": 1, "b": 2}, None, r"a mapping with 'a', 'b', expected a tensor"),
        (Answer(torch.zeros(2)), None, r"a Answer, expected a tensor"),
        ((1, 2), 5, r"output=5 is not in the model's tuple: tuple index out of range"),
        ({"a": 1}, "b", r"output='b' is not in the model's dict"),
        (Answer(torch.zeros(2)), "probabilities", r"output='probabilities' is not in the model's Answer"),
        ({"a": "text"}, "a", r"gave a str, expected a tensor"),
        (torch.zeros(5, 2), None, r"outputs of shape \(5, 2\) for 3 inputs: the first dimension must count the inputs"),
        (torch.tensor(1.0), None, r"outputs of shape \(\) for 3 inputs"),
    ],
)
def test_an_output_that_cannot_be_used_is_explained(given, choice, message):
    with pytest.raises(SubjectError, match=message):
        Subject(lambda x: given, output=choice, fingerprint="x").forward(torch.zeros(3, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "detection"}, "task 'detection' is not known: choose one of classification, multilabel"),
        ({"scores": "odds"}, "scores 'odds' is not known: choose 'logits' or 'probabilities'"),
        ({"classes": ["a", "a"]}, "classes must be different names"),
        ({"classes": []}, "classes must be different names"),
        ({"classes": [1, 2]}, "classes must be different names"),
        ({"bounds": (1, 0)}, r"bounds must be \(smallest, largest\), got \(1, 0\)"),
        ({"device": "toaster"}, "device 'toaster' is not known"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Subject(nn.Linear(2, 2), **options)


def test_a_subject_must_be_callable():
    with pytest.raises(ConfigError, match=r"an nn\.Module or a callable, not str"):
        Subject("resnet")


def test_a_gpu_that_is_not_there_is_refused():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match="torch finds no GPU: use device='cpu' or 'auto'"):
        Subject(nn.Linear(2, 2), device="cuda")
    assert Subject(nn.Linear(2, 2), device="auto").device == torch.device("cpu")


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_module_is_refused_with_what_to_give_instead():
    traced = torch.jit.trace(nn.Linear(3, 2), torch.zeros(1, 3))
    with pytest.raises(ConfigError, match=r"TorchScript .* give the nn\.Module it was made from, .* or a function"):
        Subject(traced)
    outputs, _ = Subject(traced.forward).tried(torch.zeros(1, 3))
    assert outputs.shape == (1, 2)


def test_weights_of_another_type_than_the_inputs_are_told():
    half = nn.Linear(3, 2).half()
    with pytest.raises(
        SubjectError, match=r"weights are torch\.float16, and its inputs torch\.float32: cast the inputs"
    ):
        Subject(half).tried(torch.zeros(1, 3))
    outputs, _ = Subject(half, preprocess=lambda inputs: inputs.half()).tried(torch.zeros(1, 3))
    assert outputs.dtype == torch.float16
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        Subject(nn.Linear(3, 2)).tried(torch.zeros(1, 4))


def test_a_number_of_classes_becomes_names():
    assert Subject(nn.Linear(2, 2), classes=3).classes == ("0", "1", "2")


def test_preprocessing_comes_before_the_model():
    (seen,) = look_at(nn.Identity(), torch.ones(2, 3), preprocess=lambda x: 10 * x)
    assert torch.equal(seen.outputs, torch.full((2, 3), 10.0))
    assert torch.equal(seen.inputs, torch.ones(2, 3))


def _in_place(x):
    x *= 2
    return x


@pytest.mark.parametrize(
    "subject",
    [
        Subject(nn.Identity(), preprocess=_in_place),
        Subject(nn.Sequential(nn.ReLU(inplace=True))),
        Subject(_in_place, fingerprint="doubles"),
    ],
)
def test_work_in_place_changes_neither_the_inputs_nor_the_next_look(subject):
    from tests.core.helpers import SEEN

    SEEN.clear()
    inputs = torch.tensor([[-1.0, 2.0]])
    examine(subject, ArraySource(inputs), [Grab(looks=((Original(), 3),))])
    assert len(SEEN) == 3
    for seen in SEEN:
        assert torch.equal(seen.inputs, inputs)
        assert torch.equal(seen.outputs, SEEN[0].outputs)


def test_borrowed_is_in_evaluation_and_comes_back_in_training():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())
    net.train()
    net[1].eval()
    before = everything(net)
    with Subject(net).borrowed() as forward:
        assert not any(module.training for module in net.modules())
        forward(torch.randn(4, 2))
    assert everything(net) == before


class Counter(nn.Module):
    """Its forward changes its buffers, in the way that is chosen."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.register_buffer("calls", torch.zeros(2))
        self.register_buffer("cache", None)

    def forward(self, x):
        if self.how == "in place":
            self.calls.add_(1)
        elif self.how == "behind autograd's back":
            self.calls.data.add_(1)
        elif self.how == "another tensor":
            self.calls = self.calls + 1
        elif self.how == "a cache":
            self.cache = x.clone()
        else:
            self.register_buffer("new", x.clone())
        return x


WAYS = ("in place", "behind autograd's back", "another tensor", "a cache", "a new buffer")


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("how", WAYS)
def test_buffers_come_back(how, fail):
    net = Counter(how)
    calls = net.calls
    try:
        with Subject(net).borrowed() as forward:
            forward(torch.randn(1, 2))
            if fail:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert fail
    assert net.calls is calls
    assert torch.equal(net.calls, torch.zeros(2))
    assert net.cache is None
    assert set(net._buffers) == {"calls", "cache"}


class Learns(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.weight = how, nn.Parameter(torch.ones(2))

    def forward(self, x):
        with torch.no_grad():
            if self.how == "in place":
                self.weight.add_(1)
            else:
                self.weight = nn.Parameter(self.weight + 1)
        return x * self.weight


@pytest.mark.filterwarnings("ignore:the model answers differently each time")
@pytest.mark.parametrize("how", ["in place", "another parameter"])
def test_a_forward_that_trains_is_an_error(how):
    with pytest.raises(SubjectError, match="parameters changed while it was examined: its forward must not train it"):
        look_at(Learns(how), torch.randn(3, 2))


def test_an_exception_inside_is_not_hidden_by_the_check():
    net = Learns("in place").train()
    with pytest.raises(ZeroDivisionError), Subject(net).borrowed() as forward:
        forward(torch.randn(1, 2))
        raise ZeroDivisionError
    assert net.training


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("how", WAYS)
def test_a_model_that_was_moved_comes_back(how):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), Counter(how)).train()
    before, buffers = everything(net), [id(buffer) for buffer in net.buffers()]
    with Subject(net, device="cuda").borrowed() as forward:
        assert forward(torch.randn(2, 2, device="cuda")).is_cuda
    assert everything(net) == before
    assert [id(buffer) for buffer in net.buffers()] == buffers


def fingerprint(model=None, **options):
    torch.manual_seed(0)
    return Subject(
        model if model is not None else nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), **options
    ).fingerprint()


def changed(change):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with torch.no_grad():
        change(net)
    return net


def centred(x, mean):
    return x - mean


def closure(mean):
    return lambda x: x - mean


class Centre:
    def __init__(self, mean):
        self.mean = mean

    def __call__(self, x):
        return x - self.mean

    def apply(self, x):
        return x - self.mean


def test_equal_subjects_have_equal_fingerprints():
    assert fingerprint() == fingerprint(changed(lambda net: None)) == fingerprint(changed(lambda net: net.train()))
    assert fingerprint(preprocess=closure(1)) == fingerprint(preprocess=closure(1))
    assert fingerprint(preprocess=Centre(np.ones(2))) == fingerprint(preprocess=Centre(np.ones(2)))


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net[0].weight[1, 1].add_(1e-7),
        lambda net: net[0].bias.neg_(),
        lambda net: net[1].running_mean.add_(1),
        lambda net: net[1].num_batches_tracked.add_(1),
        lambda net: net.append(nn.ReLU()),
        lambda net: net.double(),
        lambda net: setattr(net[1], "eps", 1e-3),
    ],
)
def test_a_changed_model_has_another_fingerprint(change):
    assert fingerprint(changed(change)) != fingerprint()


PAIRS = {
    "code": (lambda x: x + 1, lambda x: x + 2),
    "names": (lambda x: x.sin(), lambda x: x.cos()),
    "partial": (partial(centred, mean=1), partial(centred, mean=2)),
    "partial of another": (partial(centred, mean=1), partial(_in_place)),
    "closure": (closure(1), closure(2)),
    "tensor in a closure": (closure(torch.ones(2)), closure(torch.zeros(2))),
    "default": (lambda x, mean=1: x - mean, lambda x, mean=2: x - mean),
    "keyword default": (lambda x, *, mean=1: x - mean, lambda x, *, mean=2: x - mean),
    "object": (Centre(1), Centre(2)),
    "object with an array": (Centre(np.zeros(3)), Centre(np.ones(3))),
    "bound method": (Centre(1).apply, Centre(2).apply),
    "inner function": (lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x]),
    "module": (nn.BatchNorm1d(2), nn.BatchNorm1d(2, eps=1)),
    "module's weights": (nn.LayerNorm(2), changed(lambda net: net[1].bias.add_(1))[1]),
    "none": (None, lambda x: x),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_other_preprocessing_is_another_fingerprint(pair):
    one, other = PAIRS[pair]
    assert fingerprint(preprocess=one) != fingerprint(preprocess=other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"output": 0}, {"output": 1}),
        ({"task": "regression"}, {"task": "classification"}),
        ({"classes": 2}, {"classes": ["a", "b"]}),
        ({"scores": "logits"}, {"scores": "probabilities"}),
        ({"bounds": (0, 1)}, {"bounds": (0, 2)}),
        ({"forward": lambda model, x: model(x)}, {"forward": lambda model, x: model(x + 1)}),
    ],
)
def test_other_options_are_another_fingerprint(one, other):
    assert fingerprint(**one) != fingerprint(**other)


def test_a_function_that_calls_itself_can_be_fingerprinted():
    def preprocess(x, times=2):
        return x if times == 0 else preprocess(x * 2, times - 1)

    assert fingerprint(preprocess=preprocess) == fingerprint(preprocess=preprocess)


SCRIPT = """
import torch, numpy as np
from torch import nn
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource
torch.manual_seed(0)
classes = {"cat", "dog", "eel", "fox", "gnu"}
def preprocess(x, kinds=frozenset(classes)):
    return x if "cat" in {"cat", "dog", "eel", "fox", "gnu"} else x + 1
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
print(Subject(net, preprocess=preprocess, classes=2).fingerprint())
words = np.array(["a", "bb", None, "ccc"], dtype=object)
print(ArraySource(np.zeros((4, 2)), metadata={"site": words}).fingerprint())
"""


def test_fingerprints_are_equal_in_every_process():
    printed = set()
    for seed in ("1", "2", "3"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(ran.stdout)
    assert len(printed) == 1


def test_a_black_box_needs_a_name_to_be_known_again():
    with pytest.raises(ConfigError, match="give the subject fingerprint='name and version'"):
        Subject(lambda x: x).fingerprint()
    assert (
        Subject(lambda x: x, fingerprint="a 1").fingerprint() != Subject(lambda x: x, fingerprint="a 2").fingerprint()
    )


def test_a_black_box_has_no_layers_and_is_examined_by_its_outputs():
    box = Subject(lambda x: 2 * x, fingerprint="doubles")
    assert not box.white_box
    assert box.layers(torch.zeros(1, 2)) == ()
    assert not Subject(nn.Linear(2, 2), forward=lambda model, x: model(x)).white_box


def test_a_windowed_forward_is_one_prediction():
    net = nn.Linear(3, 2)
    subject = Subject(net, forward=lambda model, x: torch.stack([model(part) for part in x.split(3, 1)]).mean(0))
    inputs = torch.randn(4, 6)
    with torch.no_grad():
        expected = (net(inputs[:, :3]) + net(inputs[:, 3:])) / 2
        torch.testing.assert_close(subject.forward(inputs), expected)


def test_what_a_run_notes_of_its_subject():
    net = nn.Linear(2, 2)
    noted = Subject(net, classes=["a", "b"]).describe()
    assert noted == {
        "model": "Linear",
        "fingerprint": Subject(net, classes=["a", "b"]).fingerprint(),
        "task": "classification",
        "classes": ["a", "b"],
    }


def test_examining_a_training_model_with_dropout_and_batch_norm_leaves_it_alone():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
    before, source, random = everything(net), ArraySource(torch.randn(6, 3)), torch.get_rng_state()
    examine(Subject(net), source, [Grab(looks=((Original(), 1), (McDropout(), 2)))])
    assert everything(net) == before
    assert torch.equal(torch.get_rng_state(), random)
