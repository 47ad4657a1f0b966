"""Captum's layer attributions as the relevance that probes are shown, beside weakspot's own and captum by hand."""

import pytest
import torch

from tests.core.helpers import look_at
from tests.integrations.conftest import Net, images
from weakspot.core.errors import ConfigError
from weakspot.core.taps import Tap
from weakspot.integrations import CaptumRelevance
from weakspot.relevance import GradientTimesInput
from weakspot.relevance.need import LayerRelevance

captum = pytest.importorskip("captum.attr")


def relevance(attribution, inputs, **options):
    [seen] = look_at(Net().eval(), inputs, attribution=attribution, **options)
    return next(iter(seen.relevance(attribution).values()))


@pytest.mark.parametrize("layer", ["convolution", "linear"])
def test_activation_times_gradient_is_weakspots_own(layer):
    inputs = torch.from_numpy(images(6)[0])
    tap = Tap(layer, side="input", maps=True)
    own = relevance(LayerRelevance(tap, method=GradientTimesInput()), inputs)
    theirs = relevance(CaptumRelevance(tap, method="LayerGradientXActivation"), inputs)
    assert torch.allclose(own, theirs, atol=1e-6)


@pytest.mark.parametrize("method", ["LayerIntegratedGradients", "LayerGradCam", "LayerConductance"])
def test_it_is_what_captum_gives_by_hand(method):
    net, inputs = Net().eval(), torch.from_numpy(images(5)[0])
    tap = Tap("convolution", maps=True)
    found = relevance(CaptumRelevance(tap, method=method), inputs)
    target = net(inputs).argmax(1)
    by_hand = getattr(captum, method)(net, net.convolution).attribute(inputs, target=target).detach()
    expected = by_hand.expand(5, 3, 8, 8)
    assert torch.allclose(found, expected if found.shape == expected.shape else expected.mean((2, 3)), atol=1e-5)


def test_only_what_is_asked_for_is_explained():
    values, labels = images(12)
    from tests.core.helpers import SEEN, Grab
    from weakspot import Subject, examine
    from weakspot.data.sources import ArraySource

    SEEN.clear()
    attribution = CaptumRelevance(Tap("linear", side="input"), where="incorrect")
    examine(Subject(Net()), ArraySource(values, labels), [Grab(attribution=attribution)])
    [seen] = SEEN
    found = next(iter(seen.relevance(attribution).values()))
    right = torch.from_numpy(seen.correct_array)
    assert not found[right].any() and found[~right].any()


def test_what_captum_cannot_do_is_refused():
    inputs = torch.from_numpy(images(3)[0])
    with pytest.raises(ConfigError, match="no layer method 'Saliency'"):
        relevance(CaptumRelevance(Tap("linear"), method="Saliency"), inputs)
    with pytest.raises(ConfigError, match="the task is regression"):
        relevance(CaptumRelevance(Tap("linear")), inputs, task="regression")
