"""Sentences with slots: `{name}` stands for a number of a summary, `{finding}` for the Finding itself."""

import re

SLOT = re.compile(r"\{(\w+)\}")


def slots(sentence: str) -> set[str]:
    """The numbers that a sentence needs.

    >>> sorted(slots("{weak_share} of {inputs} inputs, see {finding}"))
    ['inputs', 'weak_share']
    """
    return set(SLOT.findall(sentence)) - {"finding"}
