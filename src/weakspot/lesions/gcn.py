"""A small graph-convolutional network that reads a lesion of any shape and size (Lambert et al. 2022, section 2.3).

Two graph convolutions (Kipf and Welling 2017) with 64 hidden units, a read-out over the nodes, a linear layer. Plain
torch: the graphs of a batch are one sparse matrix, which is symmetric, so the way back is the same product.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.subject import check_training_device
from weakspot.lesions.graphs import LesionNodes, lesion_edges

Kind = Literal["classification", "regression"]
Readout = Literal["mean", "max", "sum"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Learning:
    """How a lesion model is trained; where the paper is silent the choice is ours, and an option.

    epochs: times over the lesions.
    batch_size: lesions per step.
    hidden: units of each graph convolution.
    first_rate, last_rate: the learning rate of Adam falls from one to the other, by the same factor every epoch.
    readout: from the nodes to the lesion.
    seed: of the first weights and of the order of the lesions.
    device: where it is trained, from the same first weights and in the same order everywhere.
    """

    epochs: int = 60
    batch_size: int = 10
    hidden: int = 64
    first_rate: float = 1e-2
    last_rate: float = 1e-5
    readout: Readout = "mean"
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch_size, self.hidden) < 1 or not 0 < self.last_rate <= self.first_rate:
            raise ConfigError(
                "expected epochs, batch_size and hidden of 1 or more, and 0 < last_rate ≤ first_rate; got "
                f"{self.epochs}, {self.batch_size}, {self.hidden}, {self.last_rate} and {self.first_rate}"
            )
        if self.readout not in get_args(Readout):
            raise ConfigError(f"readout {self.readout!r} is not known: choose one of {', '.join(get_args(Readout))}")
        check_training_device(self.device)

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0.

        >>> [round(Learning(epochs=4).rate(epoch), 6) for epoch in range(4)]
        [0.01, 0.001, 0.0001, 1e-05]
        """
        return float(self.first_rate * (self.last_rate / self.first_rate) ** (epoch / max(1, self.epochs - 1)))


@dataclass(frozen=True)
class LesionGraph:
    """One lesion: node features (nodes, features), and the rows of its Â in compressed form."""

    features: Tensor
    row_ends: Tensor
    columns: Tensor
    weights: Tensor

    def on(self, device: str) -> "LesionGraph":
        """The same graph on a device."""
        return LesionGraph(
            *(tensor.to(device) for tensor in (self.features, self.row_ends, self.columns, self.weights))
        )


@dataclass(frozen=True)
class GraphBatch:
    """Node features (nodes, features), Â (nodes, nodes) in compressed rows, and how many nodes each graph has."""

    features: Tensor
    adjacency: Tensor
    sizes: list[int]


def lesion_graphs(nodes: LesionNodes, features: np.ndarray) -> list[LesionGraph]:
    """Every lesion with its Â = D^(−1/2) (A + I) D^(−1/2), D the degrees of A + I (Kipf and Welling 2017)."""
    if len(features) != len(nodes.places):
        raise DataError(f"expected one row of features per node, got {len(features)} for {len(nodes.places)}")
    one, other = lesion_edges(nodes)
    loops = np.arange(len(features), dtype=np.int32)
    row, column = np.concatenate([one, other, loops]), np.concatenate([other, one, loops])
    order = np.lexsort((column, row))
    row, column = row[order], column[order]
    degree = np.bincount(row, minlength=len(loops)).astype(np.float64)
    weights = torch.from_numpy(((degree[row] * degree[column]) ** -0.5).astype(np.float32))
    ends = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    values = torch.from_numpy(np.array(features, dtype=np.float32))
    graphs = []
    for first, last in pairwise(nodes.starts.tolist()):
        entries = slice(ends[first], ends[last])
        pointers = torch.from_numpy(ends[first + 1 : last + 1] - ends[first])
        columns = torch.from_numpy(column[entries].astype(np.int64) - first)
        graphs.append(LesionGraph(values[first:last], pointers, columns, weights[entries]))
    return graphs


def joined(graphs: Sequence[LesionGraph]) -> GraphBatch:
    """Some lesions side by side, their matrices as the blocks of one."""
    pointers, columns, rows, entries = [graphs[0].row_ends.new_zeros(1)], [], 0, 0
    for graph in graphs:
        pointers.append(graph.row_ends + entries)
        columns.append(graph.columns + rows)
        rows, entries = rows + len(graph.features), entries + len(graph.columns)
    adjacency = _compressed(torch.cat(pointers), torch.cat(columns), torch.cat([graph.weights for graph in graphs]))
    return GraphBatch(torch.cat([g.features for g in graphs]), adjacency, [len(g.features) for g in graphs])


def _compressed(pointers: Tensor, columns: Tensor, weights: Tensor) -> Tensor:
    nodes = len(pointers) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(pointers, columns, weights, size=(nodes, nodes), check_invariants=False)


class _Propagate(torch.autograd.Function):
    """Â x, whose gradient is Â again, since Â is symmetric; torch would work out its transpose each time."""

    @staticmethod
    def forward(context: Any, adjacency: Tensor, values: Tensor) -> Tensor:
        context.adjacency = adjacency
        return adjacency @ values

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, context.adjacency @ gradients[0].contiguous()


