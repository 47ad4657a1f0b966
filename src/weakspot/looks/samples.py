"""Samples of a segmentation as a configuration asks for them: by dropout, members, flips, or flips of either."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.look import Look
from weakspot.core.options import nearest, shortened
from weakspot.looks.dropout import McDropout
from weakspot.looks.flips import Flips
from weakspot.looks.members import Members

SAMPLINGS = ("dropout", "members", "flips")


def sampling(how: Any, *, seed: int = 0) -> Look:
    """The look that a name, or a mapping such as {flips: [0, 1], of: members}, means.

    dropout: the model's dropout on, `seed` is of its masks. members: one network of an ensemble, or one stored sample,
    after another. flips: test-time flips along the axes z, y, x, or those listed; `of` says what else to combine them
    with.

    >>> sampling("dropout", seed=3)
    McDropout(seed=3)
    >>> sampling({"flips": [0, 1], "of": "members"})
    Flips(axes=(0, 1), of=Members())
    """
    if isinstance(how, Look):
        return how
    if isinstance(how, Mapping):
        return _flips(how, seed)
    if how not in SAMPLINGS:
        hint = nearest(how, SAMPLINGS) if isinstance(how, str) else ""
        raise ConfigError(
            f"sampling is {shortened(how)}: {hint}expected {', '.join(SAMPLINGS)}, or a mapping such as "
            "{flips: [0, 1, 2], of: members}"
        )
    return {"dropout": McDropout(seed), "members": Members(), "flips": Flips()}[how]


def _flips(how: Mapping[str, Any], seed: int) -> Look:
    axes, of = how.get("flips"), how.get("of")
    plain = isinstance(axes, list | tuple) and all(type(axis) is int for axis in axes)
    if set(how) - {"flips", "of"} or not plain or of not in (None, "dropout", "members"):
        raise ConfigError(
            f"sampling is {shortened(dict(how))}: expected the axes to flip and what else to sample by, such as "
            "{flips: [0, 1, 2], of: members}"
        )
    return Flips(tuple(axes or ()), None if of is None else sampling(of, seed=seed))
