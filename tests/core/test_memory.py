"""Too little memory on the GPU: the batches are halved, which is said, and nothing is counted twice."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import Tally
from weakspot import ExecutionOptions, Subject, examine
from weakspot.core.errors import SubjectError
from weakspot.data.sources import ArraySource


class Narrow(nn.Module):
    """Has room for `most` samples at once; for so many only from the call `late` on."""

    def __init__(self, most: int, late: int = 0):
        super().__init__()
        self.most, self.late, self.calls, self.sizes = most, late, 0, []
        self.layer = nn.Linear(4, 2)

    def forward(self, inputs):
        self.calls += 1
        if len(inputs) > self.most and self.calls > self.late:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.sizes.append(len(inputs))
        return self.layer(inputs)


class Noted:
    """Keeps what it is told."""

    def __init__(self):
        self.done, self.said = 0, []

    def begin(self, what, *, total, done=0):
        self.done = done

    def advance(self, samples):
        self.done += samples

    def tell(self, message):
        self.said.append(message)

    def end(self):
        pass


@pytest.fixture
def data():
    return ArraySource(np.random.default_rng(0).integers(0, 9, (50, 4)).astype(np.float32))


def test_batches_are_halved_until_they_fit_and_it_is_said_each_time(data):
    net, progress = Narrow(most=5), Noted()
    execution = ExecutionOptions(batch_size=16, shard_size=32, workers=0)
    finding = examine(Subject(net), data, [Tally()], execution=execution, progress=progress)[0]
    assert max(net.sizes) == 4
    assert progress.said == [f"the GPU's memory is too small: continuing with batches of {size}" for size in (8, 4)]
    assert progress.done == 50
    assert finding.provenance["execution"]["batch_size"] == 4


def test_a_shard_that_is_done_again_counts_once(data):
    net, progress = Narrow(most=5, late=3), Noted()
    execution = ExecutionOptions(batch_size=8, shard_size=50, workers=2)
    finding = examine(Subject(net), data, [Tally()], execution=execution, progress=progress)[0]
    net.most = 99
    exact = examine(Subject(net), data, [Tally()], execution=execution)[0]
    assert finding.summary["count"].value == progress.done == 50
    np.testing.assert_allclose(finding.arrays["total"], exact.arrays["total"], rtol=1e-6)


def test_where_one_sample_is_too_much_it_says_what_to_do(data):
    net = Narrow(most=0, late=2)
    with pytest.raises(
        SubjectError, match=r"one sample alone does not fit .* Tried to allocate 2.00 GiB.*device='cpu'"
    ):
        examine(Subject(net), data, [Tally()], execution=ExecutionOptions(batch_size=4))
