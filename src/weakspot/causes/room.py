"""The room's question, "Why does it fail, and what should it be retrained on?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.causes.error_probes import Errors
from weakspot.causes.probes import RootCauses
from weakspot.causes.unsafe_probes import UnsafeSet
from weakspot.core.errors import ConfigError
from weakspot.core.probe import complete_options
from weakspot.core.step import Step

OF_ERRORS = ("threshold", "quantile")
"""Options that say which images are predicted incorrectly."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The error-inducing images, and their root-cause clusters; on request the images to label next.

    threshold, quantile: which numbers or keypoints are incorrect, as in `Errors`.
    select: choose images to label. `from`: the split to choose from, by default "pool"; `budget`: how many; the other
        options of `UnsafeSet`.
    All other options are those of `RootCauses`.

    >>> [step.probe.__name__ for step in steps({"quantile": 0.8, "linkage": "average", "select": {"budget": 50}})]
    ['Errors', 'RootCauses', 'UnsafeSet']
    """
    remaining = dict(options)
    select = remaining.pop("select", None)
    errors = Step.of(Errors, **{name: remaining.pop(name) for name in OF_ERRORS if name in remaining})
    causes = Step(RootCauses, complete_options(RootCauses, remaining), RootCauses.split, {"errors": errors})
    causes.try_options()
    return [errors, causes, *([] if select is None else [_selecting(select, causes)])]


def _selecting(select: Any, causes: Step) -> Step:
    if not isinstance(select, Mapping):
        raise ConfigError(
            f"select is {select!r}: expected a split and a number of images, as {{from: pool, budget: 200}}"
        )
    split = select.get("from", UnsafeSet.split)
    if not isinstance(split, str) or not split:
        raise ConfigError(f"select takes images from {split!r}: expected the name of a split, as {{from: pool}}")
    options = complete_options(UnsafeSet, {name: value for name, value in select.items() if name != "from"})
    if options["clustering"]:
        raise ConfigError("select takes no clustering: the options of the clusters stand beside it")
    if causes.options["keep"] == "none":
        raise ConfigError("select compares heat maps, and keep: none holds none: leave keep out, or give best or all")
    step = Step(UnsafeSet, options, split, {"causes": causes})
    step.try_options()
    return step


def train_results(options: Mapping[str, Any]) -> Step:
    """The predictions for the training data, for the export; options: those of the room."""
    return Step.of(Errors, split="train", **{name: options[name] for name in OF_ERRORS if name in options})
