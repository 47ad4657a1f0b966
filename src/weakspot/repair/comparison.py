"""Before and after: two models' predictions for the same inputs, compared input by input."""

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.groups import common_groups
from weakspot.repair.effects import mcnemar
from weakspot.repair.outputs import COMPARED
from weakspot.statistics.clustered import grouped_paired_interval
from weakspot.statistics.paired import paired_difference_interval


def compared(before: Finding, after: Finding, *, confidence: float = 0.95) -> Finding:
    """What changed between two Findings of `Predictions` over the same inputs.

    The difference of the accuracies comes with its paired interval; where that holds 0, no difference is shown. The
    p-value is McNemar's, exact (McNemar 1947): the chance of so uneven a split if gains and losses were equally likely.
    Where inputs belong together, the interval goes by group, and there is no p-value.
    """
    old, new = _by_id(before), _by_id(after)
    if old["id"].tolist() != new["id"].tolist():
        raise DataError("the two Findings are not of the same inputs: examine both models on the same data")
    gained, lost = ~old["correct"] & new["correct"], old["correct"] & ~new["correct"]
    groups = common_groups(old["id"].tolist(), after, before)
    changed = np.flatnonzero(old["prediction"] != new["prediction"])
    return Finding(
        name="repair.compared",
        about="What changed between two models, input by input.",
        summary=_summary(old["correct"], new["correct"], groups, confidence),
        table=table_of(
            {
                "id": old["id"][changed],
                "change": np.select([gained[changed], lost[changed]], ["fixed", "broken"], "incorrect as before"),
                "target": old["target"][changed],
                "before": old["prediction"][changed],
                "after": new["prediction"][changed],
            }
        ),
        outputs=COMPARED,
        provenance={"before": before.digest, "after": after.digest, "confidence": confidence},
    )


def _summary(
    before: np.ndarray, after: np.ndarray, groups: np.ndarray | None, confidence: float
) -> dict[str, Estimate]:
    gained, lost = ~before & after, before & ~after
    if groups is None:
        ends = paired_difference_interval(before, after, confidence=confidence)
        chance = Estimate(
            mcnemar(int(gained.sum()), int(lost.sum())), about="exact McNemar test of fixed against broken"
        )
    else:
        ends = grouped_paired_interval(before, after, groups, confidence=confidence)
        chance = Estimate(None, about="none: McNemar's test takes inputs that belong together for independent")
    low, high = map(float, ends)
    verdict = "no difference shown" if low <= 0 <= high else "better" if low > 0 else "worse"
    return {
        "verdict": Estimate(verdict, about="by the interval of the difference"),
        "difference": Estimate(
            float(after.mean() - before.mean()), low, high, confidence, "accuracy after less accuracy before, paired"
        ),
        "accuracy_before": Estimate(float(before.mean()), about="share of the inputs predicted correctly before"),
        "accuracy_after": Estimate(float(after.mean()), about="share of the inputs predicted correctly after"),
        "fixed": Estimate(int(gained.sum()), about="inputs predicted incorrectly before and correctly after"),
        "broken": Estimate(int(lost.sum()), about="inputs predicted correctly before and incorrectly after"),
        "p_value": chance,
        "inputs": Estimate(len(before), about="samples examined"),
    }


def _by_id(predictions: Finding) -> dict[str, np.ndarray]:
    if predictions.table is None or not {"id", "correct", "target", "prediction"} <= set(
        predictions.table.column_names
    ):
        raise DataError(f"{predictions.name} is not a Finding of Predictions: examine both models with that probe")
    table = predictions.table.sort_by("id")
    return {name: np.asarray(table[name].to_numpy()) for name in ("id", "correct", "target", "prediction")}
