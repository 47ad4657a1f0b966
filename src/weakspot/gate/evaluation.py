"""Judges the rules of a policy: what was measured, and whether the rule holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from weakspot.compare.runs import Difference, compare_findings, difference_of
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.options import nearest
from weakspot.core.run import Run
from weakspot.gate.basis import too_few, unfounded, unready
from weakspot.gate.new_causes import new_causes
from weakspot.gate.policy import COVERAGE, Policy, PolicyRule
from weakspot.statistics.clustered import grouped_share_interval
from weakspot.statistics.intervals import wilson_interval

if TYPE_CHECKING:
    import pyarrow as pa

NO_VERDICT = "coverage alone shows no quality: do not read it as a verdict"
_MOST_VALUES = 10
_MOST_SPELT = 1000
"""Among at most so many values a similar spelling is suggested; among more that takes seconds."""


@dataclass(frozen=True)
class Judged:
    """One rule with what was measured."""

    rule: PolicyRule
    passed: bool
    measured: str
    warnings: tuple[str, ...] = ()
    decided: bool = True
    """Whether there was anything to judge by; a rule without evidence does not hold either."""


@dataclass(frozen=True)
class Verdict:
    """All rules of a policy, checked against a Run."""

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
    """Check every rule against a Run; `baseline` takes the place of the one that the policy names."""
    compared = baseline or (None if policy.baseline is None else Run.open(policy.baseline))
    subject = run.manifest()["subject"]
    judged = [_judged(rule, number, run, compared, policy) for number, rule in enumerate(policy.rules)]
    return Verdict(str(run.folder), policy.places.name, subject, judged)


def _judged(rule: PolicyRule, number: int, run: Run, baseline: Run | None, policy: Policy) -> Judged:
    """One rule; a name that the Run does not have is an error of the policy, reported with its line."""
    warnings = (NO_VERDICT,) if rule.finding.startswith(COVERAGE) else ()
    passed, measured = _held(rule, number, run, baseline, policy)
    return Judged(rule, bool(passed), measured, warnings, decided=passed is not None)


def _held(rule: PolicyRule, number: int, run: Run, baseline: Run | None, policy: Policy) -> tuple[bool | None, str]:
    """Whether a rule holds, None where nothing shows it either way; and what was measured or why it cannot hold."""
    missing = unready(run)
    if missing:
        return None, missing
    if rule.exists and (rule.finding not in run or rule.number not in run[rule.finding].summary):
        return False, "it does not exist"
    finding, wrong = _basis(rule, number, run, policy)
    if wrong:
        return None, wrong
    if rule.compares:
        where = policy.where(number)
        if baseline is None:
            raise ConfigError(f"{where}: the rule compares with a baseline, but there is none: name one in the policy")
        missing = unready(baseline)
        if missing:
            return None, f"the baseline: {missing}"
        other, wrong = _basis(rule, number, baseline, policy)
        return (None, f"the baseline: {wrong}") if wrong else _against(rule, finding, other, where)
    if rule.rows_column is not None:
        return _rows(rule, finding, policy, number)
    return _number(rule, finding, policy.where(number, "number"))


def _basis(rule: PolicyRule, number: int, run: Run, policy: Policy) -> tuple[Finding, str]:
    """The Finding that a rule is about, and why it is no evidence, if it is none."""
    finding = _finding(run, rule.finding, policy.where(number, "finding"))
    return finding, unfounded(finding, run, rule, policy.where(number, "split"))


def _finding(run: Run, name: str, where: str) -> Finding:
    """A Finding, every byte as it was written."""
    if name not in run:
        hint = nearest(name, run.names())
        raise ConfigError(f"{where}: {run.folder} has no Finding {name!r}: {hint}it has {', '.join(run.names())}")
    return run[name]


def _number(rule: PolicyRule, finding: Finding, where: str) -> tuple[bool | None, str]:
    name = str(rule.number)
    if name not in finding.summary:
        numbers = list(finding.summary)
        raise ConfigError(
            f"{where}: {finding.name} has no number {name!r}: {nearest(name, numbers)}it has {', '.join(numbers)}"
        )
    estimate = finding.summary[name]
    if estimate.value is None or (isinstance(estimate.value, float) and isnan(estimate.value)):
        return None, "it has no value"
    if rule.exists:
        return True, str(estimate)
    if rule.equals is not None:
        return _same(estimate.value, rule.equals), str(estimate)
    if isinstance(estimate.value, str | bool):
        raise ConfigError(f"{where}: {name} is {estimate.value!r}, which is not a number: use equals")
    return _bounded(rule, estimate)


def _bounded(rule: PolicyRule, estimate: Estimate) -> tuple[bool | None, str]:
    """The far end of the interval must be within the bound; without an interval, the number itself."""
    measured = str(estimate)
    if (estimate.low is None) != (estimate.high is None):
        return None, f"{measured}: its interval has no {'lower' if estimate.low is None else 'upper'} end"
    if estimate.low is not None and estimate.high is not None and not estimate.low <= estimate.high:
        return None, f"{measured}: the lower end of its interval is above the upper end"
    if rule.confidence is not None and estimate.low is None:
        return None, f"{measured}, without an interval: the confidence that the rule requires cannot be shown"
    if rule.confidence is not None and (estimate.confidence or 0) < rule.confidence:
        has = "an unknown" if estimate.confidence is None else f"{estimate.confidence:.0%}"
        return None, f"{measured}, with {has} confidence: the rule requires {rule.confidence:.0%}"
    value = float(estimate.value or 0)
    low, high = (value if end is None else end for end in (estimate.low, estimate.high))
    return _within(rule, low, high), measured


def _within(rule: PolicyRule, low: float, high: float) -> bool:
    return (rule.at_most is None or high <= rule.at_most) and (rule.at_least is None or low >= rule.at_least)


def _same(value: object, wanted: object) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _rows(rule: PolicyRule, finding: Finding, policy: Policy, number: int) -> tuple[bool | None, str]:
    """Every row must hold; a row without a value does not, nor does a table without rows."""
    table = finding.table
    columns = [] if table is None else table.column_names
    subject = "share" if rule.column is None else "column"
    for name, path in ((str(rule.rows_column), (subject,)), *((name, ("where", name)) for name in rule.where)):
        if name not in columns:
            hint, has = nearest(name, columns), ", ".join(columns) or "no table"
            raise ConfigError(
                f"{policy.where(number, *path)}: {finding.name} has no column {name!r}: {hint}it has {has}"
            )
    groups = finding.outputs.columns_of_role(finding, "group")
    rows = [] if table is None else list(_chosen(rule, table, groups))
    if table is not None and not rows:
        return None, _no_row(rule, table)
    if rule.least_rows is not None and len(rows) < rule.least_rows:
        return None, too_few(len(rows), "rows", rule.least_rows)
    if rule.share is not None:
        return _share(rule, rows, groups, policy.where(number, "share"))
    broken = [row for row in rows if not _holds(rule, row[str(rule.column)], policy.where(number, "column"))]
    if not broken:
        return True, f"all {len(rows):,} rows hold"
    first = "; ".join(", ".join(f"{name} {_short(value)}" for name, value in row.items()) for row in broken[:3])
    return False, f"{len(broken):,} of {len(rows):,} rows do not hold: {first}" + (" …" if len(broken) > 3 else "")


def _share(rule: PolicyRule, rows: list[dict[str, Any]], groups: list[str], where: str) -> tuple[bool | None, str]:
    """The share of rows that are true; the end of its interval must keep to the bound; by group where there are any."""
    flags = [row[str(rule.share)] for row in rows]
    odd = next((flag for flag in flags if flag is not None and not isinstance(flag, bool)), None)
    if odd is not None:
        raise ConfigError(f"{where}: {rule.share} holds {odd!r}: expected a column that is true or false, as correct")
    if None in flags:
        return None, f"{flags.count(None):,} of {len(flags):,} rows have no value of {rule.share}"
    confidence = rule.confidence or 0.95
    if groups:
        low, high = grouped_share_interval(flags, [row[groups[0]] for row in rows], confidence=confidence)
    else:
        low, high = wilson_interval(sum(flags), len(flags), confidence=confidence)
    share = Estimate(sum(flags) / len(flags), low=float(low), high=float(high), confidence=confidence)
    passed, measured = _bounded(rule, share)
    return passed, f"{measured}, {len(flags):,} rows"


def _no_row(rule: PolicyRule, table: "pa.Table") -> str:
    """That no row is chosen, with the values that exist: most often one is misspelt."""
    if not table.num_rows:
        return "the table has no rows, so the rule cannot hold"
    named = "; ".join(_values(name, value, table) for name, value in rule.where.items())
    return f"no row has {rule.where_text.replace(', ', ' and ')}: {named}"


def _values(name: str, wanted: object, table: "pa.Table") -> str:
    values = {repr(value): value for value in table[name].to_pylist()}
    texts = [value for value in values.values() if isinstance(value, str)]
    hint = "" if wanted in texts or len(texts) > _MOST_SPELT else nearest(wanted, texts)
    more = f" … ({len(values):,} values)" if len(values) > _MOST_VALUES else ""
    return f"{hint}{name} has {', '.join(list(values)[:_MOST_VALUES])}{more}"


def _chosen(rule: PolicyRule, table: "pa.Table", groups: list[str]) -> Iterator[dict[str, Any]]:
    """The rows that a rule is about, with the columns that it needs and two that name them."""
    kinds = {field.name: str(field.type) for field in table.schema}
    naming = [name for name, kind in kinds.items() if "string" in kind or name in ("id", "cluster")][:2]
    needed = [*naming, *rule.where, str(rule.rows_column), *([] if rule.share is None else groups)]
    chosen = table.select(list(dict.fromkeys(needed)))
    return (row for row in chosen.to_pylist() if all(_meets(row[name], value) for name, value in rule.where.items()))


def _meets(value: object, wanted: object) -> bool:
    """Whether a row has the wanted value, or a number in the wanted range; an unknown one never is."""
    if not isinstance(wanted, Mapping):
        return _same(value, wanted)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(wanted.get("from", -inf) <= value < wanted.get("below", inf))


def _holds(rule: PolicyRule, value: Any, where: str) -> bool:
    if value is None or (isinstance(value, float) and isnan(value)):
        return False
    if rule.equals is not None:
        return _same(value, rule.equals)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where}: {rule.column} holds {value!r}, which is not a number: use equals")
    return _within(rule, value, value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _against(rule: PolicyRule, finding: Finding, baseline: Finding, where: str) -> tuple[bool | None, str]:
    if rule.new_causes is not None:
        found = new_causes(finding, baseline, overlap=rule.overlap, where=where)
        return len(found.new) <= rule.new_causes, found.text
    declared = finding.outputs.column(rule.column) if rule.column else finding.outputs.number(str(rule.number))
    if declared.better is None:
        raise ConfigError(f"{where}: {_no_direction(rule, finding)}")
    one = _difference(rule, finding, list(compare_findings(baseline, finding, confidence=rule.confidence or 0.95)))
    if one is None:
        return None, "the two Runs have no common values of it to compare"
    if rule.least_rows is not None and (one.inputs or 0) < rule.least_rows:
        return None, too_few(one.inputs or 0, "paired inputs", rule.least_rows)
    measured = f"{one.before:.4g} before, {one.after:.4g} now, {one.how}"
    if one.low is None or one.high is None:
        return None, f"{measured}: without an interval the rule cannot hold"
    worse = -one.low if declared.better == "higher" else one.high
    bound = f"worse by {worse:.4g} at most" if worse >= 0 else f"better by {-worse:.4g} at least"
    return worse <= float(rule.worse_by_at_most or 0), f"{measured}; {bound}"


def _no_direction(rule: PolicyRule, finding: Finding) -> str:
    """That neither way is better, with the numbers or columns of which one is."""
    name, kind = (rule.column, "columns") if rule.column else (str(rule.number), "numbers")
    made = list(finding.summary) if kind == "numbers" or finding.table is None else finding.table.column_names
    find = finding.outputs.column if rule.column else finding.outputs.number
    directed = [one for one in made if find(one).better is not None]
    return (
        f"{finding.name} does not declare whether more of {name!r} is worse: {nearest(name, directed)}"
        f"its {kind} with a direction are {', '.join(directed) or 'none'}"
    )


def _difference(rule: PolicyRule, finding: Finding, differences: list[Difference]) -> Difference | None:
    """The difference that a rule is about; the mean of a column is paired by that column, where it is there."""
    if rule.column is not None:
        return next((one for one in differences if one.column == rule.column), None)
    return difference_of(finding, str(rule.number), differences)
