"""Many Runs over time: of each the numbers that answer its questions, and what became of the inputs since the last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from weakspot.compare.flips import FlippedInputs, flips_of
from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.run import MANIFEST, Run
from weakspot.rooms import QUESTIONS


@dataclass(frozen=True)
class Milestone:
    """One Run among others."""

    run: Run
    written: datetime
    numbers: dict[tuple[str, str], tuple[Estimate, str]]
    """Each number with its unit, by the Finding and its name."""
    flips: FlippedInputs | None
    """What became of the inputs since the Run before, where both have the same."""


def history(runs: Sequence[Run]) -> list[Milestone]:
    """The Runs in the order in which they were written."""
    if len(runs) < 2:
        raise DataError("a history needs two Runs or more: give several folders")
    dated = sorted(((written(run), run) for run in runs), key=lambda pair: (pair[0], str(pair[1].folder)))
    made: list[Milestone] = []
    for date, run in dated:
        before = made[-1].run if made else None
        made.append(Milestone(run, date, dict(_answering(run)), None if before is None else _flips(before, run)))
    return made


def written(run: Run) -> datetime:
    """When the Run was last written, by its manifest on this disk."""
    return datetime.fromtimestamp((run.folder / MANIFEST).stat().st_mtime, UTC)


def _answering(run: Run) -> Iterator[tuple[tuple[str, str], tuple[Estimate, str]]]:
    """The numbers with a better way that the answers name, question by question."""
    for room in QUESTIONS:
        heads = [run.head(name) for name in run.names() if name.partition(".")[0] == room]
        told = [(one, head) for head in heads for one in head.answers()]
        for headline, head in sorted(told, key=lambda pair: (pair[0].further, pair[0].rank))[:1]:
            for name in headline.names():
                declared = head.outputs.number(name)
                if declared.higher_is_better is not None:
                    yield (head.name, name), (head.summary[name], declared.unit)


def _flips(before: Run, after: Run) -> FlippedInputs | None:
    return next((one for name in _rows(before, after) if (one := flips_of(before[name], after[name]))), None)


def _rows(before: Run, after: Run) -> list[str]:
    """The Findings of both that say of each input whether it is correct."""

    def says(finding: Finding) -> bool:
        return any(spec.role == "correct" for spec in finding.outputs.columns.values())

    common = [name for name in after.names() if name in before and says(after.head(name))]
    return sorted(common, key=lambda name: (name.partition(".")[0] != "performance", name))
