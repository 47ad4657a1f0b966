"""Lesions of a sampled segmentation, voxel by voxel: plain loops straight from the papers."""

import itertools
import math

import numpy as np


def touching(voxel, shape):
    """The neighbours of a voxel by face, edge or corner that lie inside."""
    for step in itertools.product((-1, 0, 1), repeat=len(shape)):
        near = tuple(int(v + s) for v, s in zip(voxel, step, strict=True))
        if any(step) and all(0 <= n < side for n, side in zip(near, shape, strict=True)):
            yield near


def components(mask):
    """The 26-connected components as lists of voxels, in the order of their first voxel; by flood fill."""
    seen, found = set(), []
    for start in map(tuple, np.argwhere(mask).tolist()):
        if start in seen:
            continue
        stack, part = [start], []
        seen.add(start)
        while stack:
            voxel = stack.pop()
            part.append(voxel)
            for near in touching(voxel, mask.shape):
                if mask[near] and near not in seen:
                    seen.add(near)
                    stack.append(near)
        found.append(sorted(part))
    return found


def adjusted_iou(predicted, truth):
    """|k ∩ K'| / |k ∪ (K' without Q)| for every predicted component k, with sets of voxels."""
    ours, theirs = [[set(part) for part in components(mask)] for mask in (predicted, truth)]
    found = []
    for k in ours:
        met = set().union(*(g for g in theirs if g & k))
        others = set().union(*(q for q in ours if q is not k and q & met))
        found.append(len(k & met) / len(k | (met - others)))
    return found


def voxel_measures(samples, lesion_classes):
    """Entropy, variance, PCS and mutual information of one voxel; samples (draws, classes)."""
    draws = [[float(p) for p in draw] for draw in samples]
    mean = [sum(own) / len(draws) for own in zip(*draws, strict=True)]
    lesion = [sum(draw[c] for c in lesion_classes) for draw in draws]
    average = sum(lesion) / len(lesion)
    first, second = sorted(mean, reverse=True)[:2]
    spread = [_entropy(draw) for draw in draws]
    return {
        "lesion": average,
        "entropy": _entropy(mean),
        "variance": sum((p - average) ** 2 for p in lesion) / len(lesion),
        "pcs": first - second,
        "mutual_information": _entropy(mean) - sum(spread) / len(spread),
    }


def _entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def graph(voxels, shape, dilation):
    """Nodes of a lesion, dilated, in the order of the volume; and its edges as a set of pairs of node numbers."""
    nodes = set(voxels)
    for _ in range(dilation):
        nodes |= {near for voxel in nodes for near in touching(voxel, shape)}
    ordered = sorted(nodes)
    number = {voxel: place for place, voxel in enumerate(ordered)}
    edges = {
        frozenset((number[voxel], number[near]))
        for voxel in ordered
        for near in touching(voxel, shape)
        if near in number
    }
    return ordered, edges


def graph_features(nodes, intensities, label, measures):
    """The n + 4 numbers of each node."""
    return [
        [float(own[voxel]) for own in intensities] + [float(label[voxel])] + [float(own[voxel]) for own in measures]
        for voxel in nodes
    ]


def graph_convolution(features, edges, weight, bias):
    """D^(−1/2) (A + I) D^(−1/2) X W + b with dense matrices (Kipf and Welling 2017)."""
    adjacency = np.eye(len(features))
    for one, other in edges:
        adjacency[one, other] = adjacency[other, one] = 1
    scale = np.diag(adjacency.sum(1) ** -0.5)
    return scale @ adjacency @ scale @ features @ weight + bias


def accuracy_confidence(uncertainty, false_positive):
    """(FP, TP) shares when the τ least sure lesions are set aside one after another, and the area under them."""
    levels = [-math.inf, *sorted(set(uncertainty))]
    points = []
    for level in levels:
        kept = [wrong for u, wrong in zip(uncertainty, false_positive, strict=True) if u <= level]
        points.append(
            (sum(kept) / sum(false_positive), (len(kept) - sum(kept)) / (len(false_positive) - sum(false_positive)))
        )
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    return points, area


def structural(samples, threshold, smallest):
    """1 − mean IoU of each lesion of the mean with the largest of each look's, and of all lesions of a case together.

    samples: lesion probabilities, one volume per look.
    """

    def lesions(mask):
        return [set(part) for part in components(mask) if len(part) >= smallest]

    ours = lesions(sum(samples) / len(samples) > threshold)
    looks = [lesions(sample > threshold) for sample in samples]
    of_lesions = [
        1 - sum(max((len(own & other) / len(own | other) for other in look), default=0) for look in looks) / len(looks)
        for own in ours
    ]
    whole = []
    for look in looks:
        one, other = set().union(*ours), set().union(*look)
        whole.append(len(one & other) / len(one | other) if one | other else 1.0)
    return of_lesions, 1 - sum(whole) / len(whole)


def precision_retained(uncertainty, false_positive, kept):
    """Precision when all but the `kept` most certain lesions of a patient are looked at and false ones dropped."""
    order = sorted(range(len(uncertainty)), key=lambda lesion: uncertainty[lesion])
    left = sum(false_positive[lesion] for lesion in order[:kept])
    true = len(order) - sum(false_positive)
    return true / (true + left)


def hd95(one, other, spacing):
    """The 95th percentile of the distances between the surfaces of two sets of voxels, both ways, pair by pair."""

    def surface(part):
        faces = [
            tuple(side if axis == along else 0 for axis in range(len(spacing)))
            for along in range(len(spacing))
            for side in (-1, 1)
        ]
        return [
            v for v in part if any(tuple(a + b for a, b in zip(v, face, strict=True)) not in part for face in faces)
        ]

    def distance(a, b):
        return math.sqrt(sum((s * (x - y)) ** 2 for s, x, y in zip(spacing, a, b, strict=True)))

    surfaces = surface(one), surface(other)
    nearest = [min(distance(v, w) for w in surfaces[1]) for v in surfaces[0]]
    nearest += [min(distance(v, w) for w in surfaces[0]) for v in surfaces[1]]
    return float(np.percentile(nearest, 95))
