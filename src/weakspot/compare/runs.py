"""Compares two Runs number by number, with intervals and verdicts: better, worse, or no difference shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.compare.flips import FlippedInputs, flips_of
from weakspot.compare.pairing import paired_columns, paired_mean_interval
from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.run import Run
from weakspot.rooms import QUESTIONS, named_groups
from weakspot.statistics.clustered import grouped_paired_interval
from weakspot.statistics.paired import paired_difference_interval

NO_DIFFERENCE = "no difference shown"
UNKNOWN = "no interval, so nothing is shown"
CORRECT = "correct"
"""The role of the column that says whether an input is predicted correctly."""
COMPLEMENT = "not "
"""Before the column of which a number is 1 less the mean."""


@dataclass(frozen=True)
class Difference:
    """One number of both Runs; `difference` is after − before, with its interval where there is one."""

    finding: str
    name: str
    before: float
    after: float
    difference: float
    low: float | None
    high: float | None
    confidence: float | None
    how: str
    column: str | None = None
    """The column whose rows are paired; None where two numbers of the summaries are compared."""
    higher_is_better: bool | None = None
    """As the Finding declares it; None where neither way is better."""
    inputs: int | None = None
    """How many inputs are paired."""
    unit: str = "number"
    """Of both numbers, as the Finding declares it."""

    def complement(self, name: str) -> "Difference":
        """The same of 1 less the number, under another name."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        better = None if self.higher_is_better is None else not self.higher_is_better
        change, values = -self.difference, (1 - self.before, 1 - self.after)
        turned = replace(self, name=name, before=values[0], after=values[1], difference=change)
        return replace(turned, low=low, high=high, higher_is_better=better)

    @property
    def verdict(self) -> str:
        """Better, worse, higher or lower where the interval shows it; else that no difference is shown."""
        if self.low is None or self.high is None:
            return UNKNOWN if self.difference else NO_DIFFERENCE
        if self.low <= 0 <= self.high:
            return NO_DIFFERENCE
        rose = self.low > 0
        if self.higher_is_better is None:
            return "higher" if rose else "lower"
        return "better" if rose is self.higher_is_better else "worse"


@dataclass(frozen=True)
class Comparison:
    """All differences between two Runs, and what to know of them."""

    differences: list[Difference]
    notes: list[str]
    main: list[Difference] = field(default_factory=list)
    """One for each fact that answers a question."""
    flips: FlippedInputs | None = None
    """Which inputs are predicted differently, where both Runs say which are correct."""

    def shown(self) -> list[Difference]:
        """Those whose interval excludes 0."""
        return [one for one in self.differences if one.verdict not in (NO_DIFFERENCE, UNKNOWN)]


def compare_runs(before: Run, after: Run, *, confidence: float = 0.95) -> Comparison:
    """Every number that both Runs have: paired by input where both have the inputs, else by their intervals alone."""
    asked = {name for run in (before, after) for name in run.manifest().get("asked") or run.names()}
    common = [name for name in before.names() if name in after and name in asked]
    if not common:
        raise DataError(
            f"{before.folder} and {after.folder} have no Finding in common: ask the same questions of both models"
        )
    pairs = {name: (before[name], after[name]) for name in sorted(common, key=_room)}
    found = {name: list(compare_findings(*pair, confidence=confidence)) for name, pair in pairs.items()}
    differences = list(_once(after, found))
    named = named_groups(before.names(), before.__getitem__)
    flips = (flips_of(*pair, confidence=confidence, named=named) for pair in pairs.values())
    return Comparison(
        differences,
        [*_notes(before, after, common), *_chance(differences, confidence)],
        main_differences({name: (pair[1], found[name]) for name, pair in pairs.items()}),
        next((one for one in flips if one is not None), None),
    )


def _room(finding: str) -> int:
    """The place of a Finding's question among all questions."""
    room, places = finding.partition(".")[0], list(QUESTIONS)
    return places.index(room) if room in places else len(places)


def main_differences(found: Mapping[str, tuple[Finding, list[Difference]]]) -> list[Difference]:
    """Of each question the numbers that its answer names, where one way is better and an interval says how sure.

    The same fact, such as the accuracy that several Findings give, comes once.
    """
    facts: dict[tuple[object, ...], Difference] = {}
    for room in QUESTIONS:
        of_room = [pair for name, pair in found.items() if name.partition(".")[0] == room]
        told = [(headline, *pair) for pair in of_room for headline in pair[0].answers()]
        for headline, finding, differences in sorted(told, key=lambda one: (one[0].further, one[0].rank))[:2]:
            for name in headline.names():
                one = difference_of(finding, name, differences)
                if one is not None and one.low is not None and one.higher_is_better is not None:
                    facts.setdefault((round(one.before, 9), round(one.after, 9), one.unit), one)
    return list(facts.values())


