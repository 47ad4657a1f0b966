"""Slow, plain versions of what a guard computes, written from the papers with loops and the standard library."""

import math


def softmax(logits):
    top = max(logits)
    powers = [math.exp(value - top) for value in logits]
    return [power / sum(powers) for power in powers]


def confidence_scores(logits):
    """Of one input: log-odds against the highest probability, margin, entropy, energy, maximum logit."""
    p, ranked = softmax(logits), sorted(logits, reverse=True)
    highest = max(p)
    return {
        "max_softmax": math.log((1 - highest) / highest),
        "margin": ranked[1] - ranked[0],
        "entropy": -sum(own * math.log(own) for own in p),
        "energy": -math.log(sum(math.exp(value) for value in logits)),
        "max_logit": -ranked[0],
    }


def conformity(p, method, penalty, free):
    """Of one input, each class's score: LAC (Sadinle et al. 2019), APS (Romano et al. 2020), RAPS."""
    scores = []
    for own in range(len(p)):
        if method == "lac":
            scores.append(1 - p[own])
            continue
        place = 1 + sum(other > p[own] for other in p)
        score = sum(other for other in p if other >= p[own])
        scores.append(score + (penalty * max(place - free, 0) if method == "raps" else 0))
    return scores


def roughness(rows, step, *, down):
    """Mean absolute difference of pixels so many apart, of one channel given as rows."""
    lines = list(zip(*rows, strict=True)) if down else rows
    differences = [abs(a - b) for line in lines for a, b in zip(line, line[step:], strict=False)]
    return sum(differences) / len(differences)


def neighbour_distance(feature, bank, k):
    """Distance to the k-th nearest of the bank, all of length 1."""

    def unit(values):
        length = math.sqrt(sum(value * value for value in values))
        return [value / length for value in values]

    own = unit(feature)
    return sorted(math.dist(own, unit(other)) for other in bank)[k - 1]


def risk_levels_passed(scores, wrong, risk, levels, confidence):
    """The thresholds below which the share of wrong ones is at most `risk`, each tested by the exact binomial tail."""
    passed = []
    for level in sorted(set(levels)):
        accepted = [bad for score, bad in zip(scores, wrong, strict=True) if score < level]
        errors, n = sum(accepted), len(accepted)
        tail = sum(math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in range(errors + 1))
        if tail <= (1 - confidence) / len(set(levels)):
            passed.append(level)
    return passed


def group_quantile(scores, groups, miss):
    """The smallest score s at which the groups' mean shares of scores up to s add up to (K + 1)(1 − miss); or None."""
    members = {}
    for score, group in zip(scores, groups, strict=True):
        members.setdefault(group, []).append(score)
    for limit in sorted(scores):
        votes = sum(sum(score <= limit for score in own) / len(own) for own in members.values())
        if votes >= (len(members) + 1) * (1 - miss) - 1e-9:
            return limit
    return None
