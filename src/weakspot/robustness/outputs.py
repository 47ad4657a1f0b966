"""How the Findings of this room are read: what they hold, the worst of it, and the viewer's pages. Torch-free."""

from collections.abc import Sequence
from typing import Any

from weakspot.core.finding import Finding, Picture
from weakspot.core.room import Room, ViewerPage, WorstFinding
from weakspot.formatting import counted, roughly
from weakspot.robustness import detector_outputs, guard_outputs
from weakspot.robustness import finding_outputs as declared
from weakspot.robustness.attack_outputs import ROBUST_ACCURACY
from weakspot.robustness.corruption_outputs import COMMON_CORRUPTIONS
from weakspot.robustness.segmentation_outputs import NEIGHBOUR_SEGMENTATION

_PICTURES = 2
_TOO_OFTEN = "small variations are predicted incorrectly too often"


def worst(findings: Sequence[Finding], task: str) -> list[WorstFinding]:
    """The class with the largest share of weak inputs; without classes, the inputs that are correct only by luck."""
    by_class = _with_columns(findings, "class_robustness", "class", "weak_share", "weak_low", "weak_high", "inputs")
    return _fragile_inputs(findings) if by_class is None else [_weakest_class(findings, by_class)]


def _weakest_class(findings: Sequence[Finding], by_class: Finding) -> WorstFinding:
    rows = _rows(by_class)
    weakest = max(rows, key=lambda row: row["weak_share"])
    has_interval = weakest["weak_low"] == weakest["weak_low"]  # NaN where samples belong together
    interval = f"95\u00a0% interval {roughly(weakest['weak_low'])} to {roughly(weakest['weak_high'])}, "
    return WorstFinding(
        title=f"Class “{weakest['class']}”: {roughly(weakest['weak_share'])} of its inputs are weak",
        text=f"Weak: their {_TOO_OFTEN}. {interval if has_interval else ''}{counted(weakest['inputs'], 'input')}.",
        finding=by_class.name,
        share=weakest["weak_share"] * weakest["inputs"] / max(sum(row["inputs"] for row in rows), 1),
        pictures=_strips(findings, str(weakest["class"])),
    )


def _fragile_inputs(findings: Sequence[Finding]) -> list[WorstFinding]:
    for name in ("neighbour_accuracy", "neighbour_tolerance"):
        finding = _named(findings, name)
        fragile, inputs = (_count(finding, key) for key in ("fragile", "inputs"))
        if finding is not None and fragile and inputs:
            verb = "is" if fragile == 1 else "are"
            return [
                WorstFinding(
                    title=f"{counted(fragile, 'input')} {verb} predicted correctly only by luck",
                    text=f"Of {counted(inputs, 'input')}. They are weak: their {_TOO_OFTEN}.",
                    finding=finding.name,
                    share=fragile / inputs,
                    pictures=_strips(findings, None),
                )
            ]
    return []


def _strips(findings: Sequence[Finding], target: str | None) -> list[tuple[str, Picture]]:
    """Pictures of weak inputs beside their neighbours; of a class only its inputs, where the targets are known."""
    strips = _named(findings, "weak_strips")
    table = _with_columns(findings, "neighbour_accuracy", "id", "target")
    targets = {} if table is None else {str(row["id"]): str(row["target"]) for row in _rows(table, "id", "target")}
    pictures = {} if strips is None else strips.media
    fitting = [pair for pair in pictures.items() if not targets or target in (None, targets.get(pair[0]))]
    return fitting[:_PICTURES]


def _named(findings: Sequence[Finding], name: str) -> Finding | None:
    """The Finding of a probe of this room, of the test data where there are several."""
    full = f"robustness.{name}"
    fitting = [finding for finding in findings if finding.name.partition("-")[0] == full]
    return min(fitting, key=lambda finding: len(finding.name), default=None)


def _with_columns(findings: Sequence[Finding], name: str, *columns: str) -> Finding | None:
    finding = _named(findings, name)
    table = None if finding is None else finding.table
    return finding if table is not None and table.num_rows and {*columns} <= {*table.column_names} else None


def _rows(finding: Finding, *columns: str) -> list[dict[str, Any]]:
    table = finding.table
    return [] if table is None else list((table.select(list(columns)) if columns else table).to_pylist())


def _count(finding: Finding | None, name: str) -> int:
    value = None if finding is None or name not in finding.summary else finding.summary[name].value
    return value if isinstance(value, int) else 0


ROOM = Room(
    "robustness",
    findings={
        "robustness.neighbour_accuracy": declared.NEIGHBOUR_ACCURACY,
        "robustness.neighbour_diversity": declared.NEIGHBOUR_DIVERSITY,
        "robustness.neighbour_tolerance": declared.NEIGHBOUR_TOLERANCE,
        "robustness.neighbour_segmentation": NEIGHBOUR_SEGMENTATION,
        "robustness.squared_error": declared.SQUARED_ERROR,
        "robustness.weak_places": declared.WEAK_PLACES,
        "robustness.class_robustness": declared.CLASS_ROBUSTNESS,
        "robustness.variation_effects": declared.VARIATION_EFFECTS,
        "robustness.tolerance_effects": declared.TOLERANCE_EFFECTS,
        "robustness.weak_strips": declared.WEAK_STRIPS,
        "robustness.weak_detector": detector_outputs.WEAK_DETECTOR,
        "robustness.detector_evaluation": detector_outputs.DETECTOR_EVALUATION,
        "robustness.weak_inputs": detector_outputs.WEAK_INPUTS,
        "robustness.robust_accuracy": ROBUST_ACCURACY,
        "robustness.common_corruptions": COMMON_CORRUPTIONS,
        "robustness.compared_neighbours": declared.COMPARED_NEIGHBOURS,
        "robustness.prediction_guard": guard_outputs.PREDICTION_GUARD,
        "robustness.guard_evaluation": guard_outputs.GUARD_EVALUATION,
        "robustness.guarded_inputs": guard_outputs.GUARDED_INPUTS,
    },
    worst=worst,
    pages=(
        ViewerPage(
            "weak",
            "Weak inputs",
            "Inputs whose small variations are predicted incorrectly, beside these variations.",
            ("robustness.weak_strips", "robustness.neighbour_accuracy", "robustness.neighbour_tolerance"),
        ),
        ViewerPage(
            "map",
            "Feature map",
            "Inputs by the first two principal components of their features.",
            ("robustness.weak_places",),
        ),
    ),
)
