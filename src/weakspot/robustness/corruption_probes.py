"""Which common corruption breaks the model, and which class? (Hendrycks and Dietterich 2019)"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.tasks import Task
from weakspot.estimates import interval_estimate, share_of
from weakspot.looks import Corruption, Neighbour
from weakspot.looks.corruption_severities import FAMILIES, KINDS, SEVERITIES, Sizes
from weakspot.looks.corruptions import check_kinds, check_severities
from weakspot.robustness.analysis import mean_estimate
from weakspot.robustness.corruption_metrics import (
    check_baseline,
    class_errors,
    error_rise,
    mean_corruption_error,
    relative_error,
    share_estimates,
    share_interval,
)
from weakspot.robustness.corruption_outputs import COMMON_CORRUPTIONS
from weakspot.robustness.predictions import named_columns


class CommonCorruptions(Probe):
    """Errors under common corruptions, by kind, severity and class.

    Mean corruption error after Hendrycks and Dietterich 2019; without a baseline, errors are not divided by anything.

    kinds: which corruptions, by default all fifteen.
    severities: which severities, from 1, mild, to 5.
    sizes: whose severities: "large" of ImageNet-C, "small" of CIFAR-10-C, "auto" by the size of the images.
    baseline: errors of the net to compare with, as shares: of each corruption the mean over severities, and `clean`.
    seed: of what chance decides; with the input's id it says how each image is corrupted.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")
    outputs = COMMON_CORRUPTIONS

    kinds: tuple[str, ...] = KINDS
    severities: tuple[int, ...] = SEVERITIES
    sizes: Sizes = "auto"
    baseline: Mapping[str, float] | None = None
    seed: int = 0

    records = Rows()

    def __post_init__(self) -> None:
        check_kinds(self.kinds)
        check_severities(self.severities)
        for name, chosen in (("kinds", self.kinds), ("severities", self.severities)):
            if not chosen or len(set(chosen)) < len(chosen):
                raise ConfigError(f"{name} is {list(chosen)}: expected one or more, each once")
        if self.baseline is not None:
            check_baseline(self.baseline, self.kinds)

    @cached_property
    def _places(self) -> dict[Look, tuple[int, int]]:
        """Where the result of each look belongs: its kind and its severity."""
        return {
            Neighbour(Corruption(severity, kind, self.sizes), self.seed): (row, column)
            for row, kind in enumerate(self.kinds)
            for column, severity in enumerate(self.severities)
        }

    @property
    def needs(self) -> Needs:
        """The original, and one look for each kind and severity."""
        return Needs(looks={Original(): 1, **dict.fromkeys(self._places, 1)})

    def observe(self, seen: Observation) -> None:
        """Keep which predictions are incorrect."""
        if seen.number == 0:
            self._wrong = np.zeros((len(seen.ids), len(self.kinds), len(self.severities)), dtype=bool)
            self._original = {
                "wrong_plain": ~seen.correct_array,
                "target": seen.targets.cpu().numpy(),
                "prediction": seen.predicted_array,
            }
        else:
            row, column = self._places[seen.look]
            self._wrong[:, row, column] = ~seen.correct_array

    def close(self, ids: Any) -> None:
        """Write the batch."""
        self.records.append(ids, wrong=self._wrong.reshape(len(ids), -1), **self._original)

    def finish(self) -> Finding:
        """Errors by kind, severity and class; every input, the most often broken first."""
        rows = self.records.read()
        by_id = id_order(rows.ids)
        wrong = np.asarray(rows["wrong"])[by_id].reshape(-1, len(self.kinds), len(self.severities))
        plain, target, prediction = (np.asarray(rows[name])[by_id] for name in ("wrong_plain", "target", "prediction"))
        per_kind, per_input = wrong.mean(2), wrong.mean((1, 2))
        by_class, broken = self._by_class(wrong, plain, target)
        table = {
            "id": np.array(rows.ids)[by_id],
            "corruption_error": per_input,
            **{f"error_{kind}": per_kind[:, row] for row, kind in enumerate(self.kinds)},
            "correct": ~plain,
            **named_columns(target, prediction, self.setting),
        }
        order = np.argsort(-per_input, kind="stable")
        return self.finding(
            summary={**self._summary(wrong, plain), **broken, **self._counts(len(plain))},
            table={name: column[order] for name, column in table.items()},
            arrays={**self._arrays(wrong), **by_class},
        )

    def _counts(self, inputs: int) -> dict[str, Estimate]:
        return {
            "kinds": Estimate(len(self.kinds)),
            "severities": Estimate(len(self.severities)),
            "inputs": Estimate(inputs),
        }

    def _summary(self, wrong: np.ndarray, plain: np.ndarray) -> dict[str, Estimate]:
        errors = share_estimates(self.kinds, wrong.mean(2))
        worst = int(np.argmax(wrong.mean((0, 2))))
        divided = {}
        if self.baseline is not None:
            divided = {
                "mean_corruption_error": mean_corruption_error(wrong, self.kinds, self.baseline),
                "relative_mean_corruption_error": relative_error(wrong, plain, self.kinds, self.baseline),
            }
        return {
            "corruption_error": mean_estimate(wrong.mean((1, 2))),
            "clean_error": share_of(plain),
            "error_rise": error_rise(wrong, plain),
            **divided,
            "worst_corruption": Estimate(self.kinds[worst].replace("_", " ")),
            "worst_corruption_error": _of_the_worst(wrong.mean(2), worst),
            **{f"error_{kind}": errors[kind] for kind in self.kinds},
        }

    def _arrays(self, wrong: np.ndarray) -> dict[str, np.ndarray]:
        error, low, high = share_interval(wrong)
        return {
            "severity": np.array(self.severities),
            "severity_name": np.array([f"severity {severity}" for severity in self.severities]),
            "kind": np.array([kind.replace("_", " ") for kind in self.kinds]),
            "error": error,
            "error_low": low,
            "error_high": high,
            **{f"{family}_{kind}": error[row] for row, (kind, family) in enumerate(self._families())},
        }

    def _families(self) -> list[tuple[str, str]]:
        """The kinds, each with its family."""
        family_of = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
        return [(kind, family_of[kind]) for kind in self.kinds]

    def _by_class(
        self, wrong: np.ndarray, plain: np.ndarray, target: np.ndarray
    ) -> tuple[dict[str, np.ndarray], dict[str, Estimate]]:
        """The errors of each class as arrays, and the pair of class and corruption whose error rises most."""
        if self.setting.task != "classification":
            return {}, {}
        classes, inputs, errors = class_errors(wrong, target)
        rises = errors - class_errors(plain[:, None, None], target)[2]
        names = named_columns(classes, classes, self.setting)["target"]
        row, column = np.unravel_index(np.argmax(rises), rises.shape)
        of_class = wrong[target == classes[row], column].mean(1)
        mean, low, high = share_interval(of_class, looks=rises.size)
        broken = {
            "broken_class": Estimate(str(names[row])),
            "broken_by": Estimate(self.kinds[column].replace("_", " ")),
            "broken_class_error": interval_estimate(float(mean), (low, high)),  # type: ignore[arg-type]
        }
        return {
            "class": np.asarray(names).astype(str),
            "class_inputs": inputs,
            "class_error": errors,
            "class_rise": rises,
        }, broken


def _of_the_worst(per_kind: np.ndarray, worst: int) -> Estimate:
    """The error of the kind that was chosen for it, with an interval that allows for the choice."""
    mean, low, high = share_interval(per_kind[:, worst], looks=per_kind.shape[1])
    return interval_estimate(float(mean), (low, high))  # type: ignore[arg-type]
