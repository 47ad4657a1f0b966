"""How many threads torch uses, pinned for a Run: sums over large arrays differ in the last bit with their number.

An interrupted run resumes with as many threads and the same batch size as it began with, on any machine.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import torch

from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.files import make_folder, write_text, writing
from weakspot.core.guarded_open import read_json

_NOTE = "execution.json"
_PINNED = ("threads", "batch_size")


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


def pinned(options: ExecutionOptions, work: Path, usual_threads: int) -> ExecutionOptions:
    """The options with threads and batch size as asked for, else as the work was begun; and then threads as usual."""
    begun = begun_with(work)
    return replace(
        options,
        threads=options.threads or begun.get("threads") or usual_threads,
        batch_size=options.batch_size or begun.get("batch_size"),
    )


def note_begun(work: Path, options: ExecutionOptions) -> None:
    """Note threads and batch size of the work, so that it gives the same bytes when resumed on another machine."""
    note = {name: getattr(options, name) for name in _PINNED}
    if begun_with(work) != note:
        with writing(work):
            make_folder(work)
        write_text(work / _NOTE, json.dumps(note))


def begun_with(work: Path) -> dict[str, int]:
    """The numbers with which work was begun that is not finished yet; one that cannot be read was never noted."""
    with suppress(OSError, ValueError):
        note = read_json(work / _NOTE, links=False)
        numbers = {name: note.get(name) for name in _PINNED} if isinstance(note, dict) else {}
        return {name: number for name, number in numbers.items() if type(number) is int and number > 0}
    return {}
