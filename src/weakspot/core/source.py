"""The interface of a data source, with subsets and reading ahead. The sources themselves are in `weakspot.data`."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.groups import Groups
from weakspot.core.observation import Batch

Read = TypeVar("Read")


class Source(Protocol):
    """Samples with stable ids. `read` must be safe to call from several threads."""

    @property
    def ids(self) -> Sequence[str]:
        """The samples' ids in order: unique, and the same every time."""

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places."""

    def fingerprint(self) -> str:
        """Changes whenever a sample, a target or the order changes."""


def groups_of(source: Source) -> Groups | None:
    """What the samples belong to; None where each stands for itself."""
    groups: Groups | None = getattr(source, "groups", None)
    return groups


class Turn:
    """A lock that may be sent to another process, where it is a new one."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Turn, ()


class Subset:
    """Some samples of another source, in a given order."""

    def __init__(self, source: Source, positions: Sequence[int] | np.ndarray):
        self._source = source
        self._positions = np.asarray(positions, dtype=np.int64)
        ids = source.ids
        self.ids = tuple(ids[position] for position in self._positions)
        self.classes: Sequence[str] | None = getattr(source, "classes", None)
        self.batch_limit = batch_limit(source)
        whole = groups_of(source)
        self.groups = None if whole is None else whole.taken(self._positions)
        self.made = how_made(source)

    @classmethod
    def named(cls, source: Source, ids: Iterable[str]) -> "Subset":
        """The samples with these ids, in the order of the source; an id that it does not have is an error."""
        wanted = set(ids)
        places = [index for index, name in enumerate(source.ids) if name in wanted]
        if len(places) < len(wanted):
            lost = sorted(wanted.difference(source.ids))
            raise DataError(f"the data have no sample {lost[0]!r} ({len(lost)} of {len(wanted)} ids are not there)")
        return cls(source, places)

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places of the subset."""
        batch = self._source.read(self._positions[positions])
        return Batch(batch.ids, np.asarray(positions), batch.inputs, batch.targets, batch.metadata)

    def fingerprint(self) -> str:
        """Of the whole source and of the choice."""
        return digest([self._source.fingerprint(), self._positions])


def innermost(source: Source) -> Source:
    """The source that others were made of by leaving samples out, or adding metadata or groups."""
    while hasattr(source, "_source"):
        source = source._source
    return source


def how_made(source: Source) -> str:
    """How the samples came about where they are not simply all that there are, as people say it; else nothing."""
    words: str = getattr(source, "made", "")
    return words


def batch_limit(source: Source) -> int | None:
    """How many samples a batch may hold where nobody chose: 1 for volumes of differing shapes; None: any number."""
    limit: int | None = getattr(source, "batch_limit", None)
    return limit


def limited(source: Source, limit: int | None, *, seed: int = 0) -> Source:
    """At most `limit` samples, drawn once at random and kept in the order of the data; the first ones may be alike."""
    total = len(source.ids)
    if limit is None or limit >= total:
        return source
    if limit < 1:
        raise DataError(f"a limit of {limit} leaves no sample: give 1 or more")
    drawn = Subset(source, np.sort(np.random.default_rng(seed).permutation(total)[:limit]))
    drawn.made = f"{limit:,} of {total:,}, drawn at random"
    return drawn


def like(split: str, other: str) -> str:
    """The name of a split made of two others: as many samples of `split` as `other` has, drawn at random once.

    >>> like("train", "test")
    'train.like.test'
    """
    return f"{split}.like.{other}"


def splits_behind(split: str, data: Mapping[str, Source]) -> tuple[str, ...]:
    """The splits of the data that a split is made of: itself, or both that a name such as "train.like.test" names."""
    first, separator, second = split.partition(".like.")
    return (first, second) if separator and split not in data else (split,)


def with_made_splits(data: Mapping[str, Source], splits: Iterable[str]) -> dict[str, Source]:
    """The data, with those of the splits added that are made of others."""
    behind = {split: splits_behind(split, data) for split in splits}
    made = {split: limited(data[of[0]], len(data[of[1]].ids)) for split, of in behind.items() if len(of) > 1}
    return {**data, **made}


def check_ids(source: Source) -> None:
    """Refuse what is no source, data without samples, and ids that occur twice."""
    if not all(hasattr(source, name) for name in ("ids", "read", "fingerprint")):
        raise ConfigError(
            f"the data are a {type(source).__name__}: expected one source, with ids, read and fingerprint; "
            "weakspot.data.sources has ArraySource for arrays, DatasetSource for torch datasets, ImageFolder and others"
        )
    ids = source.ids
    if not len(ids):
        raise DataError("the data have no samples")
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = next(name for name in ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError(f"two samples have the id {twice!r}: ids must be unique")
    odd = next((name for name in ids if not is_text(name)), None)
    if odd is not None:
        raise DataError(f"the id {odd!r} is not text that can be written to a file: give the sample another name")


def is_text(name: object) -> bool:
    """Whether something is text that can be written to a file."""
    try:
        return bool(isinstance(name, str) and (name.isascii() or name.encode()))
    except UnicodeEncodeError:  # half of a surrogate pair, as file names that are no UTF-8 are given
        return False


def read_ahead(
    read: Callable[[np.ndarray], Read], batches: Sequence[np.ndarray], workers: int
) -> Generator[Read, None, None]:
    """`read` of each batch in order, done by `workers` threads while earlier ones are in use; 0 reads as it goes.

    Close it where an error may end its use early: until then the threads wait.
    """
    if workers == 0:
        yield from map(read, batches)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="weakspot-read")
    try:
        remaining = iter(batches)
        waiting: list[Future[Read]] = [pool.submit(read, p) for p in islice(remaining, workers + 1)]
        while waiting:
            batch = waiting.pop(0).result()
            waiting.extend(pool.submit(read, positions) for positions in islice(remaining, 1))
            yield batch
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
