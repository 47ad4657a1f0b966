"""Fetching what workers made where they cannot write to the Run: in pieces, a few at a time, whole or not at all."""

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from weakspot.core.files import whole_folder, writing
from weakspot.core.job import Job, Shard
from weakspot.engines.crew import Member
from weakspot.engines.worker import ShardOutcome

PIECE = 4 << 20
"""Bytes that are fetched at once."""
AT_ONCE = 4
"""Pieces on their way at the same time: so much of the driver's memory is taken, whatever a shard weighs."""
_PATIENCE = 120.0
"""Seconds to wait for a piece before its worker is given up."""


def gather(ray: Any, member: Member, job: Job, shard: Shard, outcome: ShardOutcome) -> None:
    """Bring the files of a shard into the job's folder, where it appears whole or not at all."""
    with ExitStack() as stack:
        targets = {index: job.shard_folder(index, shard.number) for index in shard.missing}
        folders = {index: stack.enter_context(whole_folder(to, first_wins=True)) for index, to in targets.items()}
        for index, name, _ in outcome.files:
            with writing(folders[index]):
                (folders[index] / name).touch()
        for index, name, piece in _fetched(ray, member, shard.number, outcome):
            with writing(folders[index]), (folders[index] / name).open("ab") as file:
                file.write(piece)


def _fetched(ray: Any, member: Member, shard: int, outcome: ShardOutcome) -> Iterator[tuple[int, str, bytes]]:
    """The pieces of all files, in order."""
    wanted = (
        (index, name, offset)
        for index, name, size in outcome.files
        for offset in range(0, size, PIECE)
    )  # fmt: skip
    coming: deque[tuple[int, str, Any]] = deque()
    for index, name, offset in wanted:
        coming.append((index, name, member.talk("read", index, shard, name, offset, PIECE)))
        if len(coming) == AT_ONCE:
            yield _arrived(ray, *coming.popleft())
    while coming:
        yield _arrived(ray, *coming.popleft())


def _arrived(ray: Any, index: int, name: str, piece: Any) -> tuple[int, str, bytes]:
    return index, name, ray.get(piece, timeout=_PATIENCE)
