"""Leakage: the same case or patient among those that trained the network, the lesion model, or that test both.

Results on cases or patients that a model learnt from look better than those on new ones will be.
"""

from collections.abc import Sequence

import numpy as np

from weakspot.core.errors import DataError
from weakspot.lesions.lesion_set import patients_of

_NAMED = 8


def check_unseen(ids: Sequence[str], trained_on: Sequence[str], *, patient: str | None = None) -> None:
    """Refuse to learn from cases, or patients, that the segmentation network was trained on."""
    if both := in_both(ids, trained_on, patient):
        raise DataError(
            f"the network was trained on {both}: a lesion model must learn from other cases, since a network errs less "
            "on those it knows; take validation cases, or allow training cases with training_cases: true"
        )


def check_untrained(ids: Sequence[str], trained_on: Sequence[str], *, patient: str | None = None) -> None:
    """Refuse to judge, or to judge by, cases or patients that the segmentation network was trained on."""
    if both := in_both(ids, trained_on, patient):
        raise DataError(
            f"the network was trained on {both}: lesions there say nothing of new cases, since a network errs less on "
            "those it knows; test with other cases"
        )


def check_not_learnt(ids: Sequence[str], learnt: Sequence[str], *, patient: str | None = None) -> None:
    """Refuse to judge, or to judge by, cases or patients that the lesion model learns from."""
    if both := in_both(ids, learnt, patient):
        raise DataError(
            f"the lesion model learnt from {both}: its results there look better than on new cases; keep all cases of "
            "a patient together, and score other cases"
        )


def in_both(ids: Sequence[str], others: Sequence[str], patient: str | None) -> str:
    """The cases that are among the others, or else whose patient is, in words; empty where there are none.

    >>> in_both(["p1_a", "p2_a"], ["p1_b"], "p[0-9]+")
    "patient 'p1' (1 of 2 cases here: p1_a)"
    """
    same = sorted(set(ids) & set(others))
    if same:
        return f"case {same[0]!r} ({len(same)} of {len(ids)} cases here: {_named(same)})"
    learnt = set(_owners(others, patient))
    owners = dict(zip(ids, _owners(ids, patient), strict=True))
    shared = sorted(case for case, owner in owners.items() if owner in learnt)
    if not shared:
        return ""
    return f"patient {owners[shared[0]]!r} ({len(shared)} of {len(ids)} cases here: {_named(shared)})"


def _owners(cases: Sequence[str], patient: str | None) -> list[str]:
    """The patient of each case; a case that the pattern does not know, as of other data, is its own."""
    return [str(name) for name in patients_of(np.array(cases, dtype=np.str_), patient, strict=False)]


def _named(cases: Sequence[str]) -> str:
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return ", ".join(cases[:_NAMED]) + more
