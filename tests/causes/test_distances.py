from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from tests.references import causes as reference
from weakspot.causes import distances
from weakspot.causes.distances import HeatMapRows, distances_between, heat_map_distances, square


@pytest.fixture
def maps():
    return np.random.default_rng(0).normal(size=(13, 3, 4, 5))


def in_shards(maps, order):
    """The same heat maps, cut into shards that lie in another order, halved and to be doubled."""
    where = np.argsort(order)
    return HeatMapRows((maps[order][:5] / 2, maps[order][5:6] / 2, maps[order][6:] / 2), np.full(len(maps), 2.0), where)


def test_agrees_with_the_plain_version(maps):
    expected = squareform(np.array(reference.heat_map_distances(maps.reshape(13, -1))), checks=False)
    assert np.allclose(heat_map_distances(maps), expected, rtol=1e-6)


def test_shards_order_and_blocks_change_nothing(maps, monkeypatch):
    whole = heat_map_distances(maps)
    rows = in_shards(maps, np.random.default_rng(1).permutation(13))
    assert np.array_equal(heat_map_distances(rows), whole)
    monkeypatch.setattr(distances, "_BLOCK_BYTES", 13 * 8 * 7)  # seven values at a time, sixty in all
    assert np.allclose(heat_map_distances(rows), whole, rtol=1e-6)


def test_equal_heat_maps_have_no_distance_beside_large_ones():
    maps = np.random.default_rng(2).normal(size=(4, 5000)) * 1e3
    maps[3] = maps[1]
    maps[2] = maps[1] + 1e-4
    found = square(heat_map_distances(maps))
    assert found[1, 3] < 1e-7 * found.max()
    assert found[1, 2] == pytest.approx(1e-4 * np.sqrt(5000), abs=1e-8 * found.max())


def test_distances_to_others(maps):
    rows = HeatMapRows.of(maps)
    found = distances_between(rows.select(np.array([2, 5])), rows)
    assert np.allclose(found, squareform(pdist(maps.reshape(13, -1)))[[2, 5]], atol=1e-6)


def test_the_values_of_chosen_rows(maps):
    rows = in_shards(maps, np.random.default_rng(3).permutation(13)).select(np.array([12, 0, 6]))
    assert rows.shape == (3, 4, 5)
    assert np.allclose(rows.values(7, 9), maps.reshape(13, -1)[[12, 0, 6], 7:9])


def test_one_image_has_no_distances():
    assert len(heat_map_distances(np.ones((1, 4)))) == 0
    assert square(np.zeros(0)).shape == (1, 1)


def file_pages():
    """Megabytes of mapped files that count as this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("RssFile"))


def test_what_was_read_of_a_mapped_file_is_given_back(tmp_path):
    maps = np.memmap(tmp_path / "maps", dtype=np.float16, mode="w+", shape=(300, 100_000))  # 60 MB
    maps[:] = np.random.default_rng(0).random((300, 1), dtype=np.float32)
    maps[:, 7] += 1
    expected = np.array(maps[:, 7:8], dtype=np.float64)
    before = file_pages()
    rows = HeatMapRows.of(maps)
    heat_map_distances(rows)
    assert file_pages() < before - 40  # those just written are gone too
    assert np.array_equal(rows.values(7, 8), expected)  # and nothing is lost
