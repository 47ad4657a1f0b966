"""The room's question, "Which classes does it mix up, or treat unequally?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.classes.coverage_probes import ClassCoverage, ClassCriteria
from weakspot.classes.gap_probes import GroupGaps, gap_options
from weakspot.classes.group_probes import GroupFairness
from weakspot.classes.label_probes import plan_steps
from weakspot.classes.pixel_probes import PixelConfusion
from weakspot.classes.probes import ClassPairs, ImagesToLabel, OutputPairs
from weakspot.core.errors import ConfigError
from weakspot.core.probe import Probe
from weakspot.core.selection import read_selection, refuse_earlier_names
from weakspot.core.step import Step

SHARED = ("threshold", "layers", "side", "near", "least_images")
"""Options that the question about groups takes over from the one about pairs."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The pairs of classes; on request groups of images, a list of images to label, and coverage per class.

    by: "neurons", the default, or "outputs", to rank pairs by the outputs alone, for which a black box will do; of a
        segmentation "pixels", to count which class is predicted where, which takes no other options.
    groups: a column of the metadata, to compare accuracy between its groups; or several, [sex, age], or options
        {columns: [sex, age], depth: 2, least: 30}: gaps of groups by these columns alone and together.
    select: {from: SPLIT, budget: N}: list images of a split, such as "pool", that are predicted as a class of a
        confused pair, the likeliest mistakes first; without a budget all of them.
    estimate: {from: SPLIT, labels: N}: choose N inputs of a split to label, to know the accuracy on all of them;
        `known: SPLIT` names labelled inputs, for estimates without any label.
    separation: whether to ask what coverage criteria tell of the classes; needs labels and training data.
    All other options are those of `ClassPairs`, or of `OutputPairs` where pairs are ranked by the outputs alone.

    >>> [(step.probe.__name__, step.split) for step in steps({"select": {"from": "pool", "budget": 50}})]
    [('ClassPairs', 'test'), ('ImagesToLabel', 'pool')]
    """
    refuse_earlier_names(options, ("label", "budget"), of="classes")
    pair_options: dict[str, Any] = {
        name: tuple(item) if isinstance(item, list) else item for name, item in options.items()
    }
    groups, select = pair_options.pop("groups", None), pair_options.pop("select", None)
    separation, estimate = pair_options.pop("separation", False), pair_options.pop("estimate", None)
    if options.get("by") == "pixels":
        _refuse_beside_pixels(options)
        return [Step.of(PixelConfusion)]
    pairs = Step.of(_ranking(pair_options.pop("by", "neurons")), **pair_options)
    asked = [pairs]
    gaps = None if groups is None else gap_options(groups)
    if gaps is not None:
        asked.append(Step.of(GroupGaps, **gaps))
    elif groups is not None:
        asked.append(Step.of(GroupFairness, groups=groups, **_taken_over(pairs, *SHARED)))
    if select is not None:
        selection = read_selection(select, of="classes")
        asked.append(Step(ImagesToLabel, {"budget": selection.budget}, selection.split, {"pairs": pairs}))
    if estimate is not None:
        asked += plan_steps(estimate)
    if separation:
        asked.append(Step.of(ClassCoverage, **_taken_over(pairs, "threshold", "layers")))
        asked.append(Step.of(ClassCriteria, **_taken_over(pairs, "layers")))
    return asked


def _refuse_beside_pixels(options: Mapping[str, Any]) -> None:
    others = [name for name in options if name != "by"]
    if others:
        raise ConfigError(f"{others[0]} means nothing where classes are compared by pixels: leave it out")


def _taken_over(pairs: Step, *names: str) -> dict[str, Any]:
    """Options of the pairs for another question; a ranking by the outputs has none that name neurons."""
    return {name: pairs.options[name] for name in names if name in pairs.options}


def _ranking(by: Any) -> type[Probe]:
    """The probe that ranks pairs like that."""
    rankings: dict[Any, type[Probe]] = {"neurons": ClassPairs, "outputs": OutputPairs}
    if by not in rankings:
        raise ConfigError(f'classes by {by!r} is not known: choose "neurons", "outputs" or "pixels"')
    return rankings[by]
