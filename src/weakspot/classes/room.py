"""The room's question, "Which classes does it mix up, or treat unequally?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.classes.coverage_probes import ClassCoverage, ClassGauge
from weakspot.classes.group_probes import GroupFairness
from weakspot.classes.probes import ClassPairs, ImagesToLabel, OutputPairs
from weakspot.core.errors import ConfigError
from weakspot.core.probe import Probe, complete_options
from weakspot.core.step import Step

SHARED = ("threshold", "layers", "side", "near", "least_images")
"""Options that the question about groups takes over from the one about pairs."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The pairs of classes; on request groups of images, a list of images to label, and coverage per class.

    by: "neurons", the default, or "outputs", to rank pairs by the outputs alone, for which a black box will do.
    groups: a column of the metadata, to compare accuracy between its groups.
    label: a split, such as "improvement", from which to list images of confused pairs; `budget` says how many.
    separation: whether to ask what coverage criteria tell of the classes; needs labels and training data.
    All other options are those of `ClassPairs`, or of `OutputPairs` where pairs are ranked by the outputs alone.

    >>> [(step.probe.__name__, step.split) for step in steps({"label": "improvement", "budget": 50})]
    [('ClassPairs', 'test'), ('ImagesToLabel', 'improvement')]
    """
    own: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in options.items()}
    groups, label, separation = own.pop("groups", None), own.pop("label", None), own.pop("separation", False)
    budget = {"budget": own.pop("budget")} if "budget" in own else {}
    pairs = Step.of(_ranking(own.pop("by", "neurons")), **own)
    found = [pairs]
    if groups is not None:
        found.append(Step.of(GroupFairness, groups=groups, **_taken_over(pairs, *SHARED)))
    if label is not None:
        found.append(Step(ImagesToLabel, complete_options(ImagesToLabel, budget), label, {"pairs": pairs}))
    if separation:
        found.append(Step.of(ClassCoverage, **_taken_over(pairs, "threshold", "layers")))
        found.append(Step.of(ClassGauge, **_taken_over(pairs, "layers")))
    return found


def _taken_over(pairs: Step, *names: str) -> dict[str, Any]:
    """Options of the pairs for another question; a ranking by the outputs has none that name neurons."""
    return {name: pairs.options[name] for name in names if name in pairs.options}


def _ranking(by: Any) -> type[Probe]:
    """The probe that ranks pairs like that."""
    rankings: dict[Any, type[Probe]] = {"neurons": ClassPairs, "outputs": OutputPairs}
    if by not in rankings:
        raise ConfigError(f'classes by {by!r} is not known: choose "neurons" or "outputs"')
    return rankings[by]
