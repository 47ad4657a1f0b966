"""Neighbour accuracy and diversity as the paper defines them: every look at every image, one at a time."""

import torch

from weakspot.looks import Neighbour


def neighbour_accuracy(model, images, targets, ids, *, variation, looks, seed):
    """Share of right answers among the original and its neighbours, per image."""
    look = Neighbour(variation, seed)
    shares = []
    for image, target, name in zip(images, targets, ids, strict=True):
        with torch.no_grad():
            right = int(model(image[None]).argmax(1) == target)
            for number in range(1, looks + 1):
                neighbour = variation.apply(image[None], look.drawn([name], number))
                right += int(model(neighbour).argmax(1) == target)
        shares.append(right / (looks + 1))
    return shares


def simpson(answers):
    """λ = Σ pᵢ² over the classes, by counting each."""
    return sum((answers.count(each) / len(answers)) ** 2 for each in set(answers))


def f1(flagged, weak):
    """2·precision·recall/(precision + recall), counted one by one."""
    hits = sum(a and b for a, b in zip(flagged, weak, strict=True))
    if not hits:
        return 0.0
    precision, recall = hits / sum(flagged), hits / sum(weak)
    return 2 * precision * recall / (precision + recall)
