"""The room's question, "Which classes does it mix up, or treat unequally?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.classes.gauge import ClassCoverage, ClassGauge
from weakspot.classes.groups import GroupFairness
from weakspot.classes.probes import ClassPairs, ImagesToLabel
from weakspot.core.probe import complete_options
from weakspot.core.step import Step

SHARED = ("threshold", "layers", "side", "near", "least_images")
"""Options that the question about groups takes over from the one about pairs."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The pairs of classes; on request groups of images, a list of images to label, and coverage per class.

    groups: a column of the metadata, to compare accuracy between its groups.
    label: a split, such as "improvement", from which to list images of confused pairs; `budget` says how many.
    separation: whether to ask what coverage criteria tell of the classes; needs labels and training data.
    All other options are those of `ClassPairs`.

    >>> [(step.probe.__name__, step.split) for step in steps({"label": "improvement", "budget": 50})]
    [('ClassPairs', 'test'), ('ImagesToLabel', 'improvement')]
    """
    own: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in options.items()}
    groups, label, separation = own.pop("groups", None), own.pop("label", None), own.pop("separation", False)
    budget = {"budget": own.pop("budget")} if "budget" in own else {}
    pairs = Step.of(ClassPairs, **own)
    found = [pairs]
    if groups is not None:
        shared = {name: pairs.options[name] for name in SHARED}
        found.append(Step.of(GroupFairness, groups=groups, **shared))
    if label is not None:
        found.append(Step(ImagesToLabel, complete_options(ImagesToLabel, budget), label, {"pairs": pairs}))
    if separation:
        layers = pairs.options["layers"]
        found.append(Step.of(ClassCoverage, threshold=pairs.options["threshold"], layers=layers))
        found.append(Step.of(ClassGauge, layers=layers))
    return found
