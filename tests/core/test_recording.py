"""Which models may be recorded on a GPU without being asked for: those that a trace shows not to branch."""

import pytest
import torch
from torch import nn

from weakspot import Subject
from weakspot.core import recording as module
from weakspot.core.layers import Layer
from weakspot.core.recording import recording, what_depends_on_data

INPUTS = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 2), 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, inputs):
        self.seen += 1
        return self.layer(inputs.where(inputs > 0, -inputs))


class Branches(Plain):
    def forward(self, inputs):
        return self.layer(inputs) if inputs.sum() > 0 else self.layer(-inputs)


class Loops(Plain):
    def forward(self, inputs):
        return self.layer(torch.stack([row for row in inputs if row[0].item() > -99]))


class Counts(Plain):
    def forward(self, inputs):
        self.calls += 1
        return self.layer(inputs) if self.calls % 2 else 2 * self.layer(inputs)


class LeavesTorch(Plain):
    def forward(self, inputs):
        return torch.from_numpy(self.layer(inputs).detach().numpy() * 2)


def test_a_model_whose_operations_choose_by_element_may_be_recorded():
    model = Plain().eval()
    assert what_depends_on_data(Subject(model), INPUTS) == ""
    assert model.seen == 0


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Branches, "asks for values while it runs"),
        (Loops, "asks for values while it runs"),
        (LeavesTorch, "asks for values while it runs"),
        (Counts, "does not do the same twice"),
    ],
)
def test_a_model_that_may_do_something_else_may_not(model, told):
    made = model().eval()
    assert told in what_depends_on_data(Subject(made), INPUTS)
    assert made.calls == 0


def test_on_a_cpu_nothing_is_recorded():
    for asked in (None, True, False):
        assert recording(Subject(Plain(), cuda_graphs=asked), INPUTS, (), 64) == (False, "")


def on_a_gpu(model, **options):
    """As if the model lay there; nothing is run."""
    subject = Subject(model, **options)
    subject.device = torch.device("cuda")
    return subject


def test_on_a_gpu_small_passes_are_recorded_unless_the_user_or_the_trace_says_otherwise(monkeypatch):
    small, large = ([Layer("a", 1, "Conv2d", (values,), (3,), 1, weighted=True)] for values in (10, 1 << 30))
    for trouble in ("", "the model asks for values"):
        monkeypatch.setattr(module, "what_depends_on_data", lambda subject, inputs, trouble=trouble: trouble)
        chosen, told = recording(on_a_gpu(Plain()), INPUTS, small, 64)
        assert chosen is not bool(trouble)
        assert trouble in told
        assert recording(on_a_gpu(Plain()), INPUTS, large, 64) == (False, "")
        assert recording(on_a_gpu(Plain(), cuda_graphs=True), INPUTS, large, 64) == (True, "")
        assert recording(on_a_gpu(Plain(), cuda_graphs=False), INPUTS, small, 64) == (False, "")
        assert recording(on_a_gpu(Plain(), precision="bf16"), INPUTS, small, 64) == (False, "")
