"""What sets some inputs apart from others, in words: wrong members against correct inputs of the same classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact, mannwhitneyu

from weakspot.slices.conditions import Flags, Trait

LEVEL = 0.05
"""How probable it may be that any trait is named by chance."""
LEAST = 3
"""Fewer inputs on either side are not compared."""


@dataclass(frozen=True)
class TraitContrast:
    """One trait in which some inputs differ from others: in words, with its p-value for all traits together."""

    trait: str
    text: str
    p_value: float


def contrasts(traits: Sequence[Trait], ones: Flags, others: Flags) -> list[TraitContrast]:
    """The traits in which `ones` differ from `others`, the clearest first.

    Numbers are compared by the Mann–Whitney test (1947, `mann1947`), as they are and by their distance from the
    median of the others: what is turned to either side is far from it. Categories are compared by Fisher's exact test
    of the commonest one. All p-values are multiplied by the number of tests (Bonferroni).

    >>> light = Trait("light", np.array([0.1, 0.2, 0.15, 0.12, 0.18, 0.8, 0.9, 0.7, 0.75, 0.85]))
    >>> [trait] = contrasts([light], np.arange(10) < 5, np.arange(10) >= 5)
    >>> trait.text, round(trait.p_value, 3)
    ('light lower (median 0.15 against 0.8)', 0.016)
    """
    differing: list[TraitContrast] = []
    tests = sum(2 if trait.numeric else 1 for trait in traits)
    for trait in traits:
        column = trait.column
        present = ~np.isnan(column) if trait.numeric else column != ""
        first, second = column[ones & present], column[others & present]
        if min(len(first), len(second)) < LEAST:
            continue
        text, p_value = _numbers(trait, first, second) if trait.numeric else _categories(trait, first, second)
        differing.append(TraitContrast(trait.name, text, min(p_value * tests, 1.0)))
    return sorted((each for each in differing if each.p_value <= LEVEL), key=lambda each: each.p_value)


def _numbers(trait: Trait, first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[str, float]:
    """How numbers differ, by the clearer of the two comparisons; numbers that go round by their distance alone."""
    if trait.period is not None:
        angle = np.exp(2j * np.pi * second / trait.period).mean()
        middle = float(np.angle(angle) / (2 * np.pi) * trait.period % trait.period)
        far = [np.abs((each - middle + trait.period / 2) % trait.period - trait.period / 2) for each in (first, second)]
        return _far(trait, middle, far[0], far[1])
    p_value = float(mannwhitneyu(first, second).pvalue)
    middles = float(np.median(first)), float(np.median(second))
    middle = middles[1]
    text, distance_p = _far(trait, middle, np.abs(first - middle), np.abs(second - middle))
    if distance_p < p_value**2:  # clearly, since of two tiny p-values the smaller says nothing
        return text, distance_p
    lower = middles[0] < middles[1]
    word = (trait.low if lower else trait.high) or f"{trait.name} {'lower' if lower else 'higher'}"
    named = "" if word.startswith(trait.name) else f"{trait.name} "
    return f"{word} ({named}median {middles[0]:.2g} against {middles[1]:.2g})", p_value


def _far(trait: Trait, middle: float, first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[str, float]:
    p_value = float(mannwhitneyu(first, second).pvalue)
    word = "nearer to" if np.median(first) < np.median(second) else "further from"
    return f"{trait.name} {word} {middle:.2g} (by {np.median(first):.2g} against {np.median(second):.2g})", p_value


def _categories(trait: Trait, first: NDArray[np.str_], second: NDArray[np.str_]) -> tuple[str, float]:
    """The category that is commoner among the first by most."""
    names, numbers = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(names)) for part in np.split(numbers, [len(first)])]
    shares = [count / max(count.sum(), 1) for count in counts]
    most = int(np.argmax(shares[0] - shares[1]))
    table = [[int(count[most]), int(count.sum() - count[most])] for count in counts]
    p_value = float(fisher_exact(table, alternative="greater").pvalue) * len(names)
    return f"{trait.name} = {names[most]} in {shares[0][most]:.0%} against {shares[1][most]:.0%}", p_value
