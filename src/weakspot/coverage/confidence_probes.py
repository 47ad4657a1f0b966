"""How sure the model is of each sample."""

import numpy as np
from torch import Tensor

from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.metrics_confidence import SURE, UNCERTAINTY, confidence_scores
from weakspot.estimates import auroc_estimate


def observed_scores(seen: Observation) -> dict[str, Tensor]:
    """All scores of what was observed."""
    return confidence_scores(seen.probabilities, checked=seen.seen.setting.scores != "logits")


def observed_uncertainty(seen: Observation) -> dict[str, Tensor]:
    """The same turned so that a higher one means less sure: what to look at first."""
    return {name: 1 - score if name in SURE else score for name, score in observed_scores(seen).items()}


class Confidence(Probe):
    """How sure the model is of each sample: highest probability, margin, entropy and DeepGini (Feng et al. 2020).

    Cheap, and hard to beat at finding errors, which the summary measures where there are labels. The subject must say
    whether its outputs are logits or probabilities.
    """

    outputs = declared.CONFIDENCE
    by_group = ("auroc_*",)

    tasks = ("classification",)

    samples = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the scores, and, where there are labels, whether the prediction is correct."""
        self.samples.append(seen.ids, **seen.prediction_columns(), **observed_scores(seen))

    def finish(self) -> Finding:
        """A row per sample; with labels, how well each score separates correct from incorrect predictions."""
        rows = self.samples.read()
        order = id_order(rows.ids)
        columns = {name: np.asarray(rows[name]) for name in ("prediction", *UNCERTAINTY, "correct") if name in rows}
        summary = {
            f"mean_{name}": Estimate(float(columns[name][order].mean()), about=f"mean of {name} over the samples")
            for name in UNCERTAINTY
        }
        if "correct" in columns:
            summary |= _separation(columns, self.setting.groups_of(rows.ids))
        summary["inputs"] = Estimate(rows.count, about="samples examined")
        return self.finding(summary=summary, table={"id": rows.ids, **columns})


def _separation(columns: dict[str, np.ndarray], groups: np.ndarray | None) -> dict[str, Estimate]:
    """AUROC of each score, turned so that a higher one means less sure."""
    wrong = ~columns["correct"]
    count = int(wrong.sum())
    summary = {"errors": Estimate(count, about="samples predicted incorrectly")}
    if not 0 < count < wrong.size:
        return summary
    about = (
        "chance that an incorrect prediction is less confident than a correct one by this score (AUROC); ½ is chance"
    )
    for name in UNCERTAINTY:
        score = -columns[name] if name in SURE else columns[name]
        summary[f"auroc_{name}"] = auroc_estimate(score, wrong, about, groups=groups)
    return summary
