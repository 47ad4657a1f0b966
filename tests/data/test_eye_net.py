"""The embedded gaze detector fails where it was made to fail."""

import numpy as np
import pytest
import torch

from weakspot.core.source import check_ids
from weakspot.data import eye_net
from weakspot.data.eyes import Eyes


def accuracy(net, ranges, count=150):
    batch = Eyes(count, ranges=ranges, seed=77).read(np.arange(count))
    with torch.no_grad():
        return float((net(batch.inputs).argmax(1) == batch.targets).float().mean())


def test_it_knows_usual_eyes_and_fails_on_the_others():
    net = eye_net.model()
    assert sum(parameter.numel() for parameter in net.parameters()) < 60_000
    assert eye_net.WEIGHTS.stat().st_size < 300_000
    assert not net.training
    right = {kind: accuracy(net, ranges) for kind, ranges in eye_net.KINDS.items()}
    assert right.pop("usual") > 0.85
    assert set(right) == {"drooping", "tilted", "dark"}
    assert max(right.values()) < 0.6


def test_a_mixture_reads_any_order_and_batch():
    source = eye_net.mixture(5, 3, seed=1)
    check_ids(source)
    assert len(source.ids) == 5 + 3 * 3
    places = np.array([13, 0, 6, 5, 12])
    batch = source.read(places)
    assert batch.ids == tuple(source.ids[place] for place in places)
    for row, place in enumerate(places):
        alone = source.read(np.array([place]))
        assert torch.equal(alone.inputs[0], batch.inputs[row])
        assert alone.targets[0] == batch.targets[row]
        assert alone.metadata["roll"][0] == batch.metadata["roll"][row]
    kinds = [name.partition("-")[0] for name in source.ids]
    whole = source.read(np.arange(len(source.ids)))
    assert whole.metadata["light"][[kind == "dark" for kind in kinds]].max() < 0.2


def test_the_sets_share_no_image():
    sets = [eye_net.train(), eye_net.test(), eye_net.pool()]
    assert [len(source.ids) for source in sets] == [3000, 600, 1200]
    names = [name for source in sets for name in source.ids]
    assert len(set(names)) == len(names)
    assert len({source.fingerprint() for source in sets}) == 3


@pytest.mark.parametrize("kind", ["usual", "drooping", "tilted", "dark"])
def test_every_kind_is_in_both_mixtures(kind):
    for source in (eye_net.test(), eye_net.pool()):
        assert sum(name.startswith(kind) for name in source.ids) >= 100
