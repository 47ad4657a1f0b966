"""The simulation against what can be worked out by hand."""

import pytest

from weakspot.engines.schedule import Patience
from weakspot.engines.simulation import Costs, simulate

FREE = Costs(sample=0.01, event=0.0, latency=0.0)


def test_without_overhead_it_takes_the_work_divided_by_the_workers():
    for workers in (1, 2, 8):
        found = simulate(8000, 100, workers, FREE)
        assert found.seconds == pytest.approx(80 / workers)
        assert found.efficiency == pytest.approx(1.0)
        assert found.limit == "the work"


def test_shards_are_not_divided():
    found = simulate(900, 100, 8, FREE)  # nine shards of a second: the ninth is done when eight workers wait
    assert found.seconds == pytest.approx(2.0)
    assert found.efficiency == pytest.approx(9 / 8 / 2)
    assert found.limit == "too few shards"


def test_a_driver_that_takes_longer_for_a_shard_than_all_workers_together_is_the_limit():
    found = simulate(100_000, 100, 64, Costs(sample=0.001, event=0.01, latency=0.0))
    assert found.seconds == pytest.approx(1000 * 0.01, rel=0.02)  # each shard takes a worker 0.1 s, 64 of them 1.6 ms
    assert found.limit == "the driver"


def test_fetching_counts_like_serving():
    served = simulate(10_000, 100, 4, Costs(sample=1e-4, event=0.1, latency=0.0))
    fetched = simulate(10_000, 100, 4, Costs(sample=1e-4, event=0.0, latency=0.0, row_bytes=10.0, bandwidth=10_000.0))
    assert fetched.seconds == pytest.approx(served.seconds)


def test_shards_ahead_hide_the_latency():
    slow = Costs(sample=0.01, event=0.0, latency=0.5)
    ahead = simulate(10_000, 100, 2, slow)
    waiting = simulate(10_000, 100, 2, slow, patience=Patience(ahead=1))
    assert waiting.seconds == pytest.approx(50 * (1 + 2 * 0.5), rel=0.03)
    assert ahead.seconds < 0.6 * waiting.seconds


def test_merging_comes_at_the_end():
    found = simulate(1000, 100, 10, Costs(sample=0.01, event=0.0, latency=0.0, merge=1.0))
    assert found.seconds == pytest.approx(1.0 + 10.0)
    assert found.limit == "merging at the end"


def test_slow_shards_are_done_by_others_too():
    uneven = Costs(sample=0.01, event=0.0, latency=0.0, spread=1.0)
    patient = Patience(slow=float("inf"))
    alone = [simulate(12_800, 100, 64, uneven, patience=patient, seed=seed).seconds for seed in range(9)]
    helped = [simulate(12_800, 100, 64, uneven, seed=seed).seconds for seed in range(9)]
    assert sum(helped) < 0.8 * sum(alone)
    assert simulate(12_800, 100, 64, uneven, seed=3).seconds == helped[3]


def test_workers_that_hang_from_the_beginning_cost_their_patience_once():
    patience = Patience(first=10.0)
    found = simulate(800, 100, 2, FREE, patience=patience, stuck=2)
    assert found.seconds == pytest.approx(10.0 + 4.0, abs=0.5)  # then two others do eight shards of a second


def test_one_that_hangs_beside_others_costs_no_more_than_its_shard_done_by_another():
    found = simulate(800, 100, 2, FREE, patience=Patience(ahead=1, first=1e6, least=1e6), stuck=1)
    assert found.seconds == pytest.approx(8.0, abs=0.5)


def test_where_all_hang_it_ends_after_so_many_attempts():
    patience = Patience(first=10.0, attempts=3)
    assert simulate(800, 100, 4, FREE, patience=patience, stuck=11).seconds < 60
    found = simulate(800, 100, 4, FREE, patience=patience, stuck=12)
    assert (found.seconds, found.efficiency, found.limit) == (float("inf"), 0.0, "workers that hang")
