"""The room's question, "Why does it fail, and what should it be retrained on?", as steps of a plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from weakspot.causes.error_probes import Errors
from weakspot.causes.probes import RootCauses
from weakspot.causes.rule_set_probes import RuleSet
from weakspot.causes.slice_probes import ErrorSlices
from weakspot.causes.slice_views import SOURCES
from weakspot.causes.unsafe_probes import UnsafeSet
from weakspot.core.errors import ConfigError
from weakspot.core.probe import complete_options
from weakspot.core.step import Step

OF_ERRORS = ("threshold", "quantile")
"""Options that say which images are predicted incorrectly."""
SHARED = ("angles", "seed")
"""Options that rules and clusters have in common."""
BY_HEAT_MAPS = "heat maps"
"""How images to label are chosen unless `by` says otherwise."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The error-inducing images, the rules that hold for unusually many of them, and their clusters by heat maps.

    threshold, quantile: which numbers, keypoints or segmentations are incorrect, as in `Errors`.
    slices: the options of `ErrorSlices`; `angles` holds for both. False leaves the rules out. `sources` are all, also
        heat maps, since clusters need these as well.
    select: choose images to label. `from`: the split to choose from, by default "pool"; `budget`: how many; `by`: by
        default "heat maps", with the other options of `UnsafeSet`; or "rules", "least confident" or "random", with
        those of `RuleSet`.
    All other options are those of `RootCauses`.

    >>> [step.probe.__name__ for step in steps({"quantile": 0.8, "linkage": "average", "select": {"budget": 50}})]
    ['Errors', 'ErrorSlices', 'RootCauses', 'UnsafeSet']
    """
    remaining = dict(options)
    select = remaining.pop("select", None)
    slices = remaining.pop("slices", {})
    of_errors = {name: remaining.pop(name) for name in OF_ERRORS if name in remaining}
    errors = Step.of(Errors, **of_errors)
    shared = {name: remaining[name] for name in SHARED if name in remaining}
    rules = [] if slices is False else [_slices(slices, {**shared, **of_errors})]
    causes = Step(RootCauses, complete_options(RootCauses, remaining), RootCauses.split, {"errors": errors})
    causes.try_options()
    return [errors, *rules, causes, *([] if select is None else [_selecting(select, causes, rules)])]


def _slices(options: Any, shared: Mapping[str, Any]) -> Step:
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"slices is {options!r}: expected options of error_slices, as {{depth: 2}}, or false for none"
        )
    return Step.of(ErrorSlices, **{"sources": SOURCES, **shared, **options})


def _selecting(select: Any, causes: Step, rules: Sequence[Step]) -> Step:
    if not isinstance(select, Mapping):
        raise ConfigError(
            f"select is {select!r}: expected a split, and how many images at most, as {{from: pool, budget: 200}}"
        )
    split = select.get("from", UnsafeSet.split)
    if not isinstance(split, str) or not split:
        raise ConfigError(f"select takes images from {split!r}: expected the name of a split, as {{from: pool}}")
    by = select.get("by", BY_HEAT_MAPS)
    if by != BY_HEAT_MAPS:
        return _by_rules(select, split, rules)
    select = {name: value for name, value in select.items() if name != "by"}
    options = complete_options(UnsafeSet, {name: value for name, value in select.items() if name != "from"})
    if options["clustering"]:
        raise ConfigError("select takes no clustering: the options of the clusters stand beside it")
    if causes.options["keep"] == "none":
        raise ConfigError("select compares heat maps, and keep: none holds none: leave keep out, or give best or all")
    step = Step(UnsafeSet, options, split, {"causes": causes})
    step.try_options()
    return step


def _by_rules(select: Mapping[str, Any], split: str, rules: Sequence[Step]) -> Step:
    """The step that chooses by rules, or a control of it."""
    if not rules:
        raise ConfigError(f"select chooses by {select['by']!r}, which needs the rules: leave slices: false out")
    if select.get("rules"):
        raise ConfigError("select takes no rules: their options stand beside it, under slices")
    options = {name: value for name, value in select.items() if name not in ("from", "rules")}
    step = Step(RuleSet, complete_options(RuleSet, options), split, {"slices": rules[0]})
    step.try_options()
    return step


def train_results(options: Mapping[str, Any]) -> Step:
    """The predictions for the training data, for the export; options: those of the room."""
    return Step.of(Errors, split="train", **{name: options[name] for name in OF_ERRORS if name in options})
