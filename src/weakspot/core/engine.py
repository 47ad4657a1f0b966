"""Engines: who works off the shards. Probes and results do not depend on it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from weakspot.core.job import Shard
from weakspot.core.progress import Progress

Work = Callable[[Shard, Progress], None]
"""Examines one shard and leaves its folders behind, whole or not at all. Can be pickled and run in another process."""


class Engine(Protocol):
    """Runs `work` on every shard, in any order and anywhere; returns when all their folders are there."""

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        """Work off the shards."""


class LocalEngine:
    """This process, one shard after another; reading ahead happens in threads within the shard."""

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        """Work off the shards."""
        for shard in shards:
            work(shard, progress)
