"""Slow, plain versions of what `weakspot.classes` computes, straight from the paper's formulas (`deepinspect`)."""

from itertools import combinations
from math import exp, isnan, nan, sqrt

Matrix = list[list[float]]


def activation_probability(activated: list[list[bool]], classes_of: list[set[int]], classes: int) -> Matrix:
    """P(n | C) for each class and neuron; NaN for a class without images."""
    probability = []
    for c in range(classes):
        images = [bits for bits, own in zip(activated, classes_of, strict=True) if c in own]
        neurons = range(len(activated[0]))
        probability.append([sum(bits[n] for bits in images) / len(images) if images else nan for n in neurons])
    return probability


def activation_distance(probability: Matrix, *, normalise: bool) -> Matrix:
    """Equation 2; normalised as in the authors' released code."""
    distance = []
    for first in probability:
        row = []
        for second in probability:
            squared = sum((p - q) ** 2 for p, q in zip(first, second, strict=True))
            either = sum(p > 0 or q > 0 for p, q in zip(first, second, strict=True))
            row.append(sqrt(squared / max(either, 1)) if normalise else sqrt(squared))
        distance.append(row)
    return distance


def neural_paths(activated: list[list[bool]], classes_of: list[set[int]], classes: int) -> list[int]:
    """Distinct sets of activated neurons per class."""
    paths: list[set[tuple[bool, ...]]] = [set() for _ in range(classes)]
    for bits, own in zip(activated, classes_of, strict=True):
        for c in own:
            paths[c].add(tuple(bits))
    return [len(each) for each in paths]


def confusion(labels: list[set[int]], predicted: list[set[int]], classes: int, *, kind: int, minimum: int) -> Matrix:
    """Type 1: b instead of a. Type 2: both. Among the images with a and without b."""
    table = [[nan] * classes for _ in range(classes)]
    for a in range(classes):
        for b in range(classes):
            cases = [said for true, said in zip(labels, predicted, strict=True) if a in true and b not in true]
            if len(cases) >= minimum and a != b:
                wrong = sum(b in said and (a in said) == (kind == 2) for said in cases)
                table[a][b] = wrong / len(cases)
    return table


def pair_confusion(directional: Matrix) -> Matrix:
    """Mean of both directions, unknown counting as none."""
    known = [[0 if isnan(value) else value for value in row] for row in directional]
    classes = range(len(known))
    return [[(known[a][b] + known[b][a]) / 2 if a != b else 0 for b in classes] for a in classes]


def coincidence(labels: list[set[int]], a: int, b: int) -> float:
    """mean(P(a, b | a), P(a, b | b))."""
    both = sum({a, b} <= own for own in labels)
    return sum(both / max(sum(c in own for own in labels), 1) for c in (a, b)) / 2


def average_bias(distance: Matrix, *, limit: float, directional: Matrix | None = None) -> Matrix:
    """Equations 3 and 4 with the distance filter, and optionally the ground-truth filter of the released code."""
    classes = range(len(distance))
    conf = pair_confusion(directional) if directional else None
    table = [[0.0] * len(distance) for _ in classes]
    for a, b in combinations(classes, 2):
        for c in classes:
            to_a, to_b = distance[c][a], distance[c][b]
            counts = c not in (a, b) and (to_a < limit or to_b < limit) and to_a + to_b > 0
            if conf:
                counts = counts and (conf[a][c] > 0 or conf[b][c] > 0)
            if counts:
                table[a][b] += abs(to_a - to_b) / (to_a + to_b) / (len(distance) - 2)
        table[b][a] = table[a][b]
    return table


def average_confusion_disparity(directional: Matrix) -> Matrix:
    """avg_cd of section IV-B."""
    error, classes = pair_confusion(directional), range(len(directional))
    table = [[0.0] * len(directional) for _ in classes]
    for a in classes:
        for b in classes:
            if a != b:
                others = [abs(error[a][c] - error[b][c]) for c in classes if c not in (a, b)]
                table[a][b] = sum(others) / (len(directional) - 2)
    return table


def errors(score: list[float], truth: list[float], *, top: int | None = None) -> tuple[int, int]:
    """True and false positives: score above mean + std (or among the top ones), truth above mean + std."""

    def limit(values: list[float]) -> float:
        mean = sum(values) / len(values)
        return mean + sqrt(sum((value - mean) ** 2 for value in values) / len(values))

    if top is None:
        reported = [number for number, value in enumerate(score) if value > limit(score)]
    else:
        reported = sorted(range(len(score)), key=lambda number: -score[number])[:top]
    hits = sum(truth[number] > limit(truth) for number in reported)
    return hits, len(reported) - hits


def soft_confusion(probability: Matrix, predicted: list[set[int]], classes: int) -> Matrix:
    """Mean probability of b among the images predicted a; NaN on the diagonal and for a class without images."""
    table = [[nan] * classes for _ in range(classes)]
    for a in range(classes):
        own = [row for row, said in zip(probability, predicted, strict=True) if a in said]
        for b in range(classes):
            if own and a != b:
                table[a][b] = sum(row[b] for row in own) / len(own)
    return table


def probabilities(outputs: Matrix, *, several: bool) -> Matrix:
    """Of logits: each label's own where there may be several, else shares that add up to one."""
    if several:
        return [[1 / (1 + exp(-value)) for value in row] for row in outputs]
    return [[exp(value) / sum(map(exp, row)) for value in row] for row in outputs]
