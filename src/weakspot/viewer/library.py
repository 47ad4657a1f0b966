"""The Runs that are shown, and which of them a request means."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Query, Request

from weakspot.core.run import Run
from weakspot.viewer.reading import NotThereError, RunReader, WatchedRun

MOST_RUNS = 2


class Library:
    """One Run, or two side by side."""

    def __init__(self, runs: Sequence[str | Path | Run]):
        self._watched = [WatchedRun(run if isinstance(run, Run) else Run.open(run)) for run in runs]

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def names(self) -> list[str]:
        """What the Runs are called."""
        return [watched.run.folder.resolve().name for watched in self._watched]

    @property
    def readers(self) -> list[RunReader]:
        """The Runs as they are now; take them once, so that all of an answer is of one moment."""
        return [watched.now() for watched in self._watched]

    def run(self, number: int) -> RunReader:
        """One of them as it is now, by its number from 0 on."""
        if not 0 <= number < len(self._watched):
            raise NotThereError(f"there is no run {number}: expected 0 to {len(self._watched) - 1}")
        return self._watched[number].now()


RunNumber = Annotated[int, Query(alias="run", ge=0, lt=MOST_RUNS, description="Which of the Runs that are shown.")]


def chosen_run(request: Request, run: RunNumber = 0) -> RunReader:
    """The Run that a request asks for."""
    library: Library = request.app.state.library
    return library.run(run)


Chosen = Annotated[RunReader, Depends(chosen_run)]
