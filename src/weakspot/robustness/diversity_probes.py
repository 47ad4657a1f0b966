"""Which inputs are predicted differently when they vary a little? Needs no label (Zhong et al. 2021, DeepRobust-B)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.tasks import Task
from weakspot.estimates import mean_of, share_of
from weakspot.looks import Neighbour, Rotate, Shift, Variation
from weakspot.robustness.finding_outputs import NEIGHBOUR_DIVERSITY
from weakspot.robustness.metrics import consistency, disagreement, distinct_predictions
from weakspot.robustness.predictions import prediction_codes


class NeighbourDiversity(Probe):
    """How much the predictions for an input and its small variations differ; needs no label.

    Simpson's diversity λ of the m + 1 predictions, their entropy and variation ratio, and the consistency with the
    prediction for the original (Zhong et al. 2021). Inputs are ranked by λ: those that differ most are most likely
    weak. Inputs that are predicted incorrectly in every look alike do not stand out: only labels show them.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has; 15 in the paper.
    seed: of the random variations; any neighbour can be made again from it and the input's id.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")
    outputs = NEIGHBOUR_DIVERSITY

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 15
    seed: int = 0

    records = Rows()

    def __post_init__(self) -> None:
        if self.looks < 1:
            raise ConfigError(f"expected looks ≥ 1, got {self.looks}")

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})

    def observe(self, seen: Observation) -> None:
        """Keep the predictions of the batch, look by look."""
        if seen.number == 0:
            self._codes: list[np.ndarray] = []
            self._original = seen.predicted_array
        self._codes.append(prediction_codes(seen))

    def close(self, ids: Sequence[str]) -> None:
        """Write what the predictions of the batch differ by."""
        predictions = np.stack(self._codes, 1)
        self.records.append(
            ids,
            **disagreement(predictions),
            consistency=consistency(predictions),
            distinct=distinct_predictions(predictions),
            prediction=self._original,
        )

    def finish(self) -> Finding:
        """One row per input, the one whose predictions differ most first."""
        rows = self.records.read()
        order = id_order(rows.ids)
        columns = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
        prediction = named_classes(columns.pop("prediction"), self.setting.classes, joined="+")
        distinct = columns.pop("distinct")
        table = {
            "id": np.array(rows.ids)[order],
            **columns,
            "distinct_predictions": distinct,
            "unanimous": distinct == 1,
        }
        ranked = np.lexsort((-columns["entropy"], columns["concentration"]))  # equal ones stay in the order of the ids
        return self.finding(
            summary={
                "unanimous_share": share_of(table["unanimous"]),
                **{name: mean_of(columns[name]) for name in ("consistency", "concentration", "entropy")},
                "looks": Estimate(self.looks + 1),
                "inputs": Estimate(len(distinct)),
            },
            table={name: column[ranked] for name, column in {**table, "prediction": prediction}.items()},
        )
