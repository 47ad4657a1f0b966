"""What differs between two Runs, with intervals; where an interval holds 0, no difference is shown."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weakspot.comparing.pairing import paired_columns, paired_mean_interval
from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.run import Run
from weakspot.statistics.paired import paired_difference_interval

NO_DIFFERENCE = "no difference shown"
UNKNOWN = "no interval, so nothing is shown"
HIGHER_IS_BETTER = {
    **dict.fromkeys(("right", "accuracy", "consistency", "worst_accuracy", "f1", "dice", "auroc"), True),
    **dict.fromkeys(("weak", "wrong", "weak_share", "error_share", "weakest_share", "largest_difference"), False),
}
"""Numbers and columns of which it is known which way is better; of others it is only said which way they went."""
SHARE_OF = {"weak_share": "weak", "error_share": "wrong", "accuracy": "right"}
"""Numbers that are the share of a column: where the column is paired, they are not compared again."""


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
    """The column whose rows are paired; none where two numbers of the summaries are compared."""

    @property
    def verdict(self) -> str:
        """Better, worse, higher or lower where the interval shows it; else that no difference is shown."""
        if self.low is None or self.high is None:
            return UNKNOWN if self.difference else NO_DIFFERENCE
        if self.low <= 0 <= self.high:
            return NO_DIFFERENCE
        better = HIGHER_IS_BETTER.get(self.column or self.name)
        rose = self.low > 0
        return ("higher" if rose else "lower") if better is None else "better" if rose is better else "worse"


@dataclass(frozen=True)
class Comparison:
    """All differences between two Runs, and what to know of them."""

    differences: list[Difference]
    notes: list[str]

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
    differences = [one for name in common for one in compare_findings(before[name], after[name], confidence=confidence)]
    return Comparison(differences, [*_notes(before, after, common), *_chance(differences, confidence)])


def compare_findings(before: Finding, after: Finding, *, confidence: float = 0.95) -> Iterator[Difference]:
    """Columns over the same inputs, paired; then the numbers of the summaries.

    A column may be called like a number that means something else, as the accuracy over an input's neighbours is like
    that of the inputs as they are: it is then told as "accuracy per input".
    """
    paired = set()
    for column, old, new in paired_columns(before, after):
        paired.add(column)
        twice = column in before.summary and column in after.summary
        yield _paired(before.name, f"{column} per input" if twice else column, column, old, new, confidence)
    for name in before.summary:
        if name in after.summary and SHARE_OF.get(name) not in paired:
            yield from _unpaired(before.name, name, before.summary[name], after.summary[name])


def _paired(finding: str, name: str, column: str, old: np.ndarray, new: np.ndarray, confidence: float) -> Difference:
    interval = paired_difference_interval if old.dtype == bool else paired_mean_interval
    low, high = interval(old, new, confidence=confidence)
    before, after = float(old.mean()), float(new.mean())
    how = f"paired over {len(old):,} inputs"
    return Difference(finding, name, before, after, after - before, float(low), float(high), confidence, how, column)


def _unpaired(finding: str, name: str, old: Estimate, new: Estimate) -> Iterator[Difference]:
    """The difference of two estimates; its interval is the widest that their two intervals allow (conservative)."""
    if not _number(old.value) or not _number(new.value):
        return
    before, after = float(old.value or 0), float(new.value or 0)
    low, high, confidence, how = None, None, None, "two numbers"
    if None not in (old.low, old.high, new.low, new.high) and old.confidence == new.confidence:
        low, high = float(new.low or 0) - float(old.high or 0), float(new.high or 0) - float(old.low or 0)
        confidence, how = old.confidence, "two intervals, not paired"
    yield Difference(finding, name, before, after, after - before, low, high, confidence, how)


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
    given = finding.provenance.get("parameters", {})
    return {name: value for name, value in given.items() if not (isinstance(value, str) and len(value) == 64)}


def _chance(differences: list[Difference], confidence: float) -> list[str]:
    tested = sum(one.low is not None for one in differences)
    if tested < 2:
        return []
    share = 1 - confidence
    return [f"{tested} differences are tested: where none is, about {tested * share:.1f} would be shown by chance"]
