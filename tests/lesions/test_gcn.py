"""The graph network against dense matrices and torch-geometric, its gradients, and what it can learn."""

import numpy as np
import pytest
import torch

from tests.references import lesions as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.gcn import GraphConvolution, Learning, LesionGcn, joined, lesion_graphs, train_gcn
from weakspot.lesions.graphs import lesion_edges, lesion_nodes
from weakspot.lesions.metrics_components import lesion_components


@pytest.fixture
def lesions():
    """Five lesions of different shapes, with three features per node."""
    rng = np.random.default_rng(3)
    mask = rng.random((9, 9, 9)) < 0.04
    labels, count = lesion_components(mask, smallest=1)
    nodes = lesion_nodes(labels, count)
    assert count > 4
    return nodes, rng.normal(size=(len(nodes.places), 3)).astype(np.float32)


def test_a_convolution_as_with_dense_matrices(lesions):
    nodes, features = lesions
    torch.manual_seed(0)
    layer = GraphConvolution(3, 4)
    with torch.no_grad():
        layer.bias.copy_(torch.randn(4))
        batch = joined(lesion_graphs(nodes, features))
        got = layer(batch.adjacency, batch.features).numpy()
        weight, bias = layer.weight.numpy(), layer.bias.numpy()
    expected = reference.graph_convolution(features, lesion_edges(nodes).T.tolist(), weight, bias)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_a_convolution_as_in_torch_geometric(lesions):
    geometric = pytest.importorskip("torch_geometric.nn", reason="needs torch-geometric")
    nodes, features = lesions
    torch.manual_seed(0)
    theirs, ours = geometric.GCNConv(3, 64), GraphConvolution(3, 64)
    half = torch.from_numpy(lesion_edges(nodes).astype(np.int64))
    batch = joined(lesion_graphs(nodes, features))
    with torch.no_grad():
        ours.weight.copy_(theirs.lin.weight.T)
        ours.bias.copy_(theirs.bias.normal_())
        expected = theirs(torch.from_numpy(features), torch.cat([half, half.flip(0)], 1))
        torch.testing.assert_close(ours(batch.adjacency, batch.features), expected, atol=1e-5, rtol=1e-5)


def test_gradients_as_with_dense_matrices(lesions):
    nodes, features = lesions
    graphs = lesion_graphs(nodes, features)[:3]
    batch = joined(graphs)
    dense = batch.adjacency.to_dense().double()
    torch.manual_seed(0)
    net = LesionGcn(3, outputs=2, hidden=5)
    net(batch).square().sum().backward()
    first = torch.relu(dense @ batch.features.double() @ net.first.weight.double() + net.first.bias.double())
    second = torch.relu(dense @ first @ net.second.weight.double() + net.second.bias.double())
    read = torch.stack([own.mean(0) for own in second.split(batch.sizes)])
    loss = (read @ net.linear.weight.double().T + net.linear.bias.double()).square().sum()
    expected = torch.autograd.grad(loss, list(net.parameters()))
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("readout", ["mean", "max", "sum"])
def test_a_lesion_is_judged_alike_whatever_comes_beside_it(lesions, readout):
    graphs = lesion_graphs(*lesions)
    torch.manual_seed(0)
    net = LesionGcn(3, outputs=2, readout=readout).eval()
    with torch.no_grad():
        together = net(joined(graphs))
        for place, graph in enumerate(graphs):
            torch.testing.assert_close(net(joined([graph]))[0], together[place], atol=1e-5, rtol=1e-5)


def learnable(count=40):
    """Lesions that differ in one feature of their nodes."""
    rng = np.random.default_rng(0)
    labels = np.zeros((3, 3, 4 * count), dtype=np.int32)
    for lesion in range(count):
        labels[1, 1, 4 * lesion + 1 : 4 * lesion + 3] = lesion + 1
    nodes = lesion_nodes(labels, count, dilation=0)
    wrong = rng.random(count) < 0.5
    features = rng.normal(size=(len(nodes.places), 2)).astype(np.float32)
    features[:, 1] += 2 * np.repeat(wrong, 2)
    return lesion_graphs(nodes, features), wrong


def test_it_learns_what_can_be_learnt_and_the_same_every_time():
    graphs, wrong = learnable()
    how = Learning(epochs=15)
    trained = train_gcn(graphs, wrong, "classification", how)
    assert ((trained.outputs(graphs) > 0) == wrong).mean() > 0.9
    again = train_gcn(graphs, wrong, "classification", how)
    assert all(np.array_equal(values, again.arrays[name]) for name, values in trained.arrays.items())
    other = train_gcn(graphs, wrong, "classification", Learning(epochs=15, seed=1))
    assert not np.array_equal(other.arrays["linear.weight"], trained.arrays["linear.weight"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_the_same_network():
    graphs, wrong = learnable()
    one, other = (train_gcn(graphs, wrong, "classification", Learning(epochs=5, device=on)) for on in ("cpu", "cuda"))
    np.testing.assert_allclose(one.outputs(graphs), other.outputs(graphs), atol=1e-3)


def test_regression_predicts_the_number_itself():
    graphs, wrong = learnable()
    trained = train_gcn(graphs, np.where(wrong, 0.1, 0.8), "regression", Learning(epochs=20))
    outputs = trained.outputs(graphs)
    assert abs(outputs[wrong].mean() - 0.1) < 0.15 and abs(outputs[~wrong].mean() - 0.8) < 0.15


def test_chance_outside_is_neither_used_nor_moved():
    graphs, wrong = learnable(12)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    train_gcn(graphs, wrong, "classification", Learning(epochs=1))
    assert torch.equal(torch.get_rng_state(), state)


def test_what_makes_no_sense_is_refused():
    graphs, wrong = learnable(12)
    with pytest.raises(DataError, match="a target for each of some lesions, got 3 for 12"):
        train_gcn(graphs, wrong[:3], "classification", Learning())
    trained = train_gcn(graphs, wrong, "classification", Learning(epochs=1))
    other = lesion_graphs(lesion_nodes(np.ones((2, 2), np.int32), 1), np.zeros((4, 3)))
    with pytest.raises(DataError, match=r"3 features per node, and the model was trained on 2: use the same sequences"):
        trained.outputs(other)
    with pytest.raises(ConfigError, match="last_rate ≤ first_rate"):
        Learning(first_rate=1e-5, last_rate=1e-2)
    with pytest.raises(ConfigError, match="readout 'median' is not known"):
        Learning(readout="median")
    with pytest.raises(ConfigError, match="'toaster': expected 'cpu', or 'cuda' where torch finds a GPU"):
        Learning(device="toaster")
