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
from weakspot.data.names import shown
from weakspot.data.tables import table_from
from weakspot.estimates import interval_estimate
from weakspot.formatting import csv_cell
from weakspot.statistics import wilson_interval
from weakspot.statistics.intervals import normal_quantile
from weakspot.statistics.stratified import stratified_share

PLAN, ESTIMATE = "classes.label_plan", "classes.estimated_accuracy"
_INDEPENDENT = "independent inputs, and labels given in the order of the plan or to all of it"
_LEAST = 2
"""Labels that each stratum needs."""


def estimated_accuracy(plan: Finding, labels: Mapping[str, str], *, confidence: float = 0.95) -> Finding:
    """The accuracy on all inputs of a plan, by the labels that there are; labels by the inputs' ids.

    Unbiased where all inputs of the plan are labelled, or those that come first in it.
    """
    table, classes = _table(plan), [str(name) for name in plan.arrays["classes"].tolist()]
    ids, predicted, stratum = (table[name].to_pylist() for name in ("id", "prediction", "stratum"))
    places = [place for place, name in enumerate(ids) if name in labels]
    right = np.array(
        [_class(labels[ids[place]], ids[place], classes) == predicted[place] for place in places], dtype=bool
    )
    population = plan.arrays["stratum_inputs"]
    own = np.array([stratum[place] for place in places], dtype=np.int64)
    counted, correct = (np.bincount(own, weights, len(population)).astype(np.int64) for weights in (None, right))
    short = np.flatnonzero(counted < np.minimum(_LEAST, population))
    if len(short):
        raise DataError(
            f"{len(places)} of {len(ids)} inputs have a label, and stratum {short[0]} has {counted[short[0]]}: label "
            f"on, in the order of the plan, until every stratum has {_LEAST}"
        )
    value, ends = stratified_share(population, counted, correct, confidence=confidence)
    low, high = wilson_interval(correct, counted, confidence=confidence)
    numbers = {
        "accuracy": interval_estimate(float(value), ends, confidence=confidence),
        "labels": Estimate(len(places)),
        "missing": Estimate(len(ids) - len(places)),
        "random_labels": Estimate(
            _random_labels(float(value), float(ends.high - ends.low), population.sum(), confidence)
        ),
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
        provenance={
            "plan": plan.digest,
            "data": plan.provenance.get("data"),
            "subject": plan.provenance.get("subject"),
        },
    )


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
