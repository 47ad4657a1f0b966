"""How the Findings of this room are read: what they hold, next steps, and the viewer's page. Torch-free."""

from collections.abc import Iterator, Sequence

from weakspot.core.finding import Finding
from weakspot.core.room import NextStep, Room, ViewerPage
from weakspot.coverage.duplicate_outputs import DUPLICATES, IMAGE_HASHES
from weakspot.coverage.finding_outputs import (
    ACTIVATION_RANGES,
    CONFIDENCE,
    CRITERIA_AGREEMENT,
    DISTANCE_SURPRISE_COVERAGE,
    IMPORTANCE_DRIVEN_COVERAGE,
    K_MULTISECTION,
    LAYER_TRACES,
    LIKELIHOOD_SURPRISE_COVERAGE,
    NEURON_COVERAGE,
    NEURON_IMPORTANCE,
    NEXT_INPUTS,
    TOP_NEURONS,
)
from weakspot.formatting import label


def next_steps(findings: Sequence[Finding]) -> list[NextStep]:
    """Fill the holes that training inputs show, and label what the best ranking puts first."""
    return [step for finding in findings for step in (*_holes(finding), *_ranking(finding))]


def _holes(finding: Finding) -> Iterator[NextStep]:
    """Only where training inputs lie in a hole: other holes may be of what does not exist."""
    inside = finding.arrays.get("hole_training_inputs")
    pictured = any(name.startswith("hole ") for name in finding.media)
    if pictured and (inside is None or bool(inside.any())):
        text = (
            "Collect new test inputs like the training inputs in the pictures of the holes: no test input covers these "
            "holes. Do not take the training inputs themselves."
        )
        yield NextStep(text, finding.name)


def _ranking(finding: Finding) -> Iterator[NextStep]:
    """The ranking under which errors come first, with its first inputs."""
    if finding.table is None or "id" not in finding.table.column_names:
        return
    orders = {name.removeprefix("apfd_"): one.value for name, one in finding.summary.items()}
    ranked = set(finding.table.column_names)
    early = {name: value for name, value in orders.items() if f"place_{name}" in ranked and isinstance(value, float)}
    if early:
        best = max(early, key=lambda name: early[name])
        first = ", ".join(map(str, finding.table.sort_by(f"place_{best}")["id"].slice(0, 3).to_pylist()))
        yield NextStep(
            f"Check the inputs that {label(best)} ranks first ({first} …): errors come early in this order. "
            "Train on them only if they are no test inputs.",
            finding.name,
        )


ROOM = Room(
    "coverage",
    findings={
        "coverage.neuron_coverage": NEURON_COVERAGE,
        "coverage.activation_ranges": ACTIVATION_RANGES,
        "coverage.k_multisection": K_MULTISECTION,
        "coverage.top_neurons": TOP_NEURONS,
        "coverage.layer_traces": LAYER_TRACES,
        "coverage.neuron_importance": NEURON_IMPORTANCE,
        "coverage.importance_driven_coverage": IMPORTANCE_DRIVEN_COVERAGE,
        "coverage.likelihood_surprise_coverage": LIKELIHOOD_SURPRISE_COVERAGE,
        "coverage.distance_surprise_coverage": DISTANCE_SURPRISE_COVERAGE,
        "coverage.confidence": CONFIDENCE,
        "coverage.next_inputs": NEXT_INPUTS,
        "coverage.criteria_agreement": CRITERIA_AGREEMENT,
        "coverage.image_hashes": IMAGE_HASHES,
        "coverage.duplicates": DUPLICATES,
    },
    caution=(
        "Coverage is no measure of quality by itself: Harel-Canada et al. (ESEC/FSE 2020) and Li et al. (“Structural "
        "coverage criteria for neural networks could be misleading”, ICSE-NIER 2019) dispute that more of it means "
        "better testing. It shows what the inputs cover and is never a verdict."
    ),
    reminder="Coverage is no measure of quality by itself: it shows what the inputs cover and is never a verdict.",
    evidence=False,
    next_steps=next_steps,
    pages=(
        ViewerPage(
            "holes",
            "Coverage holes",
            "What training inputs show and no test input does.",
            ("coverage.importance_driven_coverage",),
        ),
    ),
)
