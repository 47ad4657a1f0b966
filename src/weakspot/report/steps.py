"""What to do next, from what was found: the most promising first."""

import re
from collections.abc import Iterator, Sequence

from weakspot.core.finding import Finding
from weakspot.report.shown import NextStep
from weakspot.report.wording import label, value_text

STEPS = (
    (
        "Look at {images_to_inspect} images, a few from each of the {clusters} clusters of errors, and name what they "
        "share: that is what to collect or simulate for retraining.",
        "",
    ),
    (
        "Label the {unsafe} images of the unsafe set, and retrain on them.",
        "weakspot causes label RUN --export labels.csv",
    ),
    ("Train with variations by {hurts_most}: over its range {effect_1} of the answers are lost.", ""),
    (
        "Add the {lucky} inputs that are right only by luck, with variations of them, to the training data; examine "
        "the new model on the same test data, and compare.",
        "weakspot compare RUN NEW_RUN",
    ),
    ("Label, or check the labels of, {images} of {searched} images: they come from confused pairs.", ""),
    (
        "Write the {lesions} lesions as tables, maps and slices, those most likely false first, and look at them: "
        "about {expected_false_positives} are none.",
        "weakspot lesions export weakspot.yaml",
    ),
)
"""What to do and the command for it; a Finding that has all the numbers of a step suggests it."""
_HOLES = "Add test inputs like those in the pictures of the holes: training inputs lie there, and no test input."
_GATE = NextStep(
    "Keep what was reached: put thresholds into a policy, and hold every build to it.",
    command="weakspot gate RUN policy.yaml",
)
_SLOT = re.compile(r"\{(\w+)\}")
_SHARES = ("effect_1",)


def _training_fills(finding: Finding) -> bool:
    """Whether there are pictures of holes, and training inputs in any: other holes may be of what does not exist."""
    inside = finding.arrays.get("hole_training_inputs")
    return any(name.startswith("hole ") for name in finding.media) and (inside is None or bool(inside.any()))


def next_steps(findings: Sequence[Finding]) -> list[NextStep]:
    """Steps that rest on what a Finding holds and, where there is anything to keep, the gate."""
    told = [step for text, command in STEPS for finding in findings for step in _suggested(text, command, finding)]
    ranked = [step for finding in findings for step in _ranking(finding)]
    holes = [NextStep(_HOLES, finding.name) for finding in findings if _training_fills(finding)]
    return [*told, *ranked, *holes, _GATE] if findings else []


def _suggested(text: str, command: str, finding: Finding) -> Iterator[NextStep]:
    values = {name: finding.summary[name].value for name in _SLOT.findall(text) if name in finding.summary}
    if len(values) == len(_SLOT.findall(text)) and all(values.values()):
        words = {name: value_text(value, share=name in _SHARES) for name, value in values.items()}
        yield NextStep(text.format(**words), finding.name, command)


def _ranking(finding: Finding) -> Iterator[NextStep]:
    """The ranking under which errors come first, with its first inputs."""
    orders = {name.removeprefix("apfd_"): estimate.value for name, estimate in finding.summary.items()}
    columns = [] if finding.table is None else finding.table.column_names
    early = {name: value for name, value in orders.items() if f"place_{name}" in columns and isinstance(value, float)}
    if finding.table is None or not early or "id" not in columns:
        return
    best = max(early, key=lambda name: early[name])
    first = finding.table.sort_by(f"place_{best}")["id"].slice(0, 3).to_pylist()
    yield NextStep(
        f"Label the inputs that {label(best)} ranks first ({', '.join(map(str, first))} …): errors come early there.",
        finding.name,
    )
