"""Error-inducing images: which samples a model answers wrongly, for every task (Fahmy et al. 2021)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weakspot.causes.parameters import metadata_columns, metadata_rows
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation, Setting
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.tasks import Task, output_errors
from weakspot.statistics import wilson_interval

NUMERIC: tuple[Task, ...] = ("regression", "keypoints")


def error_threshold(errors: np.ndarray, *, threshold: float | None, quantile: float) -> float:
    """Above which error an answer counts as wrong: the given one, or the quantile of all errors.

    >>> error_threshold(np.arange(11.0), threshold=None, quantile=0.9)
    9.0
    """
    return float(np.quantile(errors, quantile)) if threshold is None else float(threshold)


class Errors(Probe):
    """Error-inducing images: what the model answers wrongly, and how (Fahmy et al. 2021).

    A wrong class; any wrong label of several; a number or keypoint whose error exceeds a threshold, the worst of a
    sample's numbers or keypoints counting. The table holds every sample's answer and its metadata, under `metadata.`
    and the column's name; numbers and keypoints are in the arrays `answer` and `target`.

    threshold: above which error a number or keypoint is wrong; by default the quantile.
    quantile: of all errors in these data, above which a number or keypoint is wrong: at 0.9 the worst tenth.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")

    threshold: float | None = None
    quantile: float = 0.9

    answers = Rows()

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ConfigError(f"quantile is {self.quantile}: expected a number between 0 and 1, such as 0.9")

    def observe(self, seen: Observation) -> None:
        """Keep each answer with the truth, or with the error of its worst number, and what else is known."""
        known = metadata_rows(seen.metadata)
        if self.setting.task in NUMERIC:
            errors = output_errors(seen.outputs, seen.targets, self.setting.task)
            worst = errors.max(1)
            both = {"predicted": seen.outputs, "target": seen.targets}
            numbers = {name: values.reshape(len(values), -1).float() for name, values in both.items()}
            self.answers.append(seen.ids, error=worst.values, worst=worst.indices, **numbers, **known)
        else:
            wrong = ~seen.right
            self.answers.append(seen.ids, wrong=wrong, predicted=seen.predicted, target=seen.targets.long(), **known)

    def finish(self) -> Finding:
        """Every sample: whether it is wrong, by how much, and what was taken for what."""
        rows = self.answers.read()
        numeric = self.setting.task in NUMERIC
        limit = {}
        arrays: dict[str, np.ndarray] = {}
        if numeric:
            above = error_threshold(rows["error"], threshold=self.threshold, quantile=self.quantile)
            rule = f": the {self.quantile:g} quantile of these errors" if self.threshold is None else ""
            limit = {"threshold": Estimate(above, about=f"error above which an answer counts as wrong{rule}")}
            wrong, columns = rows["error"] > above, {"error": rows["error"]}
            arrays = {"answer": rows["predicted"], "target": rows["target"]}
        else:
            wrong = np.asarray(rows["wrong"])
            columns = {name: np.array(values) for name, values in _answers(rows, self.setting).items()}
        kinds = np.where(wrong, error_kinds(rows, self.setting), "")
        return self.finding(
            summary={
                "errors": Estimate(int(wrong.sum()), about="error-inducing images"),
                "error_share": self._share(wrong),
                **limit,
                "inputs": Estimate(len(wrong), about="samples examined"),
            },
            table={"id": rows.ids, "wrong": wrong, "kind": kinds, **columns, **metadata_columns(rows)},
            arrays=arrays,
        )

    def _share(self, wrong: np.ndarray) -> Estimate:
        """How many are wrong; without an interval where the rule itself says how many."""
        about = "share of the images that the model answers wrongly"
        if self.setting.task in NUMERIC:
            about = "share of the images whose error exceeds the threshold"
            if self.threshold is None:
                return Estimate(float(wrong.mean()), about=f"{about}: by its rule, not measured; give a threshold")
        low, high = wilson_interval(int(wrong.sum()), len(wrong))
        return Estimate(float(wrong.mean()), float(low), float(high), 0.95, about)


def _answers(rows: RowTable, setting: Setting) -> dict[str, list[str]]:
    """The names of what is true and of what was answered."""
    named = {"target": "target", "answer": "predicted"}
    return {name: _named(rows[column], setting.classes) for name, column in named.items()}


def error_kinds(rows: RowTable, setting: Setting) -> np.ndarray:
    """What was taken for what, per sample: "3 → 5", "cat + dog → cat", "output 2", "keypoint 7"."""
    if setting.task in NUMERIC:
        word = "keypoint" if setting.task == "keypoints" else "output"
        return np.array([f"{word} {number}" for number in rows["worst"]], dtype=np.str_)
    both = _answers(rows, setting)
    return np.array([f"{a} → {b}" for a, b in zip(both["target"], both["answer"], strict=True)], dtype=np.str_)


def _named(values: np.ndarray, classes: Sequence[str] | None) -> list[str]:
    """Names of class numbers (samples,) or of label sets (samples, labels)."""
    if values.ndim == 1:
        return [str(number) if classes is None else classes[number] for number in values.tolist()]
    names = list(classes or map(str, range(values.shape[1])))
    sets = [[name for name, there in zip(names, row, strict=True) if there] for row in values.tolist()]
    return [" + ".join(present) or "nothing" for present in sets]


def kinds_told(kinds: Sequence[str], *, most: int = 3) -> str:
    """The kinds of error with their counts, the most frequent first.

    >>> kinds_told(["3 → 5", "8 → 5", "3 → 5"])
    '3 → 5 (2), 8 → 5 (1)'
    """
    ranked = sorted(Counter(kinds).items(), key=lambda entry: (-entry[1], entry[0]))
    told = [f"{kind} ({count})" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*told, *([f"others ({rest})"] if rest else [])])
