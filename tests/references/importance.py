"""Slow, plain versions of clusters and their combinations, straight from the definitions."""

import itertools

import numpy as np


def silhouette(values, labels):
    """Eq. 2–4 of DeepImportance, read with 1/(|C| − 1), value by value."""
    scores = []
    for place, (value, label) in enumerate(zip(values, labels, strict=True)):
        mates = [
            abs(value - v) for i, (v, c) in enumerate(zip(values, labels, strict=True)) if c == label and i != place
        ]
        others = [
            np.mean([abs(value - v) for v, c in zip(values, labels, strict=True) if c == other])
            for other in set(labels) - {label}
        ]
        if not mates:
            scores.append(0.0)
            continue
        within, between = np.mean(mates), min(others)
        scores.append((between - within) / max(between, within) if max(between, within) else 0.0)
    return float(np.mean(scores))


def combinations_reached(train, test, clusters):
    """Every combination of clusters, one by one: is there a test input in it? Best splits by trying all of them."""
    centres = [best_centres(column, clusters) for column in np.asarray(train).T]
    reached = {
        tuple(int(np.argmin([abs(value - centre) for centre in own])) for value, own in zip(row, centres, strict=True))
        for row in test
    }
    targets = list(itertools.product(*[range(len(own)) for own in centres]))
    return sum(target in reached for target in targets) / len(targets)


def best_centres(values, clusters):
    """Centres of the best split of the sorted values into runs, by trying all of them."""
    values = np.sort(values)
    best, centres = np.inf, None
    for cuts in itertools.combinations(range(1, len(values)), clusters - 1):
        parts = np.split(values, cuts)
        cost = sum(((part - part.mean()) ** 2).sum() for part in parts)
        if cost < best - 1e-12:
            best, centres = cost, [part.mean() for part in parts]
    return centres
