"""Chance without state: against a plain implementation in whole numbers, and against what chance should look like."""

from hashlib import blake2b

import numpy as np
import pytest
import torch
from scipy import stats

from weakspot.core.stateless_random import draw_keys, keep_mask, sample_keys, uniform

CPU = torch.device("cpu")
WORD = (1 << 64) - 1
IDS = [f"sample {number}" for number in range(400)]


def splitmix64(state):
    """Steele et al. 2014, in Python's whole numbers: the next state and the output."""
    state = (state + 0x9E3779B97F4A7C15) & WORD
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return state, z ^ (z >> 31)


def plain_words(name, coordinates, count):
    key = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
    for coordinate in coordinates:
        _, key = splitmix64((key + coordinate * 0x9E3779B97F4A7C15) & WORD)
    words = []
    for _ in range(count):
        key, word = splitmix64(key)
        words.append(word)
    return words


def test_the_plain_implementation_gives_the_published_numbers():
    state, found = 1234567, []
    for _ in range(5):
        state, word = splitmix64(state)
        found.append(word)
    assert found == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


@pytest.mark.parametrize("coordinates", [(), (0,), (0, 1), (7, 50, 3), (2**40, 1), (-1, 0)])
@pytest.mark.parametrize("name", ["a", "", "Zürich/äöü.png", "x" * 500])
def test_draws_are_known_numbers(name, coordinates):
    words = plain_words(name, coordinates, 6)
    keys = draw_keys([name], *coordinates)
    assert uniform(keys, 6)[0].tolist() == [(word >> 11) * 2.0**-53 for word in words]
    for drop in (0.1, 0.5, 0.9):
        assert keep_mask(keys, 6, drop, CPU)[0].tolist() == [word >> 40 >= round(drop * 2**24) for word in words]


@pytest.mark.parametrize("count", [10, 70_000])
def test_large_and_small_masks_are_drawn_alike(count):
    """Large ones are drawn by another piece of code, on the device."""
    keys = draw_keys(["a", "b"], 3, 1)
    mask = keep_mask(keys, count, 0.3, CPU)
    words = [plain_words(name, (3, 1), count) for name in ("a", "b")]
    assert torch.equal(mask, torch.tensor([[word >> 40 >= round(0.3 * 2**24) for word in row] for row in words]))


def test_whole_numbers_of_numpy_are_as_good_as_pythons():
    assert np.array_equal(draw_keys(["a"], np.int64(5), np.int32(2)), draw_keys(["a"], 5, 2))


def test_ids_that_no_encoding_has_can_be_drawn_for():
    assert len(set(sample_keys(("\udc80", "\udc81")).tolist())) == 2


def test_what_is_drawn_does_not_depend_on_the_company():
    alone = uniform(draw_keys(["b"], 1, 2), 3)[0]
    for company in (["a", "b"], ["b", "a", "c"], ["c", "b"]):
        assert np.array_equal(uniform(draw_keys(company, 1, 2), 3)[company.index("b")], alone)
    assert np.array_equal(uniform(draw_keys(["b"], 1, 2), 8)[0, :3], alone)


def test_drawing_does_not_touch_torchs_or_numpys_own_chance():
    before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()
    keep_mask(draw_keys(IDS, 0, 1), 3, 0.5, CPU)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)


@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_numbers_are_uniform(seed):
    drawn = uniform(draw_keys(IDS, seed, 1), 50).ravel()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 0.01
    low_digits = drawn * 2**20 % 1
    assert stats.kstest(low_digits, "uniform").pvalue > 0.01


def drawn_over(what):
    """Pairs of draws that differ in one coordinate by one."""
    numbers = range(200)
    if what == "id":
        return uniform(draw_keys(IDS, 0, 1), 1)[:, 0]
    if what == "seed":
        return np.array([uniform(draw_keys(["a"], n, 1), 1)[0, 0] for n in numbers])
    if what == "look":
        return np.array([uniform(draw_keys(["a"], 0, n), 1)[0, 0] for n in numbers])
    if what == "call":
        return np.array([uniform(draw_keys(["a"], 0, 1, n), 1)[0, 0] for n in numbers])
    return uniform(draw_keys(["a"], 0, 1), 200)[0]


@pytest.mark.parametrize("what", ["id", "seed", "look", "call", "place"])
def test_neighbouring_coordinates_are_independent(what):
    drawn = drawn_over(what)
    assert stats.kstest(drawn, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4 / np.sqrt(len(drawn))


def test_the_order_of_coordinates_matters():
    """Look 1 with seed 2 is not look 2 with seed 1, nor one look further along another seed."""
    seen = {(s, n): int(draw_keys(["a"], s, n)[0]) for s in range(30) for n in range(30)}
    assert len(set(seen.values())) == len(seen)


def test_samples_are_independent_over_many_looks():
    looks = np.array([uniform(draw_keys(IDS[:20], 0, number), 2).ravel() for number in range(1, 501)])
    correlations = np.corrcoef(looks.T) - np.eye(looks.shape[1])
    assert np.abs(correlations).max() < 5 / np.sqrt(len(looks))


@pytest.mark.parametrize("drop", [0.05, 0.2, 0.5, 0.9])
def test_masks_keep_the_right_share(drop):
    mask = keep_mask(draw_keys(IDS, 1, 1), 100, drop, CPU)
    spread = np.sqrt(drop * (1 - drop) / mask.numel())
    assert abs(float(mask.double().mean()) - (1 - drop)) < 4 * spread


@pytest.mark.parametrize(("drop", "share"), [(0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("count", [100, 70_000])
def test_masks_of_nothing_and_of_all(drop, share, count):
    assert float(keep_mask(draw_keys(["a"], 0), count, drop, CPU).double().mean()) == share
