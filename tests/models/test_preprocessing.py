import pytest
import torch

from weakspot import Subject
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.models import Normalise


@pytest.fixture
def images():
    return torch.rand(4, 3, 5, 6, generator=torch.Generator().manual_seed(0))


def test_mean_and_standard_deviation_of_the_scaled_values(images):
    mean, std = (120.0, 110.0, 100.0), (60.0, 50.0, 40.0)
    made = Normalise(255, mean, std)(images)
    for channel in range(3):
        torch.testing.assert_close(made[:, channel], (images[:, channel] * 255 - mean[channel]) / std[channel])


def test_blue_first_and_channels_last(images):
    assert torch.equal(Normalise(bgr=True)(images), images[:, [2, 1, 0]])
    assert torch.equal(Normalise(channels_last=True)(images), images.permute(0, 2, 3, 1))
    assert torch.equal(Normalise()(images), images)


def test_one_number_serves_all_channels_and_numbers_per_feature():
    torch.testing.assert_close(Normalise(1, (0.5,), (2.0,))(torch.ones(2, 7)), torch.full((2, 7), 0.25))


def test_what_does_not_fit_is_refused(images):
    with pytest.raises(SubjectError, match=r"for 2 channels, and the inputs are of shape \(4, 3, 5, 6\)"):
        Normalise(1, (0.1, 0.2))(images)
    with pytest.raises(SubjectError, match="for 3 channels"):
        Normalise(bgr=True)(images[:, :1])
    with pytest.raises(ConfigError, match="must not be 0"):
        Normalise(std=(1.0, 0.0))
    with pytest.raises(ConfigError, match="not empty"):
        Normalise(mean=())


def test_another_normalisation_is_another_subject():
    net = torch.nn.Linear(2, 2)
    prints = {Subject(net, preprocess=Normalise(scale)).fingerprint() for scale in (1, 2, 2)}
    assert len(prints) == 2
