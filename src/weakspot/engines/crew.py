"""The workers of a Ray engine: Ray actors, each with a copy of the model; started, replaced and stopped."""

import shutil
import socket
from dataclasses import dataclass, field
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.job import versions
from weakspot.engines.worker import Worker

_TALKING = "talk"
"""Methods of this group are answered while a shard is being done."""


@dataclass
class Member:
    """One worker as the driver sees it."""

    number: int
    actor: Any
    about: dict[str, Any] = field(default_factory=dict)
    """Where it runs; nothing until it has answered."""
    ready: bool = False
    """Whether it has all that it needs for the current job."""
    direct: bool = False
    """Whether it writes to the Run's folder itself."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Begin a call, in turn with the shards."""
        return getattr(self.actor, method).remote(*arguments)

    def talk(self, method: str, *arguments: Any) -> Any:
        """Begin a call that is answered beside the shards."""
        return getattr(self.actor, method).options(concurrency_group=_TALKING).remote(*arguments)


class Crew:
    """Actors on a cluster that compute on `device`; Ray keeps so many cores and GPUs, or parts of one, for each."""

    def __init__(self, ray: Any, *, cpus: int, gpus: float, device: str):
        self._ray, self.cpus, self.gpus, self.device = ray, cpus, gpus, device
        self.members: dict[int, Member] = {}
        self._hired = 0
        self.refused = 0
        """Workers that died before they ever answered."""
        resources = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self._kind = ray.remote(concurrency_groups={_TALKING: 2}, **resources)(Worker)

    def hire(self) -> Member:
        """One more worker; it takes some seconds until it answers."""
        self._hired += 1
        member = Member(self._hired, self._kind.remote(self.device))
        self.members[member.number] = member
        return member

    def answered(self, member: Member, about: dict[str, Any]) -> None:
        """A worker is there; refuse one that computes with something else than this process does."""
        other = {name: got for name, got in about["versions"].items() if versions().get(name) != got}
        if other:
            wanted = ", ".join(f"{name} {versions()[name]}" for name in other)
            got = ", ".join(f"{name} {number}" for name, number in other.items())
            raise ConfigError(
                f"the worker on {about['node']} has {got}, and here is {wanted}: results would depend on who makes "
                "them; install the same versions on every node"
            )
        member.about, self.refused = about, 0

    def dismiss(self, number: int) -> None:
        """End a worker, whatever it is doing."""
        member = self.members.pop(number, None)
        if member is None:
            return
        self.refused += not member.about
        self._ray.kill(member.actor)
        if member.about.get("node") == socket.gethostname():
            shutil.rmtree(member.about["scratch"], ignore_errors=True)

    def dismiss_all(self) -> None:
        """End all workers."""
        for number in list(self.members):
            self.dismiss(number)

    def memory(self) -> tuple[int, int | None]:
        """The most memory that any worker had, in bytes: its own, and on its GPU if it has one."""
        there = [member.talk("memory") for member in self.members.values() if member.about]
        answers = self._ray.get(there)
        on_gpus = [gpu for _, gpu in answers if gpu is not None]
        return max((bytes_used for bytes_used, _ in answers), default=0), max(on_gpus, default=None)
