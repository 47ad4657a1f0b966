"""Slow, plain versions of surprise adequacy, straight from the definitions: one input at a time."""

import numpy as np
from scipy.stats import gaussian_kde


def distance_surprise(train, train_predicted, traces, predicted, *, without=None):
    """a / b: to the nearest of the same class, and from there to the nearest of another."""
    scores = []
    for place, (trace, label) in enumerate(zip(traces, predicted, strict=True)):
        near, chosen = np.inf, None
        for row, (other, its) in enumerate(zip(train, train_predicted, strict=True)):
            distance = np.sqrt(((trace - other) ** 2).sum())
            if its == label and distance < near and (without is None or without[place] != row):
                near, chosen = distance, other
        far = min(
            np.sqrt(((chosen - other) ** 2).sum())
            for other, its in zip(train, train_predicted, strict=True)
            if its != label
        )
        scores.append(near / far)
    return np.array(scores)


def likelihood_surprise(train, train_predicted, traces, predicted):
    """−log of scipy's Gaussian kernel density of the traces of the same class."""
    return np.array(
        [
            -gaussian_kde(train[train_predicted == label].T).logpdf(trace)[0]
            for trace, label in zip(traces, predicted, strict=True)
        ]
    )
