"""The room's question, "Which detected lesions are real?", as steps of a plan."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import read_lines
from weakspot.core.options import shortened
from weakspot.core.step import Step
from weakspot.lesions.probes import LesionFit, Lesions, Scores, check_split
from weakspot.lesions.volume_probes import CaseVolumes
from weakspot.looks.samples import sampling

OF_FIT = (
    "method", "epochs", "batch_size", "hidden", "first_rate", "last_rate", "readout", "folds", "training_cases",
    "keep_true", "device",
)  # fmt: skip
"""Options that say how a lesion model is trained."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The lesions of each case; with `fit` also a model that says which are real, and its scores for the test cases.

    fit: a split whose cases a lesion model is trained on, such as "validation"; the test cases are scored with it.
    splits: where to list lesions, "test" unless said otherwise.
    sampling: "dropout" (default), "members" of an ensemble or of stored samples, or {flips: [axes], of: …}.
    trained_on: ids of the cases that the network was trained on, or a file with one in each line.
    patient: a pattern that names the patient at the beginning of a case's id.
    volumes: true, or options of `CaseVolumes`: keep the volumes in the Run, so that the viewer can show them.
    device, method, epochs, batch_size, hidden, first_rate, last_rate, readout, folds, training_cases, keep_true: as in
        `LesionFit`.
    All other options are those of `Lesions`.

    >>> [f"{step.probe.__name__} of {step.split}" for step in steps({"fit": "validation", "looks": 5})]
    ['Lesions of test', 'Scores of test']
    """
    rest = dict(options)
    split, splits, patient = rest.pop("fit", None), rest.pop("splits", ("test",)), rest.pop("patient", None)
    training, volumes = {name: rest.pop(name) for name in OF_FIT if name in rest}, rest.pop("volumes", False)
    if "sampling" in rest:
        rest["look"] = sampling(rest.pop("sampling"), seed=rest.get("seed", 0))
    if "trained_on" in rest:
        rest["trained_on"] = case_ids(rest["trained_on"])
    if isinstance(splits, str) or not all(isinstance(name, str) for name in splits):
        raise ConfigError(f"splits is {shortened(splits)}: expected a list of splits, such as [validation, test]")
    planned = [Step.of(Lesions, split=name, patient=patient, **rest) for name in splits]
    planned += [_volumes(volumes, name, rest) for name in splits if volumes is not False]
    if split is None:
        if training:
            raise ConfigError(f"{next(iter(training))} says how to fit a lesion model: say on which split with fit")
        return planned
    check_split(split, training_cases=bool(training.get("training_cases")))
    shared = {"sampling": rest, "patient": patient}
    model = Step.of(LesionFit, split=split, **shared, **training)
    scores = Step(Scores, {**Step.of(Scores, **shared).options}, "test", {"model": model})
    return [*planned, scores]


def _volumes(options: Any, split: str, sampling: Mapping[str, Any]) -> Step:
    if not isinstance(options, bool | Mapping):
        raise ConfigError(f"volumes is {shortened(options)}: expected true, or options such as {{sequences: [0]}}")
    return Step.of(CaseVolumes, split=split, sampling=sampling, **({} if isinstance(options, bool) else options))


def case_ids(cases: Any) -> tuple[str, ...]:
    """Ids of cases: a list, or a file with one in each line."""
    if isinstance(cases, list | tuple):
        return tuple(map(str, cases))
    if not isinstance(cases, str | Path):
        raise ConfigError(f"trained_on is {shortened(cases)}: expected a list of ids, or a file with one in each line")
    try:
        lines = read_lines(cases)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"trained_on: cannot read {cases}: {reason}; give a file with one id in each line") from error
    return tuple(line.strip() for line in lines if line.strip())
