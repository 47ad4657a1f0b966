"""From a plan and labels to the accuracy on all inputs, with its interval. Free of torch."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.classes.label_outputs import ESTIMATED_ACCURACY
from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.files import write_text
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.groups import sample_groups
from weakspot.data.names import shown
from weakspot.data.tables import table_from
from weakspot.estimates import interval_estimate
from weakspot.formatting import csv_cell
from weakspot.statistics import wilson_interval
from weakspot.statistics.intervals import normal_quantile
from weakspot.statistics.stratified import stratified_share

PLAN, ESTIMATE = "classes.label_plan", "classes.estimated_accuracy"
_INDEPENDENT = "independent inputs, and labels given in the order of the plan or to all of it"
_TOGETHER = "without an interval, as inputs belong together, and the one that there is takes them for independent"
_LEAST = 2
"""Labels that each stratum needs."""


def estimated_accuracy(plan: Finding, labels: Mapping[str, str], *, confidence: float = 0.95) -> Finding:
    """The accuracy on all inputs of a plan, by the labels that there are; labels by the inputs' ids.

    Unbiased where all inputs of the plan are labelled, or those that come first in it.
    """
    _table(plan)  # refuses what is no plan
    population = plan.arrays["stratum_inputs"]
    counted, correct = _by_stratum(plan, labels, len(population))
    wanted = plan.arrays["stratum_labels"]
    short = np.flatnonzero(counted < np.minimum(_LEAST, population))
    if len(short):
        raise DataError(
            f"{counted.sum()} of {wanted.sum()} inputs have a label, and stratum {short[0]} has {counted[short[0]]}: "
            f"label on, in the order of the plan, until every stratum has {_LEAST}"
        )
    value, ends = stratified_share(population, counted, correct, confidence=confidence)
    low, high = wilson_interval(correct, counted, confidence=confidence)
    alike = _random_labels(float(value), float(ends.high - ends.low), int(population.sum()), confidence)
    numbers = {
        "accuracy": Estimate(float(value), about=_TOGETHER)
        if sample_groups(plan)
        else interval_estimate(float(value), ends, confidence=confidence),
        "labels": Estimate(int(counted.sum())),
        "missing": Estimate(int((wanted - counted).sum())),
        "random_labels": Estimate(alike),
        "average_confidence": Estimate(plan.summary["average_confidence"].value),
        "inputs": Estimate(int(population.sum())),
        "assumes": Estimate(_INDEPENDENT),
    }
    columns = {"stratum": np.arange(len(population)), "inputs": population, "labels": counted}
    return Finding(
        name=ESTIMATE,
        about="Accuracy on inputs of which few are labelled (Neyman 1934; DeepEST, Guerriero et al. 2021).",
        summary=ESTIMATED_ACCURACY.described(numbers),
        table=table_of({**columns, "accuracy": correct / counted, "low": low, "high": high}),
        outputs=ESTIMATED_ACCURACY,
        provenance={"plan": plan.digest, **{key: plan.provenance.get(key) for key in ("data", "subject")}},
    )


def _by_stratum(plan: Finding, labels: Mapping[str, str], strata: int) -> tuple[np.ndarray, np.ndarray]:
    """How many labels each stratum has, and of how many the model's prediction is the same."""
    table, classes = _table(plan), [str(name) for name in plan.arrays["classes"].tolist()]
    rows = zip(*(table[name].to_pylist() for name in ("id", "prediction", "stratum")), strict=True)
    told = [(stratum, _class(labels[name], name, classes) == said) for name, said, stratum in rows if name in labels]
    own, right = (np.array([row[part] for row in told], dtype=np.int64) for part in (0, 1))
    return np.bincount(own, minlength=strata), np.bincount(own, right, strata).astype(np.int64)


def _random_labels(value: float, width: float, population: int, confidence: float) -> int:
    """Labels of a simple random sample whose interval would be as wide, by the normal approximation."""
    spread = (normal_quantile(confidence) / max(width / 2, 1e-9)) ** 2 * max(value * (1 - value), 1e-9)
    return int(min(np.ceil(spread / (1 + spread / population)), population))


def _class(label: str, name: str, classes: Sequence[str]) -> str:
    text = label.strip()
    if text in classes:
        return text
    if text.isdecimal() and int(text) < len(classes):
        return classes[int(text)]
    few = ", ".join(classes[:5]) + (" …" if len(classes) > 5 else "")
    raise DataError(f"the label {shown(text)!r} of {shown(name)!r} is not a class: there are {few}")


def plan_csv(plan: Finding, labels: Mapping[str, str]) -> str:
    """The inputs to label as `id, label`, in the order of the plan; no prediction, which would lead the eye."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "label"))
    writer.writerows((csv_cell(name), csv_cell(labels.get(name, ""))) for name in _table(plan)["id"].to_pylist())
    return "\ufeff" + text.getvalue()


def export_plan(plan: Finding, path: str | Path, labels: Mapping[str, str]) -> None:
    """Write `plan_csv`; an existing file is not replaced."""
    if Path(path).exists():
        raise ConfigError(f"{path} exists already, and may hold labels: choose another name, or remove it")
    write_text(Path(path), plan_csv(plan, labels))


def read_plan_labels(plan: Finding, path: str | Path) -> dict[str, str]:
    """Labels by id, from a CSV file with the columns `id` and `label`; empty ones are left out, wrong ones refused."""
    rows = table_from(Path(path))
    ids, labels = rows.column("id", "id"), rows.column("label", "label")
    classes, planned = [str(name) for name in plan.arrays["classes"].tolist()], set(_table(plan)["id"].to_pylist())
    found: dict[str, str] = {}
    for number, (name, label) in enumerate(zip(ids, labels, strict=True), 2):
        own, text = str(name).removeprefix("'"), "" if label is None else str(label).strip().removeprefix("'")
        if own not in planned:
            raise DataError(f"{path}, line {number}: {shown(own)!r} is no input of the plan")
        if own in found:
            raise DataError(f"{path}, line {number}: {shown(own)!r} has a label already")
        if text:
            found[own] = _class(text, own, classes)
    return found


def _table(plan: Finding) -> pa.Table:
    if plan.table is None or "classes" not in plan.arrays:
        raise RunError(f"{plan.name} chooses no inputs to label: give the Finding of LabelPlan")
    return plan.table
