"""The methods that learn to tell false from true positives: what each reads, how it is trained, how it scores."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from weakspot.lesions.baselines import (
    DIRECT,
    STRUCTURAL,
    Direct,
    MetaSegMethod,
    direct_uncertainties,
    metaseg_features,
)
from weakspot.lesions.gcn import Kind, Learning, LesionGraph, Readout, TrainedGcn, train_gcn
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.linear import Linear, fit_least_squares, fit_logistic
from weakspot.lesions.location import LOCATION
from weakspot.lesions.trees import Trees, fit_trees

Floats = NDArray[np.float64]
Trained = TrainedGcn | Linear | Trees
"""A trained method; its numbers are arrays."""
PaperMethod = Literal["gcn_classification", "gcn_regression", Direct, MetaSegMethod]
Method = Literal[
    Direct, "structural", "entropy_size", MetaSegMethod, "location", "node_means", "boosted_trees", "gcn_without_edges",
    "gcn_classification", "gcn_regression",
]  # fmt: skip
PAPER_METHODS: tuple[PaperMethod, ...] = get_args(PaperMethod)
"""Those of Lambert et al. 2022."""
METHODS: tuple[Method, ...] = get_args(Method)
"""From the simplest to the most complex, as `LEVEL` says."""
TRAINED = tuple(name for name in METHODS if name not in DIRECT)
REGRESSIONS = ("gcn_regression", "metaseg_regression")
"""Methods that predict the adjusted IoU; the others give the logit of being a false positive."""
NETWORKS: Mapping[str, tuple[Kind, bool]] = {
    "gcn_without_edges": ("classification", False),
    "gcn_classification": ("classification", True),
    "gcn_regression": ("regression", True),
}
"""Graph networks: what they predict, and whether voxels that touch are joined."""
LEVEL = {
    **dict.fromkeys(DIRECT, 0), "entropy_size": 1, "metaseg_classification": 1, "metaseg_regression": 1,
    "location": 2, "node_means": 2, "boosted_trees": 3, "gcn_without_edges": 4, "gcn_classification": 5,
    "gcn_regression": 5,
}  # fmt: skip
"""How complex a method is: of methods that are as good as each other the simplest is taken."""


def known_methods(lesions: LesionSet) -> tuple[str, ...]:
    """The methods that these lesions have what they need for; older samples have no structural uncertainty."""
    wants = {STRUCTURAL: (STRUCTURAL,), "location": LOCATION}
    return tuple(name for name in METHODS if set(wants.get(name, ())) <= set(lesions.columns))


def entropy_size_features(lesions: LesionSet) -> Floats:
    """Mean entropy and the logarithm of the size; shape (lesions, 2)."""
    return np.column_stack([lesions.columns["entropy"], np.log(lesions.columns["voxels"])]).astype(np.float64)


def location_features(lesions: LesionSet) -> Floats:
    """Mean entropy, the logarithm of the size, the place in the head and the distance to its border."""
    places = np.column_stack([lesions.columns[name] for name in LOCATION])
    return np.column_stack([entropy_size_features(lesions), places])


def node_mean_features(lesions: LesionSet) -> Floats:
    """The mean of each feature over the nodes of a lesion's graph; shape (lesions, features)."""
    return lesions.node_means


def tree_features(lesions: LesionSet) -> Floats:
    """The measures of a lesion, the logarithm of its size, and the means over its nodes."""
    names = ("entropy", "variance", "pcs", "mutual_information", "entropy_logsum", "variance_logsum", "pcs_logsum")
    measures = np.column_stack([lesions.columns[name] for name in names])
    return np.column_stack([measures, np.log(lesions.columns["voxels"]), node_mean_features(lesions)])


FEATURES: Mapping[str, Callable[[LesionSet], Floats]] = {
    "entropy_size": entropy_size_features,
    "metaseg_classification": lambda lesions: metaseg_features(lesions.columns),
    "metaseg_regression": lambda lesions: metaseg_features(lesions.columns),
    "location": location_features,
    "node_means": node_mean_features,
    "boosted_trees": tree_features,
}


def train(method: str, lesions: LesionSet, rows: NDArray[np.int64], how: Learning) -> Trained:
    """The method, trained on some of the lesions, of which both kinds must occur."""
    wrong, iou = lesions.false_positive[rows], lesions.adjusted_iou[rows]
    if method in NETWORKS:
        kind, _ = NETWORKS[method]
        return train_gcn(_graphs(method, lesions, rows), iou if kind == "regression" else wrong, kind, how)
    features = FEATURES[method](lesions)[rows]
    if method == "boosted_trees":
        return fit_trees(features, wrong, seed=how.seed)
    return fit_least_squares(features, iou) if method in REGRESSIONS else fit_logistic(features, wrong)


def score(method: str, trained: Trained | None, lesions: LesionSet, rows: NDArray[np.int64]) -> Floats:
    """The score of some of the lesions, higher for those that are more likely false positives."""
    if method in DIRECT:
        return direct_uncertainties(lesions.columns)[method][rows]
    if isinstance(trained, TrainedGcn):
        outputs = trained.outputs(_graphs(method, lesions, rows))
    else:
        assert trained is not None
        outputs = trained.outputs(FEATURES[method](lesions)[rows])
    return 1 - outputs if method in REGRESSIONS else outputs


def arrays_of(trained: Trained) -> Mapping[str, np.ndarray]:
    """All numbers of a trained method."""
    return trained.arrays if isinstance(trained, TrainedGcn) else vars(trained)


def restored(method: str, arrays: Mapping[str, np.ndarray], readout: Readout) -> Trained:
    """A trained method from its numbers."""
    if method in NETWORKS:
        return TrainedGcn(NETWORKS[method][0], readout, arrays)
    return Trees(**arrays) if method == "boosted_trees" else Linear(**arrays)


def _graphs(method: str, lesions: LesionSet, rows: NDArray[np.int64]) -> list[LesionGraph]:
    graphs = [lesions.graphs[row] for row in rows]
    return graphs if NETWORKS[method][1] else [without_edges(graph) for graph in graphs]


def without_edges(graph: LesionGraph) -> LesionGraph:
    """The same nodes, each joined to itself alone."""
    own = torch.arange(len(graph.features))
    return LesionGraph(graph.features, own + 1, own, torch.ones(len(own)))
