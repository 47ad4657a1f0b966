"""Checks that the data's classes and the model's own class names have the same order; never guesses."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.options import shortened
from weakspot.core.subject import Subject
from weakspot.models.model_classes import another_order, in_order_of_outputs, model_classes


def class_order(
    subject: Subject, entry: int | str | list[str] | None, of_splits: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...] | None, list[str]]:
    """The classes in the order of the model's config, where the file names none, and notes for the user.

    entry: `classes` of the file.
    of_splits: the names that each split has, in its own order.
    """
    if entry is not None and not isinstance(entry, int):
        return None, _against_names(subject)
    config_names = model_classes(subject.model)
    if config_names is None:
        return None, []
    names = list(dict.fromkeys(name for some in of_splits.values() for name in some))
    if entry is not None:
        return None, _against_number(config_names, of_splits)
    if not names:
        return config_names, [f"classes are named as in the model's config: {shortened(list(config_names))}"]
    ordered = in_order_of_outputs(config_names, names)
    if ordered is None:
        return None, [
            f"the model's config names its outputs {shortened(list(config_names))}, and the data have the classes "
            f"{shortened(names)}, in the order of the alphabet: if that is not the order of the outputs, every result "
            "is wrong; name the classes in the order of the outputs"
        ]
    return ordered, [f"classes are in the order of the model's config: {shortened(list(ordered))}"]


def _against_names(subject: Subject) -> list[str]:
    """What the model's config says against the classes that were named."""
    config_names = None
    with suppress(SubjectError):  # a config that contradicts itself says nothing against what was named
        config_names = model_classes(subject.model)
    named = subject.classes or ()
    if config_names is None or not another_order(config_names, named):
        return []
    return [
        f"warning: classes are {shortened(list(named))}, and the model's config names its outputs "
        f"{shortened(list(config_names))}: if the config is right, every result is wrong"
    ]


def _against_number(config_names: Sequence[str], of_splits: Mapping[str, Sequence[str]]) -> list[str]:
    """Only how many classes there are was said: then the data's order counts, and it must be the model's."""
    for split, names in of_splits.items():
        if another_order(config_names, names):
            raise ConfigError(
                f"{split} has the classes {shortened(list(names))}, and the model's config names its outputs "
                f"{shortened(list(config_names))}: leave classes out, or name them in the order of the outputs"
            )
    return []
