"""How many threads torch computes with: sums over large arrays may differ in the last bit with their number.

An interrupted run resumes with as many threads as it began with, on any machine.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import torch

from weakspot.core.files import make_folder, write_text, writing
from weakspot.core.guarded_open import read_json
from weakspot.core.job import Execution

_NOTE = "execution.json"


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads; None for as many as it is."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def settled(execution: Execution, work: Path, usual: int) -> Execution:
    """The execution with a number of threads: as asked for, else as the work was begun, else as usual; it is noted."""
    threads = execution.threads or begun_with(work) or usual
    if begun_with(work) != threads:
        with writing(work):
            make_folder(work)
        write_text(work / _NOTE, json.dumps({"threads": threads}))
    return replace(execution, threads=threads)


def begun_with(work: Path) -> int | None:
    """The number of threads with which work was begun that is not finished yet."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        threads = read_json(work / _NOTE, links=False)["threads"]
        return threads if isinstance(threads, int) and threads > 0 else None
    return None
