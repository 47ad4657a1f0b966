"""Graphs of lesions against loops over voxels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.references import lesions as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.graphs import LesionNodes, lesion_edges, lesion_nodes, node_features
from weakspot.lesions.metrics_components import lesion_components

SHAPES = st.one_of(st.tuples(*[st.integers(1, 7)] * 2), st.tuples(*[st.integers(1, 5)] * 3))


@settings(deadline=None)
@given(SHAPES.flatmap(lambda shape: arrays(bool, shape)), st.integers(0, 2))
def test_nodes_edges_and_features_as_by_loops(mask, dilation):
    labels, count = lesion_components(mask, smallest=1)
    nodes = lesion_nodes(labels, count, dilation=dilation)
    edges = lesion_edges(nodes)
    rng = np.random.default_rng(0)
    intensities, measures = rng.random((2, *mask.shape)), [rng.random(mask.shape) for _ in range(3)]
    features = node_features(nodes, intensities, mask, measures)
    assert features.shape == (len(nodes.places), 6) and features.dtype == np.float32
    for lesion, voxels in enumerate(reference.components(mask)):
        first, last = nodes.starts[lesion : lesion + 2]
        ordered, pairs = reference.graph(voxels, mask.shape, dilation)
        assert list(map(tuple, nodes.places[first:last].tolist())) == ordered
        own = edges[:, (edges[0] >= first) & (edges[0] < last)] - first
        assert len(own.T) == len(pairs) and {frozenset(pair) for pair in own.T.tolist()} == pairs
        expected = reference.graph_features(ordered, intensities, mask, measures)
        np.testing.assert_allclose(features[first:last], expected, rtol=1e-6)


def test_two_lesions_whose_surroundings_overlap_stay_apart():
    labels = np.array([[1, 0, 2]], dtype=np.int32)
    nodes = lesion_nodes(labels, 2)
    assert nodes.places.tolist() == [[0, 0], [0, 1], [0, 1], [0, 2]]
    assert {frozenset(pair) for pair in lesion_edges(nodes).T.tolist()} == {frozenset((0, 1)), frozenset((2, 3))}


def test_no_lesion_is_an_empty_graph():
    nodes = lesion_nodes(np.zeros((3, 3, 3), dtype=np.int32), 0)
    assert nodes.places.shape == (0, 3) and nodes.starts.tolist() == [0]
    assert lesion_edges(nodes).shape == (2, 0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="dilation is -1"):
        lesion_nodes(np.zeros((2, 2), dtype=np.int32), 0, dilation=-1)
    with pytest.raises(DataError, match="a lesion has no voxel"):
        lesion_nodes(np.array([[2]], dtype=np.int32), 2)
    nodes = LesionNodes(np.zeros((1, 2), np.int32), np.array([0, 1]))
    with pytest.raises(DataError, match="differ in shape"):
        node_features(nodes, np.zeros((1, 2, 2)), np.zeros((2, 3)), [])
