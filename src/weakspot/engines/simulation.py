"""Simulates how long a run would take on many workers, with the engine's own schedule.

The driver serves one event at a time: it hands out a shard, takes in that one is done, fetches its rows where the
worker cannot write to the Run itself. When all are there, it merges them one after another.
"""

import heapq
from dataclasses import dataclass
from math import inf

import numpy as np

from weakspot.engines.schedule import Patience, Schedule

_TICK = 0.2
"""Seconds after which the driver looks again for shards that take too long."""


@dataclass(frozen=True)
class Costs:
    """What was measured, in seconds unless it says otherwise.

    sample: of one worker for one sample, all looks and questions together.
    event: of the driver's processor for one shard, from handing it out to taking it in.
    latency: until a message arrives.
    row_bytes: that are kept per sample.
    bandwidth: bytes per second at which they are fetched, 0 for not at all.
    merge: of the driver for each shard at the end.
    spread: by how much the times of shards differ, as a share of their mean.
    """

    sample: float
    event: float
    latency: float
    row_bytes: float = 0.0
    bandwidth: float = 0.0
    merge: float = 0.0
    spread: float = 0.0

    def fetching(self, samples: int) -> float:
        """Seconds to fetch the rows of so many samples."""
        return self.row_bytes * samples / self.bandwidth if self.bandwidth else 0.0


@dataclass(frozen=True)
class Simulated:
    """How long a run takes, and who was busy for which share of that time until the last shard was in."""

    seconds: float
    ideal: float
    worker_share: float
    driver_share: float
    merging: float

    @property
    def efficiency(self) -> float:
        """What the time would be if nothing but the work itself took any, divided by what it is."""
        return self.ideal / self.seconds

    @property
    def limit(self) -> str:
        """What keeps it from being faster, or from ending."""
        if self.seconds == inf:
            return "workers that hang"
        if self.driver_share > 0.9:
            return "the driver"
        if self.merging > 0.2 * self.seconds:
            return "merging at the end"
        return "too few shards" if self.efficiency < 0.9 else "the work"


def simulate(
    samples: int,
    shard_size: int,
    workers: int,
    costs: Costs,
    *,
    patience: Patience | None = None,
    seed: int = 0,
    stuck: int = 0,
) -> Simulated:
    """Work off so many samples with so many workers of equal speed; the first `stuck` that come hang for ever."""
    sizes = {
        number: min(shard_size, samples - start) for number, start in enumerate(range(0, samples, shard_size))
    }  # fmt: skip
    clock = _Clock(sizes, workers, costs, patience or Patience(), np.random.default_rng(seed), stuck)
    last = clock.run()
    merging = costs.merge * len(sizes)
    work = costs.sample * samples
    return Simulated(last + merging, work / workers, clock.worked / (workers * last), clock.served / last, merging)


class _Clock:
    """The run itself: workers need no word from the driver between shards that they were handed."""

    def __init__(
        self,
        sizes: dict[int, int],
        workers: int,
        costs: Costs,
        patience: Patience,
        chance: np.random.Generator,
        stuck: int,
    ):
        self._sizes, self._costs, self._chance = sizes, costs, chance
        self._schedule, self._hopeless = Schedule(sizes, patience), patience.attempts * workers
        self._stuck, self._next = stuck, workers
        """Workers of lower numbers hang; the number of the next who comes."""
        self._free = dict.fromkeys(range(workers), 0.0)
        """When each worker is through with all that it was handed."""
        self._done: list[tuple[float, int, int]] = []
        """When the word of a worker that a shard is done reaches the driver."""
        self.worked = self.served = 0.0
        for worker in range(workers):
            self._schedule.joins(worker)

    def run(self) -> float:
        """The time at which the last shard is in; never, where worker after worker hangs."""
        now = 0.0
        self._hand_out(now)
        while not self._schedule.done:
            while self._waits(now):
                now += _TICK  # the driver looks for slow workers now and then
                self._replace_hanging(now)
                if self._schedule.fruitless >= self._hopeless:
                    return inf
                self._hand_out(now)
            arrived, worker, shard = heapq.heappop(self._done)
            first = shard in self._schedule.left
            serving = self._costs.event + (self._costs.fetching(self._sizes[shard]) if first else 0.0)
            now, self.served = max(now, arrived) + serving, self.served + serving
            self._schedule.finished(worker, shard, now, skipped=not first)
            self._hand_out(now)
        return now

    def _waits(self, now: float) -> bool:
        """Whether nothing arrives soon, and the driver may find something to do meanwhile."""
        if not self._done:
            return True
        idle = len(self._schedule.busy) < len(self._free)
        return self._done[0][0] > now + _TICK and (idle or min(self._free) < self._stuck)

    def _replace_hanging(self, now: float) -> None:
        for worker in self._schedule.hanging(now) if min(self._free) < self._stuck else ():
            if worker < self._stuck:  # the others get through batches, of which the simulation knows nothing
                self._schedule.gives_up(worker)
                del self._free[worker]
                self._schedule.joins(self._next)
                self._free[self._next] = now
                self._next += 1

    def _hand_out(self, now: float) -> None:
        for worker, shard in self._schedule.assign(now):
            if worker < self._stuck:
                continue
            took = self._costs.sample * self._sizes[shard] * self._factor()
            self._free[worker] = max(now + self._costs.latency, self._free[worker]) + took
            self.worked += took
            heapq.heappush(self._done, (self._free[worker] + self._costs.latency, worker, shard))

    def _factor(self) -> float:
        """By how much the time of a shard differs from the mean: log-normal, of mean 1."""
        sigma = float(np.sqrt(np.log1p(self._costs.spread**2)))
        return float(self._chance.lognormal(-(sigma**2) / 2, sigma)) if sigma else 1.0
