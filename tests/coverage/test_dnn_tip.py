"""The same criteria as the dnn-tip package gives them, where the definitions are the same; and where they are not."""

import numpy as np
import pytest
import torch

from weakspot.core.sections import section_numbers
from weakspot.coverage.metrics_ranking import errors_found, greedy_order
from weakspot.coverage.metrics_top_neurons import leading_neurons
from weakspot.coverage.neuron_probes import add_to_histogram
from weakspot.coverage.reached_targets import Bits

peer = pytest.importorskip("dnn_tip.neuron_coverage", reason="needs the peer: pip install dnn-tip")
WIDTHS = [7, 4, 12]
K = 10


@pytest.fixture(scope="module")
def values():
    """Training and test activations without ties."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(60, sum(WIDTHS))), generator.normal(size=(40, sum(WIDTHS))) * 1.3


def by_layer(values):
    return np.split(values, np.cumsum(WIDTHS)[:-1], axis=1)


def histogram(train, test):
    low, high = torch.from_numpy(train.min(0)), torch.from_numpy(train.max(0))
    cells = torch.zeros(len(low), K + 2, dtype=torch.int64)
    add_to_histogram(cells, section_numbers(torch.from_numpy(test), low, high, K))
    return cells.numpy()


def test_sections_and_regions_beyond(values):
    train, test = values
    low, high = by_layer(train.min(0)[None]), by_layer(train.max(0)[None])
    none = [np.zeros_like(part) for part in low]
    cells = histogram(train, test)
    _, sections = peer.KMNC(low, high, K)(by_layer(test))
    _, beyond = peer.NBC(low, high, none, 0)(by_layer(test))
    _, above = peer.SNAC(high, none, 0)(by_layer(test))
    np.testing.assert_array_equal(sections.sum(0), cells[:, 1:-1])
    np.testing.assert_array_equal(beyond.sum(0), cells[:, [0, -1]])
    np.testing.assert_array_equal(above.sum(0), cells[:, -1])


def test_the_largest_training_value_is_in_the_last_section_here_and_beyond_there(values):
    train, _ = values
    low, high = by_layer(train.min(0)[None]), by_layer(train.max(0)[None])
    none = [np.zeros_like(part) for part in low]
    cells = histogram(train, train)
    assert cells[:, 1:-1].sum() == train.size
    at_the_top = peer.KMNC(low, high, K)(by_layer(train))[1][train.argmax(0), np.arange(train.shape[1])]
    assert not at_the_top.all(), "it counts there only where rounding lifts the last border above the value"
    assert peer.SNAC(high, none, 0)(by_layer(train))[1].sum() == train.shape[1]


@pytest.mark.parametrize("top", [1, 3])
def test_leading_neurons(values, top):
    _, profiles = peer.TKNC(top)(by_layer(values[1]))
    np.testing.assert_array_equal(leading_neurons(torch.from_numpy(values[1]), WIDTHS, top).numpy(), profiles)


def test_greedy_order_and_errors_found(values):
    from dnn_tip.apfd import apfd_from_order
    from dnn_tip.prioritizers import cam

    scores, profiles = peer.NAC(1.2)(by_layer(values[1]))
    found = greedy_order(Bits.of(profiles))
    new = int((found.brings > 0).sum())
    theirs = list(cam(scores, profiles.copy()))
    assert new > 5
    assert found.order[:new].tolist() == theirs[:new]
    wrong = np.random.default_rng(1).random(40) < 0.2
    assert errors_found(found.order, wrong).apfd == pytest.approx(apfd_from_order(wrong, found.order))
