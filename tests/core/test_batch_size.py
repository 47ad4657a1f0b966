"""How many samples go through the model at once, where the user does not say."""

import json

import pytest
import torch
from torch import nn

from tests.core.helpers import Counting, Tally, numbered
from weakspot import ExecutionOptions, Plan, Run, Step, Subject, examine
from weakspot.core import batch_size
from weakspot.core.batch_size import chosen_batch_size
from weakspot.core.layers import Layer

CPU, GPU = torch.device("cpu"), torch.device("cuda")
MIB = 1 << 20


def layer(name, *shape):
    return Layer(name, 1, "Conv2d", shape, (3,), 1, weighted=True)


def chosen(layers, room=None, values=3, device=CPU, model=None):
    return chosen_batch_size(model, torch.zeros(1, values), layers, device, room=room)


def test_it_is_the_largest_power_of_two_that_fits():
    layers = [layer("a", MIB // 8), layer("b", MIB // 8 - 3)]
    assert chosen(layers, room=8 * MIB) == 8  # a sample holds 3 inputs and 2 MiB / 8 - 3 outputs of four bytes
    assert chosen(layers, room=16 * MIB - 1) == 8
    assert chosen(layers, room=16 * MIB) == 16
    assert chosen(layers, room=1) == 1


def test_what_a_block_gives_is_counted_once():
    inside = [layer("block.a", MIB), layer("block.b", MIB)]
    assert chosen(inside, room=33 * MIB) == chosen([*inside, layer("block", MIB)], room=33 * MIB) == 4
    assert chosen([*inside, layer("head", MIB)], room=33 * MIB) == 2


def test_small_inputs_go_through_in_batches_of_64_and_large_ones_in_smaller_ones(monkeypatch):
    monkeypatch.setattr(batch_size, "main_memory", lambda: 64 << 30)
    assert chosen([layer("a", 500_000)]) == 64
    assert chosen([layer("a", 20_000_000)]) == 16
    monkeypatch.setattr(batch_size, "main_memory", lambda: 4 << 30)
    assert chosen([layer("a", 20_000_000)]) == 4


def test_of_a_black_box_the_inputs_are_counted(monkeypatch):
    monkeypatch.setattr(batch_size, "main_memory", lambda: 64 << 30)
    assert chosen([], values=3 * 32 * 32) == 64
    assert chosen([], values=3 * 224 * 224) == 16


def test_on_a_gpu_the_parameters_leave_less_room(monkeypatch):
    monkeypatch.setattr(batch_size, "_gpu_memory", lambda device: 256 * MIB)
    assert chosen([layer("a", MIB)], device=GPU) == 8  # 64 MiB, four and a little each: below 16
    assert chosen([layer("a", MIB)], device=GPU, model=nn.Linear(MIB, 10)) == 4
    assert chosen([layer("a", 10)], device=GPU) == 1024


def test_the_users_number_wins_and_the_finding_says_what_was_taken(monkeypatch):
    monkeypatch.setattr(batch_size, "main_memory", lambda: 8 * 16)  # room for one sample
    for options, size in ((ExecutionOptions(), 1), (ExecutionOptions(batch_size=3), 3)):
        net = Counting()
        finding = examine(Subject(net), numbered(6), [Tally()], execution=options)[0]
        assert finding.provenance["execution"]["batch_size"] == size


class Stopped(Exception):
    """The end of a run."""


class StopAtTwo(Tally):
    """Ends the second shard.

    weight: of each output.
    """

    stop = True

    def observe(self, seen):
        if self.stop and "s3" in seen.ids:
            raise Stopped
        return super().observe(seen)


def test_what_was_begun_resumes_with_the_same_size(monkeypatch, tmp_path):
    run, options = Run.create(tmp_path / "run"), ExecutionOptions(shard_size=2, workers=0)
    monkeypatch.setattr(batch_size, "main_memory", lambda: 8 * 16)
    with pytest.raises(Stopped):
        Plan.of([Step.of(StopAtTwo)]).run(Subject(Counting()), {"test": numbered(6)}, run, execution=options)
    noted = json.loads((tmp_path / "run/work/execution.json").read_text())
    assert noted["batch_size"] == 1
    monkeypatch.setattr(batch_size, "main_memory", lambda: 64 << 30)
    monkeypatch.setattr(StopAtTwo, "stop", False)
    (finding,) = Plan.of([Step.of(StopAtTwo)]).run(Subject(Counting()), {"test": numbered(6)}, run, execution=options)
    assert finding.provenance["execution"]["batch_size"] == 1