class GraphConvolution(nn.Module):
    """X' = Â X W + b (Kipf and Welling 2017): each node takes the weighted mean of its neighbours and itself."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, adjacency: Tensor, values: Tensor) -> Tensor:
        """values (nodes, inputs) to (nodes, outputs)."""
        spread: Tensor = _Propagate.apply(adjacency, values)  # type: ignore[no-untyped-call]
        return spread @ self.weight + self.bias


class LesionGcn(nn.Module):
    """Two graph convolutions, read-out, linear: two logits (true, false positive) or one number per lesion."""

    def __init__(self, features: int, *, outputs: int, hidden: int = 64, readout: Readout = "mean"):
        super().__init__()
        self.first = GraphConvolution(features, hidden)
        self.second = GraphConvolution(hidden, hidden)
        self.linear = nn.Linear(hidden, outputs)
        self.readout = readout

    def forward(self, batch: GraphBatch) -> Tensor:
        """Shape (graphs, outputs)."""
        values = F.relu(self.first(batch.adjacency, batch.features))
        values = F.relu(self.second(batch.adjacency, values))
        read = {
            "mean": lambda nodes: nodes.mean(0),
            "max": lambda nodes: nodes.amax(0),
            "sum": lambda nodes: nodes.sum(0),
        }
        lesions = [read[self.readout](nodes) for nodes in values.split(batch.sizes)]
        outputs: Tensor = self.linear(torch.stack(lesions))
        return outputs


@dataclass(frozen=True)
class TrainedGcn:
    """A trained network as plain arrays, with the mean and spread of the node features it was trained on."""

    kind: Kind
    readout: Readout
    arrays: Mapping[str, np.ndarray]

    def outputs(self, graphs: Sequence[LesionGraph], *, batch_size: int = 10) -> Floats:
        """The logit of being a false positive, or the predicted adjusted IoU; shape (lesions,)."""
        net, standard = self._net(), _standardised(graphs, self.arrays["centre"], self.arrays["scale"])
        classes = self.kind == "classification"
        parts = [np.zeros((0, 1 + classes))]
        with torch.no_grad():
            for start in range(0, len(graphs), batch_size):
                parts.append(net(joined(standard[start : start + batch_size])).double().numpy())
        outputs = np.concatenate(parts)
        return np.asarray(outputs[:, 1] - outputs[:, 0] if classes else outputs[:, 0])

    def _net(self) -> LesionGcn:
        features, hidden = self.arrays["first.weight"].shape
        outputs = len(self.arrays["linear.bias"])
        net = LesionGcn(features, outputs=outputs, hidden=hidden, readout=self.readout)
        weights = {name: torch.tensor(self.arrays[name]) for name in net.state_dict()}
        net.load_state_dict(weights)
        return net


def train_gcn(graphs: Sequence[LesionGraph], targets: np.ndarray, kind: Kind, learning: Learning) -> TrainedGcn:
    """Train on some lesions: `targets` says which are false positives, or gives the adjusted IoU of each.

    Cross-entropy or mean squared error, Adam, batches of 10 graphs (Lambert et al. 2022, sections 2.3 and 3.4).
    """
    if len(targets) != len(graphs) or not len(graphs):
        raise DataError(f"expected a target for each of some lesions, got {len(targets)} for {len(graphs)}")
    nodes = torch.cat([graph.features for graph in graphs]).double()
    spread = nodes.std(0, correction=0)
    centre, scale = nodes.mean(0).float().numpy(), torch.where(spread > 0, spread, 1.0).float().numpy()
    classes = kind == "classification"
    wanted = torch.from_numpy(np.asarray(targets, dtype=np.int64 if classes else np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(learning.seed)  # the GPU's own chance is left as it is
        net = LesionGcn(len(centre), outputs=1 + classes, hidden=learning.hidden, readout=learning.readout)
    there = [graph.on(learning.device) for graph in _standardised(graphs, centre, scale)]
    _descend(net.to(learning.device), there, wanted.to(learning.device), kind, learning)
    weights = {name: values.cpu().numpy().copy() for name, values in net.state_dict().items()}
    return TrainedGcn(kind, learning.readout, {**weights, "centre": centre, "scale": scale})


def _standardised(graphs: Sequence[LesionGraph], centre: np.ndarray, scale: np.ndarray) -> list[LesionGraph]:
    widths = {graph.features.shape[1] for graph in graphs} - {len(centre)}
    if widths:
        raise DataError(
            f"the lesions have {widths.pop()} features per node, and the model was trained on {len(centre)}: use the "
            "same sequences, in the same order"
        )
    mean, spread = torch.tensor(centre), torch.tensor(scale)
    return [replace(graph, features=(graph.features - mean) / spread) for graph in graphs]


def _descend(net: LesionGcn, graphs: Sequence[LesionGraph], wanted: Tensor, kind: Kind, learning: Learning) -> None:
    optimiser = torch.optim.Adam(net.parameters(), lr=learning.first_rate)
    rng = np.random.default_rng(learning.seed)
    with torch.enable_grad():
        for epoch in range(learning.epochs):
            for group in optimiser.param_groups:
                group["lr"] = learning.rate(epoch)
            for drawn in torch.from_numpy(rng.permutation(len(graphs))).split(learning.batch_size):
                outputs, target = net(joined([graphs[lesion] for lesion in drawn])), wanted[drawn]
                loss = (
                    F.cross_entropy(outputs, target) if kind == "classification" else F.mse_loss(outputs[:, 0], target)
                )
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
