"""A Run with what people do with it: report, viewer, tables, figures, comparison, gate. Read without torch."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Finding
from weakspot.core.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from weakspot.compare import Comparison
    from weakspot.gate.evaluation import Verdict
    from weakspot.report.drawings import DrawnFigure

FigureFormat = Literal["svg", "png", "pdf"]


class Answers(Run):
    """A Run, with what can be done with its Findings: `Answers.open(folder)` reads any Run.

    `answers["causes.root_causes"]` is a Finding, `answers.names()` lists them, and a loop goes over all.
    """

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, one HTML file, by default `report.html` in the Run; gives back where it lies."""
        from weakspot.report.html import write_report

        return write_report(self, self.folder / "report.html" if path is None else Path(path))

    def view(
        self,
        other: "Run | str | Path | None" = None,
        *,
        port: int = 8765,
        host: str = "127.0.0.1",
        browser: bool = True,
    ) -> None:
        """Show the Run in the browser until Ctrl-C, or the kernel's stop; with another Run, both side by side."""
        folders = [self.folder] if other is None else [self.folder, _opened(other).folder]
        viewer_module().serve(folders, host=host, port=port, browser=browser, say=print)

    def compare(self, other: "Run | str | Path", *, confidence: float = 0.95) -> "Comparison":
        """What changed from this Run to another one, input by input where both have the inputs."""
        from weakspot.compare import compare_runs

        return compare_runs(self, _opened(other), confidence=confidence)

    def gate(self, policy: str | Path, *, baseline: "Run | str | Path | None" = None) -> "Verdict":
        """The Run checked against the rules of a policy file; `passed` of the verdict says whether all hold."""
        from weakspot.gate.evaluation import judge
        from weakspot.gate.policy import read_policy

        return judge(self, read_policy(Path(policy)), None if baseline is None else _opened(baseline))

    def figures(self, folder: str | Path, *, format: FigureFormat = "svg") -> list[Path]:
        """Write every figure of the report as a file of its own; PNG and PDF need the package cairosvg.

        A figure of several panels gives several files. They are named after their Finding, with a number.
        """
        from weakspot.report.figure_files import write_figures

        return write_figures(((finding.name, drawn) for finding, drawn in self._drawn()), Path(folder), format)

    def to_pandas(self, name: str | None = None) -> "pd.DataFrame":
        """The table of a Finding as a frame; without a name all numbers of all Findings, a row each. Needs pandas."""
        pandas = _pandas()
        if name is not None:
            table = self[name].table
            if table is None:
                raise RunError(f"{name} has no table: to_pandas() without a name gives the numbers of all Findings")
            return table.to_pandas()
        numbers = [
            {"finding": name, "number": number, **vars(estimate)}
            for name in self.names()
            for number, estimate in self.head(name).summary.items()
        ]
        return pandas.DataFrame(numbers, columns=["finding", "number", "value", "low", "high", "confidence", "about"])

    def _drawn(self) -> "Iterator[tuple[Finding, DrawnFigure]]":
        from weakspot.report.drawings import figures

        classes = [str(name) for name in self.manifest()["subject"].get("classes") or []]
        return ((finding, drawn) for finding in self for drawn in figures(finding, classes) if drawn.svg)

    def _repr_html_(self) -> str:
        """What a notebook shows: the questions with their answers, and what Findings there are."""
        from weakspot.report.headlines import answer, by_room

        asked = self.manifest().get("asked", [])
        heads = [self.head(name) for name in self.names()]
        sentences = [
            f"<p><b>{escape(one.question)}</b><br>{escape(''.join(part.text for part in one.sentence))}</p>"
            for one in (answer(room, found) for room, found in by_room(heads).items())
        ]
        names = "".join(
            f"<li>{'<b>' if head.name in asked else ''}<code>{escape(head.name)}</code>"
            f"{'</b>' if head.name in asked else ''} {escape(head.about)}</li>"
            for head in heads
        )
        return f"<p>{escape(repr(self))}</p>{''.join(sentences)}<ul>{names}</ul>"


def viewer_module() -> ModuleType:
    """What serves Runs to a browser, where its packages are installed."""
    try:
        from weakspot.viewer import serving
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise ConfigError(f"the viewer needs {error.name}: pip install 'weakspot[viewer]'") from error
    return serving


def _opened(run: "Run | str | Path") -> Run:
    return run if isinstance(run, Run) else Run.open(run)


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ConfigError(
            "to_pandas needs pandas: pip install 'weakspot[pandas]'; without it, run[name].table is an Arrow table"
        ) from error
    return pandas
