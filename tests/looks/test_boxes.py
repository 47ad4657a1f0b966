"""Volumes cropped or padded to a box: what the network sees, and that places stay those of the original."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.looks import Box, ReversedAxes, SlidingWindow


class Pointwise(nn.Module):
    """Two classes by the value of each voxel alone; keeps what it saw."""

    def __init__(self, scores="logits"):
        super().__init__()
        self.scores, self.seen = scores, []

    def forward(self, inputs):
        self.seen.append(inputs)
        outputs = torch.cat([1 - inputs, inputs], 1)
        return outputs if self.scores == "logits" else outputs.softmax(1)


def volume(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(2, 1, *shape)).astype(np.float32))


def slow_box(values, size):
    """Voxel by voxel: the box whose middle, counted as n // 2, lies on that of the volume; also which voxels it has."""
    boxed = np.zeros((*values.shape[:2], *size), values.dtype)
    inside = np.zeros(values.shape[2:], bool)
    starts = [n // 2 - s // 2 if s <= n else -((s - n) // 2) for n, s in zip(values.shape[2:], size, strict=True)]
    for place in np.ndindex(*size):
        at = tuple(start + p for start, p in zip(starts, place, strict=True))
        if all(0 <= a < n for a, n in zip(at, values.shape[2:], strict=True)):
            boxed[(..., *place)] = values[(..., *at)]
            inside[at] = True
    return boxed, inside


@pytest.mark.parametrize("size", [(6, 8, 9), (3, 4, 2), (5, 6, 7), (8, 3, 7), (4, 9, 5), (1, 1, 20)])
@pytest.mark.parametrize("scores", ["logits", "probabilities"])
def test_the_network_sees_the_box_and_its_outputs_lie_where_they_were(size, scores):
    inputs, net = volume(5, 6, 7), Pointwise(scores)
    found = Box(size, scores=scores)(net, inputs)
    boxed, inside = slow_box(inputs.numpy(), size)
    assert np.array_equal(net.seen[0].numpy(), boxed)
    plain, at = Pointwise(scores)(inputs), torch.from_numpy(inside)
    assert torch.allclose(found[..., at], plain[..., at], rtol=1e-6, atol=0)
    outside = found[..., ~at]
    assert bool((outside.argmax(1) == 0).all())
    shares = outside.softmax(1) if scores == "logits" else outside
    assert torch.allclose(shares[:, 0], torch.ones(())) and float(shares[:, 1:].sum()) < 1e-30


def test_a_box_with_a_window_and_with_turned_axes():
    inputs, net = volume(5, 6, 7), Pointwise()
    windowed = Box((8, 8, 8), scores="logits", of=SlidingWindow((4, 4, 4)))(net, inputs)
    assert torch.allclose(windowed, Pointwise()(inputs), atol=1e-6)
    assert {tuple(seen.shape[2:]) for seen in net.seen} == {(4, 4, 4)}
    turned, net = ReversedAxes(Box((9, 8, 6), scores="logits")), Pointwise()
    assert torch.equal(turned(net, inputs), Pointwise()(inputs))
    assert tuple(net.seen[0].shape[2:]) == (9, 8, 6)


def test_another_box_is_another_model():
    net = nn.Conv3d(1, 2, 1)
    known = {
        Subject(net, task="segmentation", scores="logits", forward=forward).fingerprint()
        for forward in (None, Box((4, 4, 4), scores="logits"), Box((4, 4, 5), scores="logits"))
    }
    assert len(known) == 3


def test_what_is_no_box_is_refused():
    for size, scores in [((), "logits"), ((0, 4, 4), "logits"), ((4, 4, 4), None)]:
        with pytest.raises(ConfigError, match="expected box sizes of 1 or more"):
            Box(size, scores=scores)
    with pytest.raises(SubjectError, match=r"the box \(4, 4\) has 2 axes, the inputs 3"):
        Box((4, 4), scores="logits")(Pointwise(), volume(5, 6, 7))
    with pytest.raises(SubjectError, match=r"a box of size \(4, 4, 4\) gave \(2, 1, 2, 2, 2\)"):
        Box((4, 4, 4), scores="logits")(nn.AvgPool3d(2), volume(5, 6, 7))
