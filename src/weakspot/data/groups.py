"""Samples that belong together: the column that says so, and what suggests it where nothing says so."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.groups import Groups
from weakspot.core.observation import Batch
from weakspot.core.options import nearest
from weakspot.core.source import Source, batch_limit, groups_of

_AT_ONCE = 256
_NAMES = frozenset("track patient subject person video film clip sequence scene case session series drive".split())
_ENDS_IN_NUMBER = re.compile(r"(.+)[-_ .]\d+")
_MANY = 20
"""Beginnings without a number of their own from which on they look like names of things, and not of kinds."""
_ALIKE = 0.5
"""Share of the samples that must belong to a group of two or more for names to suggest groups."""


class Grouped:
    """The samples of a source, each with what it belongs to: a film, a patient, the image that it was cut from.

    group: a column of the metadata; or the name of each sample's group, in the order of the source.

    Intervals, bootstraps, held-out halves and folds then go by group. A source that does not know its metadata without
    reading its samples is read once from the first to the last.
    """

    def __init__(self, source: Source, group: str | Sequence[str] | np.ndarray):
        self._source, self.ids = source, source.ids
        self.classes: Sequence[str] | None = getattr(source, "classes", None)
        self.batch_limit = batch_limit(source)
        self.remarks: tuple[str, ...] = tuple(getattr(source, "remarks", ()))
        column = group if isinstance(group, str) else "group"
        names = _column(source, group) if isinstance(group, str) else np.asarray(group)
        if names.shape != (len(self.ids),):
            raise DataError(f"expected one group per sample, got {names.shape} groups of {len(self.ids)} samples")
        self.groups = Groups(column, _named(column, names, self.ids))

    @property
    def metadata(self) -> Mapping[str, np.ndarray]:
        """The columns of the source, where it knows them."""
        return known_metadata(self._source) or {}

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places."""
        return self._source.read(positions)

    def fingerprint(self) -> str:
        """Of the source, and of the groups."""
        return digest(["grouped", self._source.fingerprint(), self.groups.names])


def known_metadata(source: Source) -> Mapping[str, np.ndarray] | None:
    """The columns that a source knows without reading its samples; None where it must read them."""
    columns: Mapping[str, np.ndarray] | None = getattr(source, "metadata", None)
    return columns


def suggested_groups(source: Source) -> str:
    """What suggests that samples belong together, in a sentence; empty where nothing does, or where groups are given.

    A column of the metadata that is called "track", "patient" or the like and repeats its values; or ids such as
    "patient07_12" or "Ada_Lovelace_3" that most often share what stands before their last number. One such beginning
    per folder, or no more of them than classes, is how files of a class are named, and suggests nothing.
    """
    if groups_of(source) is not None or len(source.ids) < 2:
        return ""
    for name, column in (known_metadata(source) or {}).items():
        words = set(re.split(r"[^a-z]+", name.lower()))
        if words & _NAMES and _shared(np.unique(column.astype(np.str_), return_counts=True)[1], len(column)):
            return f"the metadata have a column {name!r} with the same value for several samples"
    stems = [stem for stem in map(_stem, source.ids) if stem]
    names, counts = np.unique(stems, return_counts=True) if stems else (np.zeros(0), np.zeros(0, dtype=np.int64))
    folders = {name.rpartition("/")[0] for name in source.ids}
    usual = max(len(folders), len(getattr(source, "classes", None) or ()))
    numbered = any(character.isdigit() for character in str(stems[0]).rpartition("/")[2]) if stems else False
    if len(names) <= usual * (1 if numbered else 2) or len(names) < (2 if numbered else _MANY):
        return ""
    if not _shared(counts, len(source.ids)):
        return ""
    return f"several ids begin alike and end in a number, as {stems[0]!r}…, like frames or slices of one thing"


def _shared(counts: np.ndarray, samples: int) -> bool:
    """Whether most samples are in a group of two or more, and there are two groups or more."""
    return len(counts) > 1 and int(counts[counts > 1].sum()) >= _ALIKE * samples


def _stem(name: str) -> str:
    """What an id begins with before its last number, which a sign sets apart: "a/track12" of "a/track12_0003.png".

    >>> _stem("a/track12_0003.png"), _stem("Ada_Lovelace_3.jpg"), _stem("cat7"), _stem("0003")
    ('a/track12', 'Ada_Lovelace', '', '')
    """
    folder, _, file = name.rpartition("/")
    matched = _ENDS_IN_NUMBER.fullmatch(file.partition(".")[0])
    if matched is None:
        return ""
    return f"{folder}/{matched.group(1)}" if folder else matched.group(1)


def _column(source: Source, name: str) -> np.ndarray:
    columns = known_metadata(source)
    if columns is None:
        columns = _read_metadata(source)
    if name not in columns:
        have = ", ".join(columns) or "none"
        instead = f"{nearest(name, list(columns))}there is {have}"
        raise ConfigError(f"group is {name!r}, and no column of the metadata is called so: {instead}")
    return np.asarray(columns[name])


def _read_metadata(source: Source) -> dict[str, np.ndarray]:
    size, total = batch_limit(source) or _AT_ONCE, len(source.ids)
    batches = [source.read(np.arange(start, min(start + size, total))) for start in range(0, total, size)]
    names = (batches[0].metadata or {}) if batches else {}
    return {name: np.concatenate([(batch.metadata or {})[name] for batch in batches]) for name in names}


def _named(column: str, values: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """The names of the groups as text; a sample without one is an error."""
    empty = np.isnan(values) if values.dtype.kind == "f" else values.astype(np.str_) == ""
    if empty.any():
        first = ids[int(np.argmax(empty))]
        raise DataError(
            f"sample {first!r} has no {column} ({int(empty.sum())} of {len(ids)} have none): give each sample a group, "
            "one of its own where it stands alone"
        )
    return np.asarray(values.astype(np.str_))
