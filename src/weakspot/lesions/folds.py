"""Which cases train the segmentation network, which the lesion model, and which test both; by patient.

A network errs less, and otherwise, on cases it was trained on, so a lesion model that learns from them learns from the
wrong mistakes (Lambert et al. 2022 take the validation cases of each fold).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.files import write_text
from weakspot.core.guarded_open import read_json
from weakspot.lesions.lesion_set import patients_of

FORMAT, VERSION = "weakspot-folds", 1
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class CaseFold:
    """The cases of one fold: those that train the network, those that train the lesion model, those that test both."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        parts = {name: set(getattr(self, name)) for name in PARTS}
        for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
            both = sorted(parts[one] & parts[other])
            if both:
                raise DataError(f"case {both[0]!r} is in {one} and in {other} of a fold: each case has one place")


def make_folds(
    cases: Sequence[str], *, count: int = 4, validation: float = 0.2, patient: str | None = None, seed: int = 0
) -> list[CaseFold]:
    """Cut the cases into `count` folds: every case tests one of them; all cases of a patient stay together.

    count: 4 in the paper, so that 25 % of the patients test.
    validation: the share of the remaining patients that is kept for the lesion model.
    patient: a pattern that names the patient at the beginning of a case's id; without it each case is one.
    seed: of the shuffling.

    >>> first, _ = make_folds(["a1", "a2", "b1", "c1", "d1"], count=2, validation=0.5, patient="[a-z]")
    >>> len(first.train) + len(first.validation) + len(first.test)
    5
    """
    if count < 2 or not 0 < validation < 1:
        raise ConfigError(f"expected count ≥ 2 and a validation share between 0 and 1, got {count} and {validation}")
    owners = patients_of(np.asarray(cases, dtype=np.str_), patient)
    patients = np.random.default_rng(seed).permutation(np.unique(owners))
    kept = max(1, round(validation * (len(patients) - len(patients) / count)))
    if len(patients) < count or len(patients) - -(-len(patients) // count) - kept < 1:
        raise DataError(
            f"{len(patients)} patients are too few for {count} folds with a training, a validation and a test part each"
        )
    folds = []
    for number in range(count):
        test = patients[number::count]
        rest = np.roll(patients[~np.isin(patients, test)], number)
        parts = {"train": rest[kept:], "validation": rest[:kept], "test": test}
        chosen = {name: np.isin(owners, part) for name, part in parts.items()}
        folds.append(CaseFold(**{name: tuple(np.asarray(cases)[mask].tolist()) for name, mask in chosen.items()}))
    return folds


def save_folds(folds: Sequence[CaseFold], path: Path) -> None:
    """Write the folds as JSON; what is there is not replaced."""
    if path.exists():
        raise RunError(f"{path} already exists: remove it, or write elsewhere")
    entry = {"format": FORMAT, "version": VERSION, "folds": [asdict(fold) for fold in folds]}
    write_text(path, json.dumps(entry, indent=1) + "\n")


def load_folds(path: Path) -> list[CaseFold]:
    """Read folds: what `save_folds` wrote, or nnU-Net's `splits_final.json`, whose folds have no test part."""
    try:
        read = read_json(path)
        entries = read["folds"] if isinstance(read, dict) else read
        return [_fold(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} holds no folds ({error}): expected a list with train, validation and test each, or train and val"
        ) from error


def _fold(entry: dict[str, list[str]]) -> CaseFold:
    held = entry["validation"] if "validation" in entry else entry["val"]
    return CaseFold(tuple(map(str, entry["train"])), tuple(map(str, held)), tuple(map(str, entry.get("test", ()))))


def trained_on(folds: Iterable[CaseFold]) -> tuple[str, ...]:
    """Every case that some network of these folds was trained on.

    An ensemble of all folds of a cross-validation knows every case: whatever is to train a lesion model for it must lie
    outside of all folds.
    """
    return tuple(sorted({case for fold in folds for case in fold.train}))
