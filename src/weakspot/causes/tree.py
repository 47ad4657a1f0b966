"""The merge tree of hierarchical agglomerative clustering, and the score of every number of clusters at once."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage as _linkage

from weakspot.causes.distances import Floats, heat_map_distances

Linkage = Literal["ward", "average", "complete", "weighted", "single", "density"]
"""How clusters are merged; "density" merges none: it finds dense groups, as many as there are."""
Labels = NDArray[np.int64]


def merge_tree(condensed: np.ndarray, *, linkage: Linkage = "ward") -> Floats:
    """Which clusters are merged one after another, (images − 1, 4): both, how far apart, and the size (scipy's form).

    Ward's criterion on Euclidean distances [ward1963] is that on the heat maps themselves.

    >>> merge_tree(np.array([1.0, 5.0, 4.0]), linkage="single")[:, :3].tolist()
    [[0.0, 1.0, 1.0], [2.0, 3.0, 4.0]]
    """
    return np.asarray(_linkage(np.asarray(condensed, dtype=np.float64), method=linkage))


def cut_tree(tree: np.ndarray, clusters: int) -> Labels:
    """The cluster of each image when `clusters` are left, numbered from 0 in the order of their first images.

    >>> cut_tree(merge_tree(np.array([5.0, 1.0, 4.0])), 2).tolist()
    [0, 1, 0]
    """
    roots, first, labels = np.unique(_roots(tree, clusters), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels] if len(roots) else labels


def dense_clusters(distances: np.ndarray, *, smallest: int = 5) -> Labels:
    """Groups of images that lie densely, by HDBSCAN (Campello et al. 2013, `campello2013`); any other image is alone.

    distances: symmetric, (images, images).
    smallest: images of a group at least.

    >>> points = np.concatenate([np.linspace(0, 1, 8), np.linspace(50, 51, 8), [500.0]])
    >>> dense_clusters(np.abs(points[:, None] - points)).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    """
    count = len(distances)
    if count < 2 * smallest:
        return np.arange(count)
    from sklearn.cluster import HDBSCAN  # takes a second to import

    found = HDBSCAN(min_cluster_size=smallest, metric="precomputed", copy=True)
    labels = np.asarray(found.fit(np.asarray(distances, dtype=np.float64)).labels_, dtype=np.int64)
    noise = labels < 0
    labels[noise] = labels.max(initial=-1) + 1 + np.arange(int(noise.sum()))
    first, numbers = np.unique(labels, return_index=True, return_inverse=True)[1:]
    return np.asarray(np.argsort(np.argsort(first))[numbers], dtype=np.int64)


def _roots(tree: np.ndarray, clusters: int) -> Labels:
    """The node of the tree that each image belongs to when `clusters` are left."""
    images = len(tree) + 1
    parent = np.arange(2 * images - 1)
    merged = tree[: images - clusters, :2].astype(np.int64)
    parent[merged] = (images + np.arange(len(merged)))[:, None]
    while True:
        above = parent[parent]
        if np.array_equal(above, parent):
            return parent[:images]
        parent = above


def cluster_scores(distances: np.ndarray, tree: np.ndarray, *, most: int = 150) -> tuple[Labels, Floats]:
    """The score of every number of clusters k = 2 … `most`, and these numbers [fahmy2021].

        score(k) = Σ_C |C|/N · (mean distance of two images of C) / k

    A cluster of one image adds nothing. The sums within clusters follow from one to the next along the merge tree, so
    all scores together cost little more than one.

    distances: symmetric, (images, images).

    >>> distances = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> cluster_scores(distances, merge_tree(np.array([1.0, 4.0, 5.0])))[1].round(3).tolist()
    [0.333]
    """
    images = len(distances)
    largest = min(most, images - 1)
    if largest < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    nodes, labels = np.unique(_roots(tree, largest), return_inverse=True)
    sizes = np.bincount(labels).astype(np.float64)
    sums = _block_sums(distances, labels)
    within = sums.diagonal() / np.maximum(sizes - 1, 1)  # |C| · mean distance of two images of C
    scores = np.empty(largest - 1)
    index_of = {int(node): index for index, node in enumerate(nodes)}
    for clusters in range(largest, 1, -1):
        scores[clusters - 2] = within.sum() / (images * clusters)
        one, other = (index_of.pop(int(node)) for node in tree[images - clusters, :2])
        index_of[2 * images - clusters] = one
        sums[one] += sums[other]
        sums[:, one] += sums[:, other]
        sizes[one] += sizes[other]
        within[one], within[other] = sums[one, one] / (sizes[one] - 1), 0.0
    return np.arange(2, largest + 1), scores


def _block_sums(distances: np.ndarray, labels: Labels) -> Floats:
    """The sum of all distances between the images of two labels, for every two: (labels, labels)."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    rows = np.add.reduceat(distances[order], starts, axis=0)
    return np.asarray(np.add.reduceat(rows[:, order], starts, axis=1))


def distances_of_distances(distances: np.ndarray) -> tuple[Floats, Floats]:
    """As the released code of [fahmy2021] compares images: by how far they are from all images.

    Each row of the distance matrix is divided by its largest entry; two images are as far apart as their rows. Returns
    these distances, condensed, and the matrix that the code's score is taken from: symmetric, the divided rows above
    the diagonal.
    """
    largest = distances.max(1, keepdims=True)
    rows = np.divide(distances, largest, out=np.zeros_like(distances), where=largest > 0)
    upper = np.triu(rows, 1)
    return heat_map_distances(rows).astype(np.float64), upper + upper.T
