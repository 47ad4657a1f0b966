"""Sketches of heat maps: what they keep, what they promise of their error, and that clusters come out the same."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from weakspot.causes.clusters import ClusterRecipe, cluster_layer
from weakspot.causes.device_distances import _products, condensed_distances
from weakspot.causes.distances import HeatMapRows, heat_map_distances
from weakspot.causes.heat_maps import columns_of
from weakspot.causes.sketches import SKETCH, sketch_error, sketched, worth_sketching

CPU = torch.device("cpu")


def planted(groups=4, each=15, shape=(64, 14, 14), noise=1.0):
    """Maps of some groups, their common part as strong as their noise."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(groups, *shape, generator=generator)
    number = np.repeat(np.arange(groups), each)
    return centres[number] + noise * torch.randn(len(number), *shape, generator=generator), number


def test_a_sketch_is_the_signed_sum_of_every_so_many_values():
    maps = torch.arange(1.0, 12.0).reshape(1, 11)
    ones = torch.eye(11)
    signs = sketched(ones, 4)  # each value alone: its sign, at its place modulo 4
    assert [row.nonzero().item() for row in signs] == [place % 4 for place in range(11)]
    assert set(signs.sum(1).tolist()) == {-1.0, 1.0}
    assert torch.allclose(sketched(maps, 4), maps @ signs)


def test_signs_are_balanced_and_the_same_every_time():
    signs = sketched(torch.eye(3000), 3001).sum(1)
    assert abs(float(signs.mean())) < 0.06
    assert torch.equal(signs, sketched(torch.eye(3000), 3001).sum(1))


def test_distances_err_as_much_as_is_promised():
    maps, _ = planted()
    exact, kept = (pdist(of.flatten(1).double().numpy()) for of in (maps, sketched(maps)))
    error = np.sqrt(np.mean((kept / exact - 1) ** 2))
    assert error < 1.5 * np.sqrt(1 / (2 * SKETCH))
    lengths = [of.flatten(1).norm(dim=1).double().numpy() for of in (maps, sketched(maps))]
    assert sketch_error(*lengths) == pytest.approx(error, rel=0.5)


def test_equal_maps_stay_equal_and_zero_maps_zero():
    maps, _ = planted(2, 2)
    maps[1], maps[2] = maps[0], 0
    kept = sketched(maps)
    assert torch.equal(kept[0], kept[1])
    assert not kept[2].any()


def test_clusters_of_sketches_are_those_of_whole_maps():
    maps, number = planted()
    columns = columns_of({"layer": maps}, "auto", None, sketch=SKETCH)
    assert columns["map0"].shape == (60, SKETCH)
    assert columns["map0"].dtype == torch.float16
    rows = HeatMapRows.of(columns["map0"].numpy(), columns["scale0"].numpy())
    recipe = ClusterRecipe(clusters=4)
    found = [cluster_layer(heat_map_distances(of), recipe).labels for of in (maps.numpy(), rows)]
    assert np.array_equal(*found)
    assert np.array_equal(found[0], number)


def test_small_maps_stay_whole():
    assert not worth_sketching(2 * SKETCH, SKETCH)
    assert worth_sketching(2 * SKETCH + 1, SKETCH)
    assert not worth_sketching(10**9, None)
    assert columns_of({"layer": torch.zeros(1, 2 * SKETCH)}, "auto", None, sketch=SKETCH)["map0"].shape[1] == 2 * SKETCH


def test_distances_on_a_device_are_those_of_the_plain_version():
    maps, _ = planted(3, 4)
    rows = HeatMapRows.of(maps.numpy())
    assert np.allclose(condensed_distances(_products(rows, CPU)), heat_map_distances(rows), rtol=1e-6)
