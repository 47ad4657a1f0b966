import numpy as np
import pytest
import torch


def leading_plainly(values, widths, top):
    """By sorting each layer of each sample; Python's sort keeps the order of equals."""
    leads = np.zeros(values.shape, dtype=bool)
    for row, sample in enumerate(values.tolist()):
        begin = 0
        for width in widths:
            order = sorted(range(begin, begin + width), key=lambda place: -sample[place])
            leads[row, order[:top]] = True
            begin += width
    return leads


@pytest.mark.parametrize("top", [1, 2, 3, 20])
def test_the_leading_neurons_of_every_layer(drawn, top):
    from weakspot.kernels.leading import leading_of_layers

    widths, values = (16, 3, 130, 1, 64), drawn(11, 214)
    leads = leading_of_layers(values, widths, top)
    assert leads.dtype == torch.bool
    np.testing.assert_array_equal(leads.cpu(), leading_plainly(values, widths, top))


@pytest.mark.parametrize("top", [1, 3, 7])
def test_of_equals_the_first_leads(drawn, top):
    from weakspot.kernels.leading import leading_of_layers

    widths, values = (16, 130, 8), drawn(9, 154).round().clip(-1, 1)
    values[:, 146:] = 0.0
    values[3, 16:140] = -torch.inf
    leads = leading_of_layers(values, widths, top)
    np.testing.assert_array_equal(leads.cpu(), leading_plainly(values, widths, top))


def test_samples_that_lie_apart_in_memory(drawn):
    from weakspot.kernels.leading import leading_of_layers

    values = drawn(12, 20)[::3]
    np.testing.assert_array_equal(leading_of_layers(values, (20,), 2).cpu(), leading_plainly(values, (20,), 2))
