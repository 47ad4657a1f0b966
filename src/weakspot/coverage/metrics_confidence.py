"""How sure the model says it is: cheap scores per sample that any coverage criterion must be held against."""

import torch
from torch import Tensor

from weakspot.core.errors import DataError

_ROUNDING = 1e-2
"""How far the sum of probabilities may lie from 1: half precision is that coarse."""


def max_softmax(probabilities: Tensor) -> Tensor:
    """The highest probability, max_c p_c (Hendrycks and Gimpel 2017, `hendrycks2017`); (samples, classes) → (samples,).

    >>> max_softmax(torch.tensor([[0.75, 0.25]])).tolist()
    [0.75]
    """
    return _highest(_checked(probabilities))


def margin(probabilities: Tensor) -> Tensor:
    """The highest less the second highest probability (prediction confidence score, Zhang et al. 2020, `zhang2020`).

    >>> margin(torch.tensor([[0.75, 0.25]])).tolist()
    [0.5]
    """
    return _lead(_checked(probabilities))


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ_c p_c·ln p_c, in nats (Shannon 1948, `shannon1948`).

    >>> round(float(entropy(torch.tensor([[0.5, 0.5]]))), 4)
    0.6931
    """
    return _surprise(_checked(probabilities))


def deep_gini(probabilities: Tensor) -> Tensor:
    """1 − Σ_c p_c², the chance that two classes drawn from them differ (Feng et al. 2020, `feng2020`).

    >>> deep_gini(torch.tensor([[0.5, 0.5]])).tolist()
    [0.5]
    """
    return _difference(_checked(probabilities))


def _checked(probabilities: Tensor) -> Tensor:
    """In double precision, refused unless every row holds probabilities."""
    rows = probabilities.double()
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise DataError(f"expected probabilities (samples, classes ≥ 2), got shape {tuple(rows.shape)}")
    off = (rows.sum(1) - 1).abs()
    if not bool(((off <= _ROUNDING) & (rows.amin(1) >= 0)).all()):
        worst = int(off.nan_to_num(nan=torch.inf).argmax())
        raise DataError(
            f"expected probabilities that add up to 1, got a row with sum {float(rows[worst].sum()):g} and least value "
            f"{float(rows[worst].amin()):g}: are they logits? Then give the subject scores='logits'"
        )
    return rows


def _highest(rows: Tensor) -> Tensor:
    return rows.amax(1)


def _lead(rows: Tensor) -> Tensor:
    first, second = rows.topk(2, dim=1).values.unbind(1)
    return first - second


def _surprise(rows: Tensor) -> Tensor:
    each: Tensor = torch.special.entr(rows)
    return each.sum(1)


def _difference(rows: Tensor) -> Tensor:
    return 1 - rows.square().sum(1)


_SCORES = {"max_softmax": _highest, "margin": _lead, "entropy": _surprise, "deep_gini": _difference}
SURE = ("max_softmax", "margin")
"""Scores that are high where the model is sure."""
UNCERTAINTY = tuple(_SCORES)
"""The names of the scores."""


def confidence_scores(probabilities: Tensor, *, checked: bool = True) -> dict[str, Tensor]:
    """All scores; what a softmax gave need not be checked, as a GPU would have to wait for that."""
    rows = _checked(probabilities) if checked else probabilities.double()
    return {name: score(rows) for name, score in _SCORES.items()}
