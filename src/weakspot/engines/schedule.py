"""Decides which worker computes which shard: a state machine without clock, processes or network.

The engine feeds it with what happens and when; a simulation can do the same with a clock that it makes up.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median


@dataclass(frozen=True)
class Patience:
    """When a worker is too slow.

    ahead: shards that a worker is handed at once, so that it need not wait for the next.
    slow: a shard that takes so many times the usual time is also given to a worker that has nothing else to do.
    hanging: a worker that takes so many times the longest time seen, and at least `least` seconds, is given up.
    first: while nothing is known of how long a shard takes, a worker that gets through no batch for so many seconds is
        given up.
    attempts: workers that may die of a shard before it is blamed; and how often every worker may be given up, on
        average, before any shard is done.
    """

    ahead: int = 2
    slow: float = 1.5
    hanging: float = 5.0
    least: float = 30.0
    first: float = 3600.0
    attempts: int = 3


class Schedule:
    """Shards to be done by workers that come, go, and are of different speed.

    samples: of each shard, by its number; shards are handed out in this order.
    known: seconds per sample that a trial took; infinite where there was none.
    """

    def __init__(self, samples: Mapping[int, int], patience: Patience | None = None, *, expected: float = inf):
        self._samples = samples
        self._patience = patience or Patience()
        self._expected = expected
        self._waiting = deque(samples)
        self._left = set(samples)
        self._held: dict[int, list[int]] = {}
        """What each worker has been handed, in the order in which it works."""
        self._since: dict[int, float] = {}
        """Since when each worker is at the first of them."""
        self._moved: dict[int, float] = {}
        """When each worker last got through a batch."""
        self._copies: dict[int, list[int]] = {}
        """Who holds each shard."""
        self._pace: list[float] = []
        """Seconds per sample of what was finished."""
        self._deaths: dict[int, int] = {}
        self._given_up = 0
        self.repeated: list[int] = []
        """Shards that were begun and must be done again, as their worker died or was given up."""

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return not self._left

    @property
    def left(self) -> set[int]:
        """The shards that nobody has finished."""
        return self._left

    def copies(self, shard: int) -> list[int]:
        """The workers that hold a shard."""
        return self._copies.get(shard, [])

    @property
    def busy(self) -> list[int]:
        """The workers that hold anything."""
        return [worker for worker, held in self._held.items() if held]

    def joins(self, worker: int) -> None:
        """A worker is there, with nothing to do."""
        self._held[worker] = []

    def moves(self, worker: int, now: float) -> None:
        """A worker got through a batch."""
        self._moved[worker] = now

    def gives_up(self, worker: int) -> list[int]:
        """A worker hangs; as `leaves`, but before anything is done it is not its shard that is to be blamed."""
        self._given_up += 1
        return self.leaves(worker, blame=bool(self._pace))

    @property
    def fruitless(self) -> int:
        """How many workers were given up, where nothing was ever done."""
        return 0 if self._pace else self._given_up

    def leaves(self, worker: int, *, blame: bool = True) -> list[int]:
        """A worker died or was given up; the shards that go back: the one it was at, and those it had not begun."""
        held = self._held.pop(worker, [])
        self._since.pop(worker, None)
        self._moved.pop(worker, None)
        for shard in held:
            self._copies[shard].remove(worker)
        if held and blame:
            self._deaths[held[0]] = self._deaths.get(held[0], 0) + 1
        back = [shard for shard in held if shard in self._left and not self.copies(shard)]
        self._waiting.extendleft(reversed(back))
        self.repeated += [shard for shard in held[:1] if shard in back]
        return back

    def fatal(self) -> int | None:
        """A shard of which too many workers died."""
        return next((shard for shard, deaths in self._deaths.items() if deaths >= self._patience.attempts), None)

    def finished(self, worker: int, shard: int, now: float, *, skipped: bool = False) -> bool:
        """A worker is through with a shard; whether it was the first. What it skipped says nothing about its pace."""
        held = self._held.get(worker, [])
        if shard in held:
            if held[0] == shard and not skipped:
                self._pace.append((now - self._since[worker]) / max(1, self._samples[shard]))
            held.remove(shard)
            self._copies[shard].remove(worker)
            self._since[worker] = now
        first = shard in self._left and not skipped
        if first:
            self._left.remove(shard)
        return first

    def drop_after(self, shard: int) -> list[int]:
        """Hand out nothing beyond a shard; what is held of that, for which no one waits any longer."""
        self._left = {number for number in self._left if number < shard}
        self._waiting = deque(number for number in self._waiting if number in self._left)
        return [number for held in self._held.values() for number in held if number >= shard]

    def assign(self, now: float) -> Iterator[tuple[int, int]]:
        """Which worker is to be handed which shard now: first to each its one, then some ahead, at last copies."""
        for depth in range(self._patience.ahead if len(self._waiting) > len(self._held) else 1):
            for worker, held in self._held.items():
                if not self._waiting:
                    break
                if len(held) == depth:
                    yield self._hand(worker, self._waiting.popleft(), now)
        idle = [worker for worker, held in self._held.items() if not held]
        if idle:
            for worker, shard in zip(idle, self._worth_copying(now), strict=False):
                yield self._hand(worker, shard, now)

    def _hand(self, worker: int, shard: int, now: float) -> tuple[int, int]:
        if not self._held[worker]:
            self._since[worker] = now
        self._held[worker].append(shard)
        self._copies.setdefault(shard, []).append(worker)
        return worker, shard

    def _worth_copying(self, now: float) -> list[int]:
        """What someone holds alone: first what is not begun yet, then what takes too long, the longest first."""
        queued = [shard for held in self._held.values() for shard in held[1:]]
        running = sorted((self._since[worker], held[0]) for worker, held in self._held.items() if held)
        usual = median(self._pace) if self._pace else float("inf")
        slow = [s for since, s in running if now - since > self._patience.slow * usual * self._samples[s]]
        return [shard for shard in [*queued, *slow] if shard in self._left and len(self.copies(shard)) == 1]

    @property
    def longest(self) -> float:
        """The most seconds per sample that were seen, here or in a trial; infinite where nothing was."""
        return max(self._pace, default=self._expected)

    def hanging(self, now: float) -> list[int]:
        """The workers that are to be given up."""
        return [worker for worker, held in self._held.items() if held and self._hangs(worker, held[0], now)]

    def _hangs(self, worker: int, shard: int, now: float) -> bool:
        """Measured by what others, it itself or a trial took; else by whether it gets through batches."""
        usual, since = self._patience.hanging * self.longest * self._samples[shard], self._since[worker]
        if isfinite(usual):
            return now - since > max(self._patience.least, usual)
        return now - max(since, self._moved.get(worker, since)) > self._patience.first


class Counted:
    """How many samples are done, where shards may be done twice, or again after a death."""

    def __init__(self, samples: Mapping[int, int]):
        self._samples = samples
        self._by_copy: dict[tuple[int, int], int] = {}
        self._shown = 0
        self._whole: set[int] = set()

    def moved(self, worker: int, shard: int, samples: int) -> None:
        """A worker did so many more samples of a shard."""
        key = (worker, shard)
        self._by_copy[key] = self._by_copy.get(key, 0) + samples

    def finished(self, shard: int) -> None:
        """The whole shard is done."""
        self._whole.add(shard)
        self._forget(key for key in list(self._by_copy) if key[1] == shard)

    def lost(self, worker: int) -> None:
        """What a worker had begun is lost."""
        self._forget(key for key in list(self._by_copy) if key[0] == worker)

    def _forget(self, keys: Iterable[tuple[int, int]]) -> None:
        for key in keys:
            del self._by_copy[key]

    def advance(self) -> int:
        """By how many samples more is done than when last asked; less, where a worker died."""
        best: dict[int, int] = {}
        for (_, shard), samples in self._by_copy.items():
            best[shard] = max(best.get(shard, 0), samples)
        done = sum(self._samples[shard] for shard in self._whole)
        done += sum(samples for shard, samples in best.items() if shard not in self._whole)
        moved, self._shown = done - self._shown, done
        return moved
