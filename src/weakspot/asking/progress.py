"""A progress bar with rate and time left, on standard error."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


class Bar:
    """Draws one bar per pass over the data."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """A new bar; what an earlier run finished is counted as done."""
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=sys.stderr),
        )
        self._task = self._progress.add_task(what, total=total, completed=done)
        self._progress.start()

    def advance(self, samples: int) -> None:
        """Move on."""
        assert self._progress is not None, "a pass begins first"
        self._progress.advance(self._task, samples)

    def tell(self, message: str) -> None:
        """Say it above the bar, or alone where there is none yet."""
        console = Console(file=sys.stderr) if self._progress is None else self._progress.console
        console.print(f"weakspot: {message}", markup=False, highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Leave the bar as it is."""
        if self._progress is not None:
            self._progress.stop()
