"""Gradient-boosted trees as plain arrays, so that a lesion model holds no code."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TREES, DEPTH, RATE = 100, 2, 0.1
"""Trees, their depth, and how much each adds: few and shallow, since lesions are few."""


@dataclass(frozen=True)
class Trees:
    """Binary trees one after another; a node that is a leaf is its own child.

    roots: the first node of each tree.
    left, right: the next node, by whether the feature is at most the threshold.
    feature, threshold: what a node asks.
    value: what a leaf adds to the logit.
    base: the logit before any tree, shape (1,).
    """

    roots: Ints
    left: Ints
    right: Ints
    feature: Ints
    threshold: Floats
    value: Floats
    base: Floats

    def outputs(self, features: Floats) -> Floats:
        """The logit of being a false positive; shape (lesions,)."""
        values = np.asarray(features, dtype=np.float32)  # as scikit-learn compares them
        node = np.broadcast_to(self.roots, (len(values), len(self.roots)))
        rows = np.arange(len(values))[:, None]
        while True:
            below = values[rows, self.feature[node]] <= self.threshold[node]
            following = np.where(below, self.left[node], self.right[node])
            if np.array_equal(following, node):
                return np.asarray(self.base[0] + self.value[node].sum(1))
            node = following


def fit_trees(features: Floats, wrong: NDArray[np.bool_], *, seed: int) -> Trees:
    """Gradient boosting of the log-loss (Friedman 2001) by scikit-learn."""
    from sklearn.ensemble import GradientBoostingClassifier

    fitted = GradientBoostingClassifier(n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=seed)
    fitted.fit(features, wrong)
    trees = [one.tree_ for one in fitted.estimators_[:, 0]]
    roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
    own = np.arange(sum(tree.node_count for tree in trees))

    def children(name: str) -> Ints:
        numbers = np.concatenate(
            [np.where(getattr(t, name) < 0, -1, getattr(t, name) + r) for t, r in zip(trees, roots, strict=True)]
        )
        return np.where(numbers < 0, own, numbers)

    return Trees(
        roots,
        children("children_left"),
        children("children_right"),
        np.concatenate([np.maximum(tree.feature, 0) for tree in trees]).astype(np.int64),
        np.concatenate([tree.threshold for tree in trees]),
        RATE * np.concatenate([tree.value[:, 0, 0] for tree in trees]),
        np.log([wrong.mean() / (1 - wrong.mean())]),
    )
