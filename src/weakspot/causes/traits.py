"""What the images of a cluster share: parameters that vary less among them than in the whole test set.

After the first research question of HUDD (Fahmy et al. 2021), with a guard against chance.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.causes.parameters import Floats, Kind, Parameters

LEAST = 0.5
"""By how much the variance must fall for a parameter to be shared [fahmy2021]."""
CHANCE = 0.05
"""Which share of test sets without any structure may show a shared parameter in any cluster."""
_LARGEST = 50
"""More images than these are judged as so few: by chance, fewer vary less, so this errs on the safe side."""
_DRAWS = 1999
_MOST_NAMED = 3


def disagreement(values: np.ndarray, kind: Kind) -> Floats:
    """How much two different images disagree on average, (…, images) → (…); images without a value are left out.

        number: ½·(a − b)², whose mean is the variance · angle: 1 − cos(a − b) · category: whether they differ

    >>> disagreement(np.array([1.0, 2.0, 3.0]), "number").item(), disagreement(np.array([0, 0, 1]), "category").item()
    (1.0, 0.6666666666666666)
    """
    has_value = ~np.isnan(values)
    count = has_value.sum(-1).astype(np.float64)
    pairs = np.where(count > 1, count * (count - 1), np.nan)
    if kind == "category":
        return np.asarray((count**2 - _equal_pairs(values)) / pairs)
    if kind == "angle":
        turned = np.where(has_value, np.exp(1j * np.deg2rad(values)), 0)
        return np.asarray((count**2 - np.abs(turned.sum(-1)) ** 2) / pairs)
    mean = np.where(has_value, values, 0).sum(-1, keepdims=True) / np.maximum(count, 1)[..., None]
    return np.asarray(np.square(np.where(has_value, values - mean, 0)).sum(-1) * count / pairs)


def _equal_pairs(values: np.ndarray) -> Floats:
    """How many ordered pairs, each with itself too, are of one category; not a number is no category."""
    ordered = np.sort(values, axis=-1)
    new = np.concatenate([np.ones((*ordered.shape[:-1], 1), dtype=bool), ordered[..., 1:] != ordered[..., :-1]], -1)
    index = np.arange(ordered.shape[-1])
    since = np.maximum.accumulate(np.where(new, index, 0), axis=-1)  # where the run of equal ones begins
    return np.asarray(np.where(np.isnan(ordered), 0, 2 * (index - since) + 1).sum(-1, dtype=np.float64))


@dataclass(frozen=True)
class SharedTraits:
    """What each cluster's images share; all arrays are (clusters, parameters).

    reduction: 1 − disagreement within the cluster ÷ disagreement in the whole test set.
    typical: the cluster's mean; of a category, the number of the commonest.
    chance: how probable so large a reduction of any parameter of any cluster is for images drawn at random from the
        test set.
    shared: reduced by half and more, and hardly by chance.
    """

    parameters: Parameters
    reduction: Floats
    typical: Floats
    chance: Floats
    shared: np.ndarray

    @property
    def explained(self) -> np.ndarray:
        """Which clusters share anything, boolean."""
        return np.asarray(self.shared.any(1))

    @property
    def reduced(self) -> np.ndarray:
        """Which clusters have a parameter reduced by half and more, chance or not, as the paper counts."""
        return np.asarray((self.reduction >= LEAST).any(1))

    def arrays(self) -> dict[str, np.ndarray]:
        """As arrays of a Finding."""
        return {
            "trait_reduction": self.reduction,
            "trait_typical": self.typical,
            "trait_chance": self.chance,
            "trait_shared": self.shared,
        }


def shared_traits(parameters: Parameters, clusters: Sequence[np.ndarray], *, seed: int = 0) -> SharedTraits:
    """Which parameters the images of each cluster share.

    clusters: places of their images in the test set.

    The chance is that of the smallest p-value over all parameters (Westfall and Young 1993 [westfall1993]), times the
    number of clusters: so it holds for all comparisons together, however small a cluster is and however rare a value.
    """
    shape = len(clusters), len(parameters)
    reduction, typical, chance = np.full(shape, np.nan), np.full(shape, np.nan), np.ones(shape)
    whole = _dispersions(parameters, parameters.values)
    drawn: dict[int, Floats] = {}
    for number, members in enumerate(clusters):
        values = parameters.values[members]
        reduction[number] = _reduction(_dispersions(parameters, values), whole)
        typical[number] = [typical_value(column, kind) for column, kind in zip(values.T, parameters.kinds, strict=True)]
        size = min(len(members), _LARGEST)
        if size not in drawn and len(parameters):
            drawn[size] = chance_reductions(parameters, size, draws=max(_DRAWS, 40 * len(clusters)), seed=seed)
        if len(parameters):
            chance[number] = np.minimum(adjusted_chance(reduction[number], drawn[size]) * len(clusters), 1.0)
    return SharedTraits(parameters, reduction, typical, chance, (reduction >= LEAST) & (chance <= CHANCE))


def _dispersions(parameters: Parameters, values: Floats) -> Floats:
    """The disagreement of each parameter; values: (…, images, parameters)."""
    return np.array([disagreement(values[..., n], kind) for n, kind in enumerate(parameters.kinds)])


def _reduction(within: Floats, whole: Floats) -> Floats:
    return np.asarray(1 - np.divide(within, whole, out=np.full(np.shape(within), np.nan), where=whole > 0))


def chance_reductions(parameters: Parameters, size: int, *, draws: int, seed: int) -> Floats:
    """The reductions of so many images drawn at random from the test set, (draws, parameters)."""
    images = len(parameters.values)
    places = np.random.default_rng([seed, size]).integers(images, size=(draws, size))
    whole = _dispersions(parameters, parameters.values)
    reductions = [
        _reduction(disagreement(parameters.values[:, n][places], kind), np.full(draws, whole[n]))
        for n, kind in enumerate(parameters.kinds)
    ]
    return np.stack(reductions, axis=1)


def adjusted_chance(reductions: Floats, drawn: Floats) -> Floats:
    """How probable it is that any parameter is reduced as improbably as this one, for each parameter.

    reductions: shape (parameters,).
    drawn: the same of random images, (draws, parameters).
    """
    reductions, drawn = (np.where(np.isnan(values), -np.inf, values) for values in (reductions, drawn))
    draws = len(drawn)
    ordered = np.sort(drawn, axis=0)
    probability = np.empty(len(reductions))
    least = np.ones(draws)
    for n in range(len(reductions)):
        probability[n] = (1 + draws - np.searchsorted(ordered[:, n], reductions[n])) / (draws + 1)
        least = np.minimum(least, (draws - np.searchsorted(ordered[:, n], drawn[:, n])) / draws)
    return np.asarray((1 + np.searchsorted(np.sort(least), probability, side="right")) / (draws + 1))


def typical_value(values: np.ndarray, kind: Kind) -> float:
    """The mean; of angles their mean direction in degrees from 0 to 360; of categories the commonest.

    >>> round(typical_value(np.array([350.0, 20.0]), "angle"), 6)
    5.0
    """
    measured = values[~np.isnan(values)]
    if not len(measured):
        return float("nan")
    if kind == "angle":
        return float(np.rad2deg(np.angle(np.exp(1j * np.deg2rad(measured)).mean())) % 360)
    if kind == "category":
        return float(np.bincount(measured.astype(np.int64)).argmax())
    return float(measured.mean())


def traits_text(
    traits: SharedTraits, cluster: int, members: np.ndarray, common: Mapping[int, str] | None = None
) -> str:
    """What the images of a cluster share, in words, the most reduced parameters first.

    common: what most of them have and few others, in words, by the number of the parameter; named after those.
    """
    order = np.argsort(-traits.reduction[cluster], kind="stable")
    shared = [number for number in order.tolist() if traits.shared[cluster, number]]
    texts = [_trait_text(traits.parameters, number, members) for number in shared]
    texts += [text for number, text in (common or {}).items() if number not in shared]
    return "; ".join(texts[:_MOST_NAMED])


def _trait_text(parameters: Parameters, number: int, members: np.ndarray) -> str:
    name, kind, everywhere = parameters.names[number], parameters.kinds[number], parameters.values[:, number]
    inside = everywhere[members]
    typical = typical_value(inside, kind)
    if kind == "angle":
        return f"{name} near {typical:.0f}°"
    if kind == "category":
        shares = [float(np.mean(values == typical)) for values in (inside, everywhere)]
        return f"{name} {parameters.categories[number][int(typical)]!r} in {shares[0]:.0%} instead of {shares[1]:.0%}"
    mean, spread = np.nanmean(everywhere), np.nanstd(everywhere)
    if abs(typical - mean) >= spread / 2:
        return f"{name} {typical:.2g} instead of {mean:.2g} on average"
    return f"{name} near {typical:.2g} (± {np.nanstd(inside):.2g} instead of ± {spread:.2g})"


def border_text(kinds: Sequence[str]) -> str:
    """The two classes between which most of the errors lie, in either direction; nothing where there are no such.

    >>> border_text(["left → right", "right → left", "top → left"])
    'between left and right'
    """
    pairs = Counter(tuple(sorted(kind.split(" → "))) for kind in kinds if kind.count(" → ") == 1)
    if not pairs:
        return ""
    pair, count = min(pairs.items(), key=lambda entry: (-entry[1], entry[0]))
    return f"between {pair[0]} and {pair[1]}" if 2 * count > len(kinds) else ""
