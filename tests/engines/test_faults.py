"""A hundred killed runs and twenty killed workers; takes minutes."""

import pytest

from tests.engines.faults import kill_runs, kill_workers

pytestmark = pytest.mark.slow


def test_a_hundred_runs_killed_at_random_moments_end_with_the_same_bytes():
    lines = kill_runs(100)
    assert len(lines) == 100
    assert all(line["same_bytes"] for line in lines)
    assert sum(line["engine"] == "ray" for line in lines) > 40
    assert sum(line["shards_kept"] > 0 for line in lines) > 30


def test_of_twenty_killed_workers_only_their_shards_are_repeated():
    line = kill_workers(20)
    assert line["number"] == 20
    assert line["same_bytes"]
    assert line["shards_repeated"] <= 20  # a worker may have been killed between two
