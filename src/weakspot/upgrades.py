"""Findings written by older versions, brought up to date while they are read: torch-free."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.digest import canonical
from weakspot.rooms import declared

FINDINGS = {"classes.class_gauge": "classes.class_criteria", "repair.answers": "repair.predictions"}
"""Findings that had another name in version 1; an older Run keeps it."""
NUMBERS = {
    "lucky": "fragile",
    "called_weak": "flagged_share",
    "accuracy_change": "neighbour_accuracy_change",
    "mended": "fixed",
    "best_rival": "best_baseline",
    "area_of_best_rival": "area_of_best_baseline",
    "diversity_correlation": "concentration_correlation",
}
"""Numbers of summaries that had another name in version 1."""
ARRAYS = {
    "reliability_said": "reliability_predicted",
    "reliability_found": "reliability_observed",
    "answer": "prediction",
    "leaning": "soft_confusion",
    "leaning_bias": "soft_confusion_bias",
    "diversity_odds": "concentration_odds",
}
COLUMNS = {
    "predicted": "prediction",
    "answer": "prediction",
    "guess": "prediction",
    "right": "correct",
    "wrong": "not correct",
    "leaning": "soft_confusion",
    "leaning_rank": "soft_confusion_rank",
    "leaning_bias": "soft_confusion_bias",
    "mended": "fixed",
    "diversity": "concentration",
}
"""Columns that had another name in version 1; with "not" before it, one whose truth values are turned round."""
COLUMNS_OF: dict[str, dict[str, str]] = {
    "robustness.neighbour_accuracy": {"right": "correct_looks", "accuracy": "neighbour_accuracy"},
    "robustness.neighbour_tolerance": {"right": "correct_looks", "accuracy": "neighbour_accuracy"},
    "robustness.class_robustness": {"accuracy": "neighbour_accuracy"},
    "robustness.weak_places": {"accuracy": "neighbour_accuracy"},
    "robustness.weak_inputs": {"weak": "flagged"},
    "robustness.weak_strips": {"answers": "predictions", "right": "correct_looks"},
}
"""Where a name meant something else in a Finding."""
PROVENANCE = {"ways": "inference_options"}
"""Keys of the provenance that had another name in version 1."""
PARAMETERS_OF = {
    "robustness": {"cutoff": "threshold", "release": "early_stopping"},
    "lesions": {"samples": "looks"},
}
"""Options that had another name in version 1, by room; also those in a mapping of options, such as `sampling`."""
IMPLIED = {"robustness": {"threshold": ("weak_if", "at_or_below")}}
"""What an option of version 1 left unsaid, by room: option and value, which version 1 had no choice of."""
VALUES = {("where", "wrong"): "incorrect"}
"""Values of options that were called otherwise in version 1."""


def finding_from_1(index: dict[str, Any]) -> dict[str, Any]:
    """The index of version 2: it declares what the Finding holds, in the names of today.

    `array_files` says under which old name an array lies on the disk, `renamed_columns` what columns are called there.
    """
    name = str(index.get("name", "")).partition("-")[0]
    outputs = declared(FINDINGS.get(name, name))
    return {
        **index,
        "version": 2,
        "summary": [[_renamed(key, NUMBERS), entry] for key, entry in index.get("summary", [])],
        "arrays": [_renamed(key, ARRAYS) for key in index.get("arrays", [])],
        "array_files": {new: old for old, new in ARRAYS.items() if old in index.get("arrays", [])},
        "renamed_columns": {**COLUMNS, **COLUMNS_OF.get(name, {})},
        "outputs": {} if outputs is None else canonical(outputs),
        "provenance": _provenance(index.get("provenance"), name.partition(".")[0]),
    }


def _provenance(provenance: Any, room: str) -> Any:
    """The provenance with its keys and options by their names of today."""
    if isinstance(provenance, Mapping):
        provenance = {_renamed(key, PROVENANCE): value for key, value in provenance.items()}
    if not isinstance(provenance, Mapping) or not isinstance(provenance.get("parameters"), Mapping):
        return provenance
    names, implied = PARAMETERS_OF.get(room, {}), IMPLIED.get(room, {})
    return {**provenance, "parameters": _parameters(provenance["parameters"], names, implied)}


def _parameters(
    parameters: Mapping[str, Any], names: Mapping[str, str], implied: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    upgraded: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            upgraded[_renamed(key, names)] = _parameters(value, names, implied)
        else:
            renamed = VALUES.get((key, value), value) if isinstance(value, str) else value
            upgraded[_renamed(key, names)] = renamed
    return upgraded | dict(unsaid for option, unsaid in implied.items() if option in upgraded)


def _renamed(name: Any, names: Mapping[str, str]) -> Any:
    return names.get(name, name) if isinstance(name, str) else name