def difference_of(finding: Finding, name: str, differences: Sequence[Difference]) -> Difference | None:
    """The difference of a number of a summary; where it is the mean of a column, that of the paired column."""
    paired = {one.column: one for one in differences if one.column is not None}
    others = {one.name: one for one in differences if one.column is None}
    column = finding.outputs.number(name).mean_of
    if column.startswith(COMPLEMENT) and column.removeprefix(COMPLEMENT) in paired:
        return paired[column.removeprefix(COMPLEMENT)].complement(name)
    if column in paired:
        return replace(paired[column], name=name)
    return others.get(name)


def _once(after: Run, found: Mapping[str, list[Difference]]) -> Iterator[Difference]:
    """Every difference, each quantity once: which inputs are predicted correctly stands in several Findings."""
    told = set()
    for name, differences in found.items():
        outputs = after[name].outputs
        for one in differences:
            shared = one.column is not None and outputs.column(one.column).role == CORRECT
            same = replace(one, finding="")
            if not shared or same not in told:
                yield one
            if shared:
                told.add(same)


def compare_findings(before: Finding, after: Finding, *, confidence: float = 0.95) -> Iterator[Difference]:
    """Columns over the same inputs, paired; then the numbers of the summaries.

    A column may have the name of a number that is not its mean: it is then told as "score per input".
    """
    paired = set()
    for column, old, new, groups in paired_columns(before, after):
        paired.add(column)
        twice = column in before.summary and column in after.summary
        twice = twice and after.outputs.number(column).mean_of != column
        yield _paired(after, f"{column} per input" if twice else column, column, old, new, groups, confidence)
    for name in before.summary:
        if name in after.summary and after.outputs.number(name).mean_of.removeprefix(COMPLEMENT) not in paired:
            yield from _unpaired(after, name, before.summary[name], after.summary[name])


def _paired(
    finding: Finding,
    name: str,
    column: str,
    old: np.ndarray,
    new: np.ndarray,
    groups: np.ndarray | None,
    confidence: float,
) -> Difference:
    if groups is not None:
        ends = grouped_paired_interval(old, new, groups, confidence=confidence)
    else:
        interval = paired_difference_interval if old.dtype == bool else paired_mean_interval
        ends = interval(old, new, confidence=confidence)
    low, high = map(float, ends)
    before, after = float(old.mean()), float(new.mean())
    of_groups = "" if groups is None else f" of {len(np.unique(groups)):,} groups"
    how, declared = f"paired over {len(old):,} inputs{of_groups}", finding.outputs.column(column)
    change, unit = after - before, "share" if old.dtype == bool else declared.unit
    better = declared.higher_is_better
    return Difference(
        finding.name, name, before, after, change, low, high, confidence, how, column, better, len(old), unit
    )


def _unpaired(finding: Finding, name: str, old: Estimate, new: Estimate) -> Iterator[Difference]:
    """The difference of two estimates; its interval is the widest that their two intervals allow (conservative)."""
    if not _number(old.value) or not _number(new.value):
        return
    before, after = float(old.value or 0), float(new.value or 0)
    low, high, confidence, how = None, None, None, "two numbers"
    if None not in (old.low, old.high, new.low, new.high) and old.confidence == new.confidence:
        low, high = float(new.low or 0) - float(old.high or 0), float(new.high or 0) - float(old.low or 0)
        confidence, how = old.confidence, "two intervals, not paired"
    declared = finding.outputs.number(name)
    better, unit = declared.higher_is_better, declared.unit
    yield Difference(
        finding.name, name, before, after, after - before, low, high, confidence, how, None, better, unit=unit
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _notes(before: Run, after: Run, common: list[str]) -> list[str]:
    """What a reader must know before believing a difference."""
    notes = []
    one, other = (run.manifest()["subject"].get("fingerprint") for run in (before, after))
    if one and one == other:
        notes.append("both Runs are of the same model")
    other_data = [name for name in common if before[name].provenance.get("data") != after[name].provenance.get("data")]
    if other_data:
        notes.append(f"not of the same data: {', '.join(other_data)}; what is paired is paired by the ids in both")
    settings = [name for name in common if _settings(before[name]) != _settings(after[name])]
    if settings:
        notes.append(f"not computed with the same settings: {', '.join(settings)}")
    return notes


def _settings(finding: Finding) -> dict[str, object]:
    """The parameters but for digests of other Findings, which differ with the model."""
    parameters = finding.provenance.get("parameters", {})
    return {name: value for name, value in parameters.items() if not (isinstance(value, str) and len(value) == 64)}


def _chance(differences: list[Difference], confidence: float) -> list[str]:
    tested = sum(one.low is not None for one in differences)
    if tested < 2:
        return []
    share = 1 - confidence
    return [f"{tested} differences are tested: where none is, about {tested * share:.1f} would be shown by chance"]
