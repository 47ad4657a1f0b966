"""Slow, plain versions of the coverage criteria, straight from their definitions: loops, no batches, no frame."""

import itertools

import numpy as np
import torch


def layer_outputs(model, layers, image):
    """The output of each named module for one image, by hooks of our own."""
    taken, handles = {}, []
    for name in layers:
        module = model.get_submodule(name)
        handles.append(
            module.register_forward_hook(lambda m, a, out, name=name: taken.update({name: out[0].double().numpy()}))
        )
    with torch.no_grad():
        model(image[None])
    for handle in handles:
        handle.remove()
    return [taken[name] for name in layers]


def channel_value(values):
    """A neuron is a channel; its value is the mean over positions."""
    return [channel.mean() for channel in values]


def neuron_counts(model, layers, images, threshold):
    """How many images activate each neuron, activations scaled to [0, 1] per image and layer before averaging."""
    counts = None
    for image in images:
        active = []
        for values in layer_outputs(model, layers, image):
            low, high = values.min(), values.max()
            scaled = (values - low) / (high - low) if high > low else np.zeros_like(values)
            active += [value > threshold for value in channel_value(scaled)]
        counts = np.array(active, dtype=int) + (0 if counts is None else counts)
    return counts


def section_counts(model, layers, train, test, sections):
    """How many test images fall into each of k equal sections of each neuron's training range."""

    def values_of(image):
        return [value for values in layer_outputs(model, layers, image) for value in channel_value(values)]

    trained = np.array([values_of(image) for image in train])
    low, high = trained.min(0), trained.max(0)
    counts = np.zeros((len(low), sections), dtype=int)
    for image in test:
        for neuron, value in enumerate(values_of(image)):
            for section in range(sections):
                begin = low[neuron] + section * (high[neuron] - low[neuron]) / sections
                end = low[neuron] + (section + 1) * (high[neuron] - low[neuron]) / sections
                inside = begin <= value < end or (section == sections - 1 and value == high[neuron])
                if low[neuron] == high[neuron]:
                    inside = value == low[neuron] and section == 0
                counts[neuron, section] += inside
    return counts


def saturation(covers, size):
    """Mean coverage over every subset of `size` inputs; covers is (inputs, targets), boolean."""
    subsets = itertools.combinations(range(len(covers)), size)
    return np.mean([np.any(covers[list(subset)], axis=0).mean() for subset in subsets])


def importance(model, layer, images):
    """Summed activation × gradient of the winning output at the input of `layer`, one image at a time."""
    total = 0
    for image in images:
        kept = {}
        module = model.get_submodule(layer)

        def keep(module, args, kept=kept):
            kept["value"] = args[0].detach().requires_grad_()
            return (kept["value"],)

        handle = module.register_forward_pre_hook(keep)
        model(image[None]).max().backward(inputs=[kept["value"]])
        handle.remove()
        total = total + (kept["value"].grad * kept["value"].detach())[0].double().numpy()
    return total


def last_layer_relevance(model, layer, images, *, redistributed):
    """LRP-0 of the winning logit at the input of the last linear layer, one image at a time.

    A neuron's share is its contribution a·w; the bias is left out, or shared out in proportion to |a·w|.
    """
    linear, total = model.get_submodule(layer), 0
    weight, bias = linear.weight.detach().double().numpy(), linear.bias.detach().double().numpy()
    for image in images:
        kept = {}
        handle = linear.register_forward_pre_hook(lambda m, args, kept=kept: kept.update(value=args[0]))
        with torch.no_grad():
            winner = int(model(image[None]).argmax())
        handle.remove()
        share = kept["value"][0].double().numpy() * weight[winner]
        if redistributed:
            share = share + bias[winner] * np.abs(share) / np.abs(share).sum()
        total = total + share
    return total
