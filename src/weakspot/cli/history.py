"""What `weakspot history` prints: a line for each Run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weakspot.compare.history import Milestone

if TYPE_CHECKING:
    from weakspot.gate.evaluation import Verdict

_MOST_NUMBERS = 5


def history_entries(made: Sequence[Milestone], verdicts: "Sequence[Verdict | None]") -> list[dict[str, Any]]:
    """For programs: every Run with its numbers, what was fixed and broken since the one before, and the verdict."""
    return [
        {
            "run": str(one.run.folder),
            "model": one.run.manifest()["subject"].get("model"),
            "fingerprint": one.run.manifest()["subject"].get("fingerprint"),
            "written": one.written.isoformat(timespec="seconds"),
            "numbers": {f"{finding}.{name}": estimate.value for (finding, name), (estimate, _) in one.numbers.items()},
            "fixed": None if one.flips is None else len(one.flips.fixed),
            "broken": None if one.flips is None else len(one.flips.broken),
            "passed": None if verdict is None else verdict.passed,
        }
        for one, verdict in zip(made, verdicts, strict=True)
    ]


def print_history(made: Sequence[Milestone], verdicts: "Sequence[Verdict | None]") -> None:
    """For people: a table with the numbers that most of the Runs have."""
    from weakspot.cli.printing import print_table
    from weakspot.formatting import label, roughly, short, value_text

    keys = _shown_numbers(made)

    def shown(one: Milestone, key: tuple[str, str]) -> str:
        if key not in one.numbers:
            return "–"
        estimate, unit = one.numbers[key]
        return roughly(float(estimate.value or 0)) if unit == "share" else value_text(estimate.value)

    rows = []
    for one, verdict in zip(made, verdicts, strict=True):
        subject = one.run.manifest()["subject"]
        flipped = ["–", "–"] if one.flips is None else [str(len(part)) for part in (one.flips.fixed, one.flips.broken)]
        gate = [] if verdict is None else [_gate(verdict)]
        name = f"{subject.get('model') or 'unnamed'} {short(subject.get('fingerprint') or '')[:6]}"
        written = f"{one.written:%Y-%m-%d %H:%M}"
        rows.append([one.run.folder.name, name, written, *(shown(one, key) for key in keys), *flipped, *gate])
    gate_head = ["gate"] if any(verdicts) else []
    print_table(
        ["run", "model", "written (UTC)", *(label(name) for _, name in keys), "fixed", "broken", *gate_head], rows
    )


def _shown_numbers(made: Sequence[Milestone]) -> list[tuple[str, str]]:
    """The numbers that most of the Runs have; one that equals another of its name everywhere comes once."""
    every = list(dict.fromkeys(key for one in made for key in one.numbers))

    def values(key: tuple[str, str]) -> tuple[object, ...]:
        return (key[1], *(one.numbers[key][0].value if key in one.numbers else None for one in made))

    once = [key for place, key in enumerate(every) if values(key) not in map(values, every[:place])]
    return sorted(once, key=lambda key: -sum(key in one.numbers for one in made))[:_MOST_NUMBERS]


def _gate(verdict: "Verdict") -> str:
    """Passed, or how many rules do not hold."""
    if verdict.passed:
        return "passed"
    undecided = sum(not one.decided for one in verdict.failed)
    broken = len(verdict.failed) - undecided
    parts = [*([f"{broken} of {len(verdict.judged)} do not hold"] if broken else [])]
    return ", ".join([*parts, *([f"{undecided} cannot be told"] if undecided else [])])
