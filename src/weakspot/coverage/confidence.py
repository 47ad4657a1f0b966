"""How sure the model says it is: cheap scores per sample that any coverage criterion must be held against."""

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.coverage import outputs as declared
from weakspot.estimates import interval_estimate
from weakspot.statistics import auroc, auroc_interval

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
    """1 − Σ_c p_c², the chance that two draws from the answer differ (Feng et al. 2020, `feng2020`).

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
_SURE = ("max_softmax", "margin")
"""Scores that are high where the model is sure."""
UNCERTAINTY = tuple(_SCORES)
"""The names of the scores."""


def observed_scores(seen: Observation) -> dict[str, Tensor]:
    """All scores of what was observed; what a softmax gave is not checked, as a GPU would have to wait for that."""
    rows = seen.probabilities.double() if seen.seen.setting.scores == "logits" else _checked(seen.probabilities)
    return {name: score(rows) for name, score in _SCORES.items()}


def observed_uncertainty(seen: Observation) -> dict[str, Tensor]:
    """The same turned so that a higher one means less sure: what to look at first."""
    return {name: 1 - score if name in _SURE else score for name, score in observed_scores(seen).items()}


class Confidence(Probe):
    """How sure the model is of each sample: highest probability, margin, entropy and DeepGini (Feng et al. 2020).

    Cheap, and hard to beat at finding errors, which the summary measures where there are labels. The subject must say
    whether its outputs are logits or probabilities.
    """

    outputs = declared.CONFIDENCE

    tasks = ("classification",)

    samples = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the scores, and whether the answer is right if that is known."""
        self.samples.append(seen.ids, **seen.prediction_columns(), **observed_scores(seen))

    def finish(self) -> Finding:
        """A row per sample; with labels, how well each score tells right from wrong."""
        rows = self.samples.read()
        order = id_order(rows.ids)
        columns = {name: np.asarray(rows[name]) for name in ("prediction", *UNCERTAINTY, "correct") if name in rows}
        summary = {
            f"mean_{name}": Estimate(float(columns[name][order].mean()), about=f"mean of {name} over the samples")
            for name in UNCERTAINTY
        }
        if "correct" in columns:
            summary |= _separation(columns)
        summary["inputs"] = Estimate(rows.count, about="samples examined")
        return self.finding(summary=summary, table={"id": rows.ids, **columns})


def _separation(columns: dict[str, np.ndarray]) -> dict[str, Estimate]:
    """AUROC of each score, turned so that a higher one means less sure."""
    wrong = ~columns["correct"]
    count = int(wrong.sum())
    told = {"errors": Estimate(count, about="samples answered wrongly")}
    if not 0 < count < wrong.size:
        return told
    about = "chance that a wrong answer is less sure than a right one by this score (AUROC); ½ says nothing"
    for name in UNCERTAINTY:
        area = auroc(-columns[name] if name in _SURE else columns[name], wrong)
        told[f"auroc_{name}"] = interval_estimate(area, auroc_interval(area, count, wrong.size - count), about)
    return told
