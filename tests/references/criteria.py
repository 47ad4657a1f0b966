"""Slow, plain versions of the criteria of DeepGauge, of confidence scores and of greedy choice: loops, no frame."""

import numpy as np

from tests.references.coverage import channel_value, layer_outputs


def layer_values(model, layers, images):
    """The value of every neuron, one list of layers per image."""
    return [[np.array(channel_value(values)) for values in layer_outputs(model, layers, image)] for image in images]


def beyond_counts(trained, tested):
    """How many test inputs lie below and above the range of the training inputs, per neuron: (neurons, 2)."""
    train = np.array([np.concatenate(layers) for layers in trained])
    counts = np.zeros((train.shape[1], 2), dtype=int)
    for layers in tested:
        for neuron, value in enumerate(np.concatenate(layers)):
            counts[neuron, 0] += value < train[:, neuron].min()
            counts[neuron, 1] += value > train[:, neuron].max()
    return counts


def leading(layers, top):
    """The set of (layer, neuron) that lead their layer; of equal values the lower number."""
    found = set()
    for number, values in enumerate(layers):
        ranked = sorted(range(len(values)), key=lambda neuron: (-values[neuron], neuron))
        found |= {(number, neuron) for neuron in ranked[:top]}
    return found


def top_counts(tested, top):
    """How many inputs each neuron leads for, and how many inputs share each pattern."""
    every = [(number, neuron) for number, values in enumerate(tested[0]) for neuron in range(len(values))]
    patterns = [frozenset(leading(layers, top)) for layers in tested]
    counts = np.array([sum(one in pattern for pattern in patterns) for one in every])
    alike = sorted((patterns.count(pattern) for pattern in set(patterns)), reverse=True)
    return counts, alike


def greedy(bits, covered, ranks):
    """Plain greedy additional coverage: every gain counted anew at every step."""
    covered, left, order, brings = covered.copy(), list(range(len(bits))), [], []
    while left:
        gains = {place: int((bits[place] & ~covered).sum()) for place in left}
        best = min(left, key=lambda place: (-gains[place], ranks[place]))
        if gains[best] == 0:
            break
        order.append(best)
        brings.append(gains[best])
        covered |= bits[best]
        left.remove(best)
    rest = sorted(left, key=lambda place: (-int(bits[place].sum()), ranks[place]))
    return order + rest, brings + [0] * len(rest)


def apfd(order, wrong):
    """1 − Σ place of each error / (n·m) + 1/2n, places from 1."""
    places = [place + 1 for place, one in enumerate(order) if wrong[one]]
    return 1 - sum(places) / (len(wrong) * len(places)) + 1 / (2 * len(wrong))


def shapley(bits, generator, orders=4000):
    """What each input adds to the coverage, averaged over random orders."""
    total = np.zeros(len(bits))
    for _ in range(orders):
        covered = np.zeros(bits.shape[1], dtype=bool)
        for place in generator.permutation(len(bits)):
            total[place] += (bits[place] & ~covered).sum()
            covered |= bits[place]
    return total / orders


def cell_targets(numbers, each):
    """The targets (neuron, cell) of one input; cells 0 and each + 1 are none."""
    return {(neuron, int(number)) for neuron, number in enumerate(numbers) if 1 <= number <= each}


def shares(targets):
    """Σ over an input's targets of 1/(inputs that have it); a set of targets per input."""
    return [sum(1 / sum(target in others for others in targets) for target in own) for own in targets]
