"""Overlap of segmentations, position by position in plain Python, straight from the definitions."""


def flat(nested):
    return [value for part in nested for value in flat(part)] if isinstance(nested, list) else [nested]


def iou(predicted, target, kind):
    """|P ∩ T| / |P ∪ T| of one class; None where it is in neither."""
    pairs = list(zip(flat(predicted), flat(target), strict=True))
    either = [pair for pair in pairs if kind in pair]
    return sum(pair == (kind, kind) for pair in either) / len(either) if either else None


def mean_iou(predicted, target, classes):
    values = [value for kind in range(classes) if (value := iou(predicted, target, kind)) is not None]
    return sum(values) / len(values)


def agreement(one, other):
    pairs = list(zip(flat(one), flat(other), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs)
