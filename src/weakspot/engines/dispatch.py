"""Hands the shards of one job to workers, fetches the results, and replaces workers that die or hang."""

import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf, isinf
from typing import Any

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.files import make_folder, writing
from weakspot.core.job import Job, Shard
from weakspot.core.progress import Progress
from weakspot.engines.crew import Crew, Member
from weakspot.engines.gathering import gather
from weakspot.engines.schedule import Counted, Patience, Schedule
from weakspot.engines.worker import News, ShardOutcome, Trouble

_TICK = 0.2
"""Seconds after which slow workers are looked for."""
_CALLS_A_SECOND = 100
"""News that the driver listens to at most, of all workers together."""
_SAY_AFTER = 20.0
"""Seconds without any worker after which it is said."""
_REST = 2.0
"""Seconds within which a worker must stop at what nobody waits for any longer."""
_REFUSED = 3
"""Workers that die before they answer, after which there is no point in hiring more."""


class Parcel:
    """What travels to each worker: model, data, and the job without them, each stored once for all."""

    def __init__(self, subject: tuple[str, Any], source: tuple[str, Any], shell: Any):
        self.subject, self.source, self.shell = subject, source, shell


class Dispatch:
    """The shards of one job, worked off by a crew of so many workers.

    discard: wait until all workers are there, and throw away what they make. known: seconds per sample of a trial.
    check: called now and then, to end it all.
    """

    def __init__(
        self,
        ray: Any,
        crew: Crew,
        parcel: Parcel,
        job: Job,
        shards: Sequence[Shard],
        progress: Progress,
        *,
        workers: int,
        patience: Patience,
        discard: bool = False,
        expected: float = inf,
        check: Callable[[], None] = lambda: None,
    ):
        self._ray, self._crew, self._parcel, self._job = ray, crew, parcel, job
        self._shards = {shard.number: shard for shard in shards}
        self._progress, self._workers, self._patience = progress, workers, patience
        self._discard, self._check = discard, check
        samples = {shard.number: shard.stop - shard.start for shard in shards}
        self.schedule, self._counted = Schedule(samples, patience, expected=expected), Counted(samples)
        self._waiting: dict[Any, tuple[Callable[..., None], Member, Any]] = {}
        """What was asked of workers: what to do with the answer, who gives it, and about what."""
        self._troubles: dict[int, Trouble] = {}
        self._said: set[Any] = set()
        self._probe = f".probe-{uuid.uuid4().hex[:12]}.partial"
        self._alone_since: float | None = None
        self._taking: dict[int, float] = {}
        """Since when workers are at taking what they were sent."""
        self.busy_seconds = 0.0
        """What workers spent on shards, all together."""

    def run(self) -> Trouble | None:
        """Work off all shards, up to the first that failed; the trouble with that one."""
        with self._probe_file():
            for member in list(self._crew.members.values()):
                self._prepare(member) if member.about else self._ask(self._answered, member, member.call("about"))
            while not self.schedule.done:
                self._fill_up()
                if not self._discard or self._all_ready():
                    for number, shard in self.schedule.assign(time.monotonic()):
                        self._hand_over(self._crew.members[number], self._shards[shard])
                self._listen()
                self._give_up_slow()
                self._progress.advance(self._counted.advance())
            self._come_to_rest()
        return self._troubles[min(self._troubles)] if self._troubles else None

    def _come_to_rest(self) -> None:
        """Let those who do copies of what is done stop at their next batch; who does not, is let go."""
        self._leave_off(self._shards)
        deadline = time.monotonic() + _REST
        while self.schedule.busy and time.monotonic() < deadline:
            self._listen()
        for number in self.schedule.busy:
            self._crew.dismiss(number)

    @contextmanager
    def _probe_file(self) -> Iterator[None]:
        """A file in the folder of the job, by which a worker sees that it can write there itself."""
        path = self._job.work / self._probe
        with writing(path):
            for index in range(len(self._job.probes)):
                make_folder(self._job.probe_folder(index))
            path.touch()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def _all_ready(self) -> bool:
        """Whether no worker is still to come."""
        return all(member.ready for member in self._crew.members.values())

    def _ask(self, then: Callable[..., None], member: Member, answer: Any, about: Any = None) -> None:
        self._waiting[answer] = (then, member, about)

    def _fill_up(self) -> None:
        """Hire as many as are missing, but no more than there are shards."""
        wanted = min(self._workers, len(self.schedule.left))
        while len(self._crew.members) < wanted:
            member = self._crew.hire()
            self._ask(self._answered, member, member.call("about"))

    def _listen(self) -> None:
        """Take in every answer that is there, after waiting a little for a first one."""
        self._check()
        asked = list(self._waiting)
        ready, _ = self._ray.wait(asked, num_returns=1, timeout=_TICK)
        if ready:
            ready, _ = self._ray.wait(asked, num_returns=len(asked), timeout=0)
        for answer in ready:
            then, member, about = self._waiting.pop(answer)
            if member.number not in self._crew.members:
                continue
            try:
                then(member, self._ray.get(answer), about)
            except self._ray.exceptions.RayTaskError as error:
                raise _refused(member, error) from error
            except (self._ray.exceptions.RayError, self._ray.exceptions.GetTimeoutError) as error:
                self._lost(member, error)
        self._say_if_alone()

    def _answered(self, member: Member, about: Any, _: Any) -> None:
        self._crew.answered(member, about)
        self._prepare(member)

    def _prepare(self, member: Member) -> None:
        """Send what the worker does not have yet; each call waits for those before."""
        for kind, (key, stored) in (("subject", self._parcel.subject), ("source", self._parcel.source)):
            if member.about.get(kind) != key:
                self._ask(self._ignored, member, member.call(f"take_{kind}", key, stored))
                member.about[kind] = key
        member.ready, self._taking[member.number] = False, time.monotonic()
        taken = member.call("take", self._parcel.shell, self._job.work, self._probe, self._discard)
        self._ask(self._ready, member, taken)

    def _ready(self, member: Member, direct: bool, _: Any) -> None:
        member.direct, member.ready = direct, True
        del self._taking[member.number]
        self.schedule.joins(member.number)
        self._ask_for_news(member)

    def _ask_for_news(self, member: Member) -> None:
        wait = max(_TICK, len(self._crew.members) / _CALLS_A_SECOND)
        self._ask(self._heard, member, member.talk("news", wait))

    def _ignored(self, member: Member, answer: Any, about: Any) -> None:
        """Nothing is to be done."""

    def _heard(self, member: Member, news: News, _: Any) -> None:
        for shard, samples in news.moved:
            self._counted.moved(member.number, shard, samples)
            self.schedule.moves(member.number, time.monotonic())
        self._pass_on(news)
        self._ask_for_news(member)

    def _pass_on(self, news: News) -> None:
        """Say what workers said and warned of, each once."""
        for message in news.said:
            if message not in self._said:
                self._said.add(message)
                self._progress.tell(message)
        for warned in news.warned:
            if warned not in self._said:
                self._said.add(warned)
                warnings.warn_explicit(*warned)

    def _hand_over(self, member: Member, shard: Shard) -> None:
        self._ask(self._done, member, member.call("work", shard, self._job.batch_size), shard)

    def _done(self, member: Member, outcome: ShardOutcome, shard: Shard) -> None:
        self._pass_on(outcome.news)
        self.busy_seconds += outcome.seconds
        self._job.batch_size = min(self._job.batch_size, outcome.batch_size)
        first = shard.number in self.schedule.left and not outcome.skipped
        if first and outcome.trouble is not None:
            self._troubles[shard.number] = outcome.trouble
            self._leave_off(self.schedule.drop_after(shard.number))
        elif first and not member.direct and not self._discard:
            gather(self._ray, member, self._job, shard, outcome)
        if not member.direct:
            self._ask(self._ignored, member, member.talk("drop", shard))
        self.schedule.finished(member.number, shard.number, time.monotonic(), skipped=outcome.skipped)
        if first:
            self._counted.finished(shard.number)
            self._leave_off([shard.number])

    def _leave_off(self, shards: Sequence[int] | dict[int, Shard]) -> None:
        """Tell those who still hold any of these shards that nobody waits for them."""
        for shard in shards:
            for number in list(self.schedule.copies(shard)):
                if number in self._crew.members:
                    self._crew.members[number].talk("forget", shard)

    def _lost(self, member: Member, error: Exception) -> None:
        """A worker died: what it held goes to others."""
        self._crew.dismiss(member.number)
        self.schedule.leaves(member.number)
        self._counted.lost(member.number)
        reason = str(error).strip().partition("\n")[0]
        if self._crew.refused >= _REFUSED:
            raise ConfigError(f"Ray's workers die before they answer: {reason}; is weakspot installed on every node?")
        shard = self.schedule.fatal()
        if shard is not None:
            raise self._blamed(self._shards[shard], reason)

    def _blamed(self, shard: Shard, reason: str) -> SubjectError:
        ids = self._job.source.ids
        return SubjectError(
            f"{self._patience.attempts} workers died or hung, one after another, at the samples from "
            f"{ids[shard.start]!r} to {ids[shard.stop - 1]!r}: {reason}; try these alone with the engine local, or "
            "give workers more memory"
        )

    def _give_up_slow(self) -> None:
        now = time.monotonic()
        for number in [*self.schedule.hanging(now), *self._never_ready(now)]:
            member = self._crew.members[number]
            node = member.about.get("node", "an unknown node")
            self.schedule.gives_up(number)
            if self.schedule.fruitless >= self._patience.attempts * self._workers:
                raise self._stuck(node)
            self._progress.tell(f"worker {member.number} on {node} hangs: another one takes its place")
            self._lost(member, TimeoutError("it took far longer than others did"))

    def _never_ready(self, now: float) -> list[int]:
        """Workers that hang where they take the model or the data."""
        there = self._crew.members
        self._taking = {number: since for number, since in self._taking.items() if number in there}
        return [number for number, since in self._taking.items() if now - since > self._patience.first]

    def _stuck(self, node: str) -> SubjectError:
        first = self._job.source.ids[self._shards[min(self.schedule.left)].start]
        waited = f"{self._patience.first:g} s" if isinf(self.schedule.longest) else "the time that a trial suggests"
        return SubjectError(
            f"{self.schedule.fruitless} workers hung before any shard was done, the last on {node}: expected a batch "
            f"of {self._job.batch_size} samples within {waited}, and none came; try the sample {first!r} with the "
            "engine local: if that hangs, too, it is the model or the data; if it is only slow, take smaller batches "
            "or more time with Patience(first=…); what was done before is kept"
        )

    def _say_if_alone(self) -> None:
        """Say that the cluster has no room, where no worker has answered for some time."""
        if any(member.about for member in self._crew.members.values()):
            self._alone_since = None
            return
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > _SAY_AFTER:
            self._alone_since = float("inf")
            each = f"{self._crew.cpus} CPU" + (f" and {self._crew.gpus:g} GPU" if self._crew.gpus else "")
            free = {kind: self._ray.available_resources().get(kind, 0) for kind in ("CPU", "GPU")}
            has = ", ".join(f"{amount:g} {kind}" for kind, amount in free.items())
            self._progress.tell(f"waiting for workers: each wants {each}, and the cluster has {has} to spare")


def _refused(member: Member, error: Any) -> Exception:
    """What to tell where a worker cannot take what it is sent; a defect of weakspot itself stays what it is."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ImportError | AttributeError):
        node = member.about.get("node", "a node")
        return ConfigError(
            f"the worker on {node} cannot load what it is sent: {cause}; install the same packages on every node"
        )
    return cause if isinstance(cause, Exception) else RuntimeError(str(error))
