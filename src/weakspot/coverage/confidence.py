"""How sure the model says it is: cheap scores per sample that any coverage criterion must be held against."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.statistics import auroc, auroc_interval

_ROUNDING = 1e-2
"""How far the sum of probabilities may lie from 1: half precision is that coarse."""


def max_softmax(probabilities: Tensor) -> Tensor:
    """The highest probability, max_c p_c (Hendrycks and Gimpel 2017, `hendrycks2017`); (samples, classes) → (samples,).

    >>> max_softmax(torch.tensor([[0.75, 0.25]])).tolist()
    [0.75]
    """
    return _checked(probabilities).amax(1)


def margin(probabilities: Tensor) -> Tensor:
    """The highest less the second highest probability (prediction confidence score, Zhang et al. 2020, `zhang2020`).

    >>> margin(torch.tensor([[0.75, 0.25]])).tolist()
    [0.5]
    """
    first, second = _checked(probabilities).topk(2, dim=1).values.unbind(1)
    return first - second


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ_c p_c·ln p_c, in nats (Shannon 1948, `shannon1948`).

    >>> round(float(entropy(torch.tensor([[0.5, 0.5]]))), 4)
    0.6931
    """
    surprise: Tensor = torch.special.entr(_checked(probabilities))
    return surprise.sum(1)


def deep_gini(probabilities: Tensor) -> Tensor:
    """1 − Σ_c p_c², the chance that two draws from the answer differ (Feng et al. 2020, `feng2020`).

    >>> deep_gini(torch.tensor([[0.5, 0.5]])).tolist()
    [0.5]
    """
    return 1 - _checked(probabilities).square().sum(1)


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


UNCERTAINTY: dict[str, Callable[[Tensor], Tensor]] = {
    "max_softmax": lambda probabilities: 1 - max_softmax(probabilities),
    "margin": lambda probabilities: 1 - margin(probabilities),
    "entropy": entropy,
    "deep_gini": deep_gini,
}
"""The scores turned so that a higher one means less sure: what to look at first."""


class Confidence(Probe):
    """How sure the model is of each sample: highest probability, margin, entropy and DeepGini (Feng et al. 2020).

    Cheap, and hard to beat at finding errors, which the summary measures where there are labels. The subject must say
    whether its outputs are logits or probabilities.
    """

    tasks = ("classification",)

    samples = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the scores, and whether the answer is right if that is known."""
        scores = {score.__name__: score(seen.probabilities) for score in (max_softmax, margin, entropy, deep_gini)}
        known = {} if seen.batch.targets is None else {"right": seen.right}
        self.samples.append(seen.ids, predicted=seen.predicted, **scores, **known)

    def finish(self) -> Finding:
        """A row per sample; with labels, how well each score tells right from wrong."""
        rows = self.samples.read()
        order = np.argsort(np.asarray(rows.ids), kind="stable")  # sums must not depend on the order of the data
        columns = {name: np.asarray(rows[name]) for name in rows if name != "sample"}
        summary = {
            f"mean_{name}": Estimate(float(columns[name][order].mean()), about=f"of {name} over the samples")
            for name in ("max_softmax", "margin", "entropy", "deep_gini")
        }
        if "right" in columns:
            summary |= _separation(columns)
        summary["inputs"] = Estimate(rows.count, about="samples examined")
        return self.finding(summary=summary, table={"id": rows.ids, **columns})


def _separation(columns: dict[str, np.ndarray]) -> dict[str, Estimate]:
    """AUROC of each score, turned so that a higher one means less sure."""
    wrong = ~columns["right"]
    count = int(wrong.sum())
    told = {"errors": Estimate(count, about="samples answered wrongly")}
    if not 0 < count < wrong.size:
        return told
    about = "chance that a wrong answer is less sure than a right one by this score (AUROC); ½ says nothing"
    for name, sign in (("max_softmax", -1), ("margin", -1), ("entropy", 1), ("deep_gini", 1)):
        area = auroc(sign * columns[name], wrong)
        low, high = auroc_interval(area, count, wrong.size - count)
        told[f"auroc_{name}"] = Estimate(area, float(low), float(high), 0.95, about)
    return told
