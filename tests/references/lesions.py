"""Lesions of a sampled segmentation, voxel by voxel: flood fill over all 26 neighbours, plain loops."""

import itertools
import math

import numpy as np


def components(mask):
    """The 26-connected components as lists of voxels, in the order of their first voxel."""
    seen, found = set(), []
    for start in map(tuple, np.argwhere(mask)):
        if start in seen:
            continue
        stack, part = [start], []
        seen.add(start)
        while stack:
            voxel = stack.pop()
            part.append(voxel)
            for step in itertools.product((-1, 0, 1), repeat=mask.ndim):
                near = tuple(np.add(voxel, step))
                inside = all(0 <= n < side for n, side in zip(near, mask.shape, strict=True))
                if inside and mask[near] and near not in seen:
                    seen.add(near)
                    stack.append(near)
        found.append(part)
    return found


def lesion_rows(samples, threshold, least_voxels):
    """(voxels, entropy, variance, 1 − PCS) of each lesion; samples (draws, classes, …voxels) of one volume."""
    mean = samples.mean(0)
    rows = []
    for part in components(mean[1] > threshold):
        if len(part) < least_voxels:
            continue
        entropy, variance, unsure = [], [], []
        for voxel in part:
            p = [float(mean[(c, *voxel)]) for c in range(len(mean))]
            entropy.append(-sum(x * math.log(x) for x in p if x > 0))
            variance.append(float(np.var([samples[(t, 1, *voxel)] for t in range(len(samples))])))
            top = sorted(p)[-2:]
            unsure.append(1 - (top[1] - top[0]))
        rows.append((len(part), np.mean(entropy), np.mean(variance), np.mean(unsure)))
    return rows
