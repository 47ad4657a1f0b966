"""Rules held against a Run: what was measured, and whether it keeps to the rule."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from weakspot.comparing.runs import HIGHER_IS_BETTER, SHARE_OF, Difference, compare_findings
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.options import nearest
from weakspot.core.run import Run
from weakspot.gate.causes import new_causes
from weakspot.gate.policy import COVERAGE, Policy, Rule

NO_VERDICT = "coverage is no verdict by itself: do not read it as one"


@dataclass(frozen=True)
class Judged:
    """One rule with what was measured."""

    rule: Rule
    passed: bool
    told: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """All rules of a policy, held against a Run."""

    run: str
    policy: str
    subject: Mapping[str, Any]
    judged: list[Judged]

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(one.passed for one in self.judged)

    @property
    def failed(self) -> list[Judged]:
        """The rules that do not hold."""
        return [one for one in self.judged if not one.passed]


def judge(run: Run, policy: Policy, baseline: Run | None = None) -> Verdict:
    """Hold every rule against a Run; `baseline` takes the place of the one that the policy names."""
    compared = baseline or (None if policy.baseline is None else Run.open(policy.baseline))
    subject = run.manifest()["subject"]
    judged = [_judged(rule, number, run, compared, policy) for number, rule in enumerate(policy.rules)]
    return Verdict(str(run.folder), policy.places.name, subject, judged)


def _judged(rule: Rule, number: int, run: Run, baseline: Run | None, policy: Policy) -> Judged:
    """One rule; what the policy names and the Run has not is an error of the policy, with its line."""
    warnings = (NO_VERDICT,) if rule.finding.startswith(COVERAGE) else ()
    if rule.exists and (rule.finding not in run or rule.number not in run[rule.finding].summary):
        return Judged(rule, False, "it is not there", warnings)
    place = policy.place(number)
    finding = _finding(run, rule.finding, policy.place(number, "finding"))
    stale = _stale(finding, run)
    if stale:
        return Judged(rule, False, f"it was computed on {stale} than the Run names: examine again", warnings)
    if rule.new_causes is not None or rule.worse_by_at_most is not None:
        if baseline is None:
            raise ConfigError(f"{place}: the rule compares with a baseline, and none is given: name one in the policy")
        other = _finding(baseline, rule.finding, policy.place(number, "finding"))
        passed, told = _against(rule, finding, other, place)
    elif rule.column is not None:
        passed, told = _rows(rule, finding, policy, number)
    else:
        passed, told = _number(rule, finding, policy.place(number, "number"))
    return Judged(rule, passed, told, warnings)


def _finding(run: Run, name: str, place: str) -> Finding:
    """A Finding, every byte as it was written."""
    if name not in run:
        hint = nearest(name, run.names())
        raise ConfigError(f"{place}: {run.folder} has no Finding {name!r}: {hint}it has {', '.join(run.names())}")
    return run.verified(name)


def _stale(finding: Finding, run: Run) -> str:
    """What the Finding was computed on besides what the Run names, if anything."""
    manifest, made = run.manifest(), finding.provenance
    model = manifest["subject"].get("fingerprint")
    data = {own.get("fingerprint") for own in manifest["data"].values()}
    if model and made.get("subject", model) != model:
        return "another model"
    return "other data" if data and made.get("data") and made["data"] not in data else ""


def _number(rule: Rule, finding: Finding, place: str) -> tuple[bool, str]:
    name = str(rule.number)
    if name not in finding.summary:
        known = list(finding.summary)
        raise ConfigError(
            f"{place}: {finding.name} has no number {name!r}: {nearest(name, known)}it has {', '.join(known)}"
        )
    estimate = finding.summary[name]
    if estimate.value is None or (isinstance(estimate.value, float) and isnan(estimate.value)):
        return False, "there is none"
    if rule.exists:
        return True, str(estimate)
    if rule.equals is not None:
        return _same(estimate.value, rule.equals), str(estimate)
    if isinstance(estimate.value, str | bool):
        raise ConfigError(f"{place}: {name} is {estimate.value!r}, which has no bound: use equals")
    return _bounded(rule, estimate)


def _bounded(rule: Rule, estimate: Estimate) -> tuple[bool, str]:
    """The far end of the interval must keep to the bound; a number that has no interval keeps to it itself."""
    told = str(estimate)
    if rule.confidence is not None and (estimate.low is None or estimate.high is None):
        return False, f"{told}, without an interval: the confidence that the rule asks for cannot be shown"
    if rule.confidence is not None and (estimate.confidence or 0) < rule.confidence:
        has = "an unknown" if estimate.confidence is None else f"{estimate.confidence:.0%}"
        return False, f"{told}, with {has} confidence: the rule asks for {rule.confidence:.0%}"
    value = float(estimate.value or 0)
    low, high = (value if end is None else end for end in (estimate.low, estimate.high))
    return _within(rule, low, high), told


def _within(rule: Rule, low: float, high: float) -> bool:
    return (rule.at_most is None or high <= rule.at_most) and (rule.at_least is None or low >= rule.at_least)


def _same(value: object, wanted: object) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _rows(rule: Rule, finding: Finding, policy: Policy, number: int) -> tuple[bool, str]:
    """Every row must hold; one without a value does not."""
    known = [] if finding.table is None else finding.table.column_names
    for name, path in ((str(rule.column), ("column",)), *((name, ("where", name)) for name in rule.where)):
        if name not in known:
            hint, has = nearest(name, known), ", ".join(known) or "no table"
            raise ConfigError(
                f"{policy.place(number, *path)}: {finding.name} has no column {name!r}: {hint}it has {has}"
            )
    rows = list(_chosen(rule, finding))
    broken = [row for row in rows if not _holds(rule, row[str(rule.column)], policy.place(number, "column"))]
    if not broken:
        return True, f"all {len(rows):,} rows hold"
    first = "; ".join(", ".join(f"{name} {_short(value)}" for name, value in row.items()) for row in broken[:3])
    return False, f"{len(broken):,} of {len(rows):,} rows do not: {first}" + (" …" if len(broken) > 3 else "")


def _chosen(rule: Rule, finding: Finding) -> Iterator[dict[str, Any]]:
    """The rows that a rule is about, with the columns that it needs and two that name them."""
    if finding.table is None:
        return iter(())
    kinds = {field.name: str(field.type) for field in finding.table.schema}
    naming = [name for name, kind in kinds.items() if "string" in kind or name in ("id", "cluster")][:2]
    table = finding.table.select(list(dict.fromkeys([*naming, *rule.where, str(rule.column)])))
    return (row for row in table.to_pylist() if all(_same(row[name], value) for name, value in rule.where.items()))


def _holds(rule: Rule, value: Any, place: str) -> bool:
    if value is None or (isinstance(value, float) and isnan(value)):
        return False
    if rule.equals is not None:
        return _same(value, rule.equals)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{place}: {rule.column} holds {value!r}, which has no bound: use equals")
    return _within(rule, value, value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _against(rule: Rule, finding: Finding, baseline: Finding, place: str) -> tuple[bool, str]:
    if rule.new_causes is not None:
        found = new_causes(finding, baseline, overlap=rule.overlap, place=place)
        told = f"new: {', '.join(f'cluster {number}' for number in found)}" if found else "no new one"
        return len(found) <= rule.new_causes, told
    name = rule.column or str(rule.number)
    if name not in HIGHER_IS_BETTER:
        known = list(HIGHER_IS_BETTER)
        raise ConfigError(f"{place}: whether more of {name!r} is worse is not known: {nearest(name, known)}"
                          f"known are {', '.join(known)}")  # fmt: skip
    one = _difference(rule, list(compare_findings(baseline, finding, confidence=rule.confidence or 0.95)))
    if one is None:
        return False, "the two Runs have nothing of it in common that could be compared"
    told = f"{one.before:.4g} before, {one.after:.4g} now, {one.how}"
    if one.low is None or one.high is None:
        return False, f"{told}: without an interval nothing is shown"
    worse = -one.low if HIGHER_IS_BETTER[name] else one.high
    return worse <= float(rule.worse_by_at_most or 0), f"{told}; worse by {worse:.4g} at most"


def _difference(rule: Rule, found: list[Difference]) -> Difference | None:
    """The difference that a rule is about; a share is paired by the column it is the share of, where there is one."""
    paired = {one.column: one for one in found if one.column is not None}
    if rule.column is not None:
        return paired.get(rule.column)
    others = {one.name: one for one in found if one.column is None}
    return paired.get(SHARE_OF.get(str(rule.number), "")) or others.get(str(rule.number))
