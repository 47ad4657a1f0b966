import numpy as np
import pytest
import torch


def whole(values):
    return values


def interleaved(values):
    return values.transpose(1, 2).contiguous().transpose(1, 2)


def part_of_more(values):
    """Every second sample of a tensor that is twice as long."""
    return values.repeat_interleave(2, 0)[::2]


@pytest.mark.parametrize("lying", [whole, interleaved, part_of_more])
@pytest.mark.parametrize("shape", [(3, 16, 64), (5, 3, 63), (2, 70, 25), (1, 2, 1300), (7, 10, 1)])
def test_means_and_extremes_of_each_channel(drawn, lying, shape):
    from weakspot.kernels.reducing import by_channel

    values = lying(drawn(*shape))
    plain = values.double().cpu().numpy()
    means, lows, highs = (part.cpu().numpy() for part in by_channel(values))
    np.testing.assert_allclose(means, plain.mean(2), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(lows, plain.min(2))
    np.testing.assert_array_equal(highs, plain.max(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_32_bits(drawn, dtype):
    from weakspot.kernels.reducing import by_channel

    values = (drawn(2, 3, 600) + 40).to(dtype)
    means, lows, _ = by_channel(values)
    assert means.dtype == lows.dtype == torch.float32
    np.testing.assert_allclose(means.cpu(), values.double().cpu().mean(2), rtol=1e-6)
    assert torch.equal(lows, values.float().amin(2))


def test_the_other_samples_of_a_batch_change_no_bit(drawn):
    from weakspot.kernels.reducing import by_channel

    values = drawn(9, 5, 77)
    for taken, alone in zip(by_channel(values), by_channel(values[4:5]), strict=True):
        assert torch.equal(taken[4:5], alone)


def test_a_nan_is_seen_in_the_mean(drawn):
    from weakspot.kernels.reducing import by_channel

    values = drawn(2, 3, 40)
    values[1, 2, 7] = torch.nan
    assert by_channel(values)[0].isnan().nonzero().tolist() == [[1, 2]]


def test_extremes_of_each_layer(drawn):
    from weakspot.kernels.reducing import by_layer

    widths, lows, highs = (16, 70, 1, 130), drawn(21, 217), drawn(21, 217, seed=1)
    low, high = by_layer(lows, highs, widths)
    assert torch.equal(low, torch.stack([part.amin(1) for part in lows.split(widths, 1)], 1))
    assert torch.equal(high, torch.stack([part.amax(1) for part in highs.split(widths, 1)], 1))
