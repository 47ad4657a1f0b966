"""What a model itself says of the order of its outputs, as Hugging Face's models do, and how data agree with it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.options import shortened

_NO_NAME = re.compile(r"LABEL_\d+")
"""What Hugging Face writes where nobody has named the outputs."""


def model_classes(model: Any) -> tuple[str, ...] | None:
    """The names of the outputs in their order, from `config.id2label` or `config.label2id`; None where there are none.

    Two that contradict each other are refused.
    """
    config = getattr(model, "config", None)
    numbered, by_name = getattr(config, "id2label", None), getattr(config, "label2id", None)
    turned = {number: name for name, number in by_name.items()} if isinstance(by_name, Mapping) else None
    first, second = _in_order(numbered), _in_order(turned)
    if first and second and first != second:
        raise SubjectError(
            f"the model's config contradicts itself: id2label says {shortened(list(first))}, label2id says "
            f"{shortened(list(second))}: correct it, and name the classes in the order of the outputs"
        )
    return first or second


def _in_order(labels: Any) -> tuple[str, ...] | None:
    """The names by their numbers 0, 1, 2 …; None where they are none, or are not numbered so."""
    if not isinstance(labels, Mapping) or not labels:
        return None
    by_number = {str(number): name for number, name in labels.items()}
    names = [by_number.get(str(number)) for number in range(len(labels))]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    named = tuple(map(str, names))
    return None if all(_NO_NAME.fullmatch(name) for name in named) else named


def in_order_of_outputs(outputs: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | None:
    """The model's classes in the order of its outputs, those of the data as the data spell them.

    Case, spaces, hyphens and underscores do not matter. None where no name agrees; where only some do, which class of
    the data is which output cannot be known, and that is refused.

    >>> in_order_of_outputs(["owl", "Dog", "cat"], ["cat", "dog"])
    ('owl', 'dog', 'cat')
    """
    differ = all(len(set(map(_plain, some))) == len(some) for some in (outputs, names))
    key = _plain if differ else str  # names that differ in their spelling alone are taken as they are
    spelled, plain_names = {key(name): name for name in names}, set(map(key, outputs))
    lost = [name for name in names if key(name) not in plain_names]
    if len(lost) == len(names):
        return None
    if lost:
        raise ConfigError(
            f"the model names its outputs {shortened(list(outputs))}, and the data have other classes, too: "
            f"{shortened(lost)}; name all classes as the data do, in the order of the outputs"
        )
    return tuple(spelled.get(key(name), name) for name in outputs)


def another_order(outputs: Sequence[str], names: Sequence[str]) -> bool:
    """Whether these are the model's names, in another order than its outputs have."""
    first, second = (list(map(_plain, one)) for one in (outputs, names))
    return first != second and sorted(first) == sorted(second)


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.strip().casefold()))
