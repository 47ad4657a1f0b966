"""Reads a policy, the rules that a Run must keep, from YAML; errors name the line."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from weakspot.core.errors import ConfigError
from weakspot.core.options import OptionError, checked, nearest, shortened
from weakspot.yaml_file import Places, read_yaml

KEYS = ("rules", "baseline", "least_rows", "least_samples")
SUBJECTS = ("number", "column", "share", "new_causes")
CONDITIONS = ("at_most", "at_least", "equals", "exists", "worse_by_at_most")
LEAST = ("least_rows", "least_samples")
COVERAGE = "coverage."

RANGE = ("from", "below")
"""What a range in `where` may say: from this number on, and below that one."""

Scalar = str | float | bool


@dataclass(frozen=True, kw_only=True)
class PolicyRule:
    """One thing that must hold of a Finding.

    finding: the Finding's name, as `weakspot show` lists it.
    name: what to call the rule; by default what it says.
    number: a number of the summary.
    column: a column of the table, of which every row must hold.
    share: a column of the table that is true or false: the share of rows where it is true, with Wilson's interval.
    where: only rows that have these values in these columns, or numbers in a range: {from: 0.1, below: 0.2}.
    at_most, at_least: the bound; of a number with an interval, the end of the interval must keep to it, not the value.
    equals: the value that it must have.
    exists: true means that the number must exist, with a value.
    confidence: the least confidence of the interval.
    worse_by_at_most: how much worse than the baseline it may be; the far end of the interval must keep to it.
    new_causes: at most so many clusters of images that the baseline mostly predicts correctly.
    overlap: a cluster is not new if the baseline, too, predicts at least this share of its images incorrectly.
    split: the data that the Finding must be of; by default what its name ends with, else test.
    least_rows: on fewer rows, or on fewer inputs that are paired with the baseline's, a rule of a column does not hold.
    least_samples: on a Finding of fewer samples the rule does not hold.
    """

    finding: str
    name: str = ""
    number: str | None = None
    column: str | None = None
    share: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    at_most: float | None = None
    at_least: float | None = None
    equals: Scalar | None = None
    exists: bool = False
    confidence: float | None = None
    worse_by_at_most: float | None = None
    new_causes: int | None = None
    overlap: float = 0.5
    split: str | None = None
    least_rows: int | None = None
    least_samples: int | None = None

    @property
    def claim(self) -> str:
        """What must hold, in words."""
        of = "" if self.split is None else f" of the split {self.split}"
        least = " and ".join(f"{n:,} {what}" for what, n in self._least() if n is not None)
        return self._condition + of + (f", on at least {least}" if least else "")

    def _least(self) -> tuple[tuple[str, int | None], ...]:
        return (("rows", self.least_rows), ("samples", self.least_samples))

    @property
    def rows_column(self) -> str | None:
        """The column whose rows the rule is about."""
        return self.column or self.share

    @property
    def where_text(self) -> str:
        """Which rows it is about, in words."""
        return ", ".join(_where_text(name, value) for name, value in self.where.items())

    @property
    def _condition(self) -> str:
        if self.new_causes is not None:
            return f"at most {self.new_causes} new root causes against the baseline"
        of_rows = f"{self.column} of every row" if self.share is None else f"share of {self.share} among rows"
        subject = self.number or of_rows + (f" with {self.where_text}" if self.where else "")
        sure = "" if self.confidence is None else f" with {self.confidence:.0%} confidence"
        if self.worse_by_at_most is not None:
            of = self.number or f"{self.column} over the same inputs"
            return f"{of} worse than the baseline by at most {self.worse_by_at_most:g}{sure}"
        if self.exists:
            return f"{subject} exists"
        signs = (("≤", self.at_most), ("≥", self.at_least), ("=", self.equals))
        return subject + "".join(f" {sign} {value}" for sign, value in signs if value is not None) + sure

    @property
    def compares(self) -> bool:
        """Whether the rule needs a baseline."""
        return self.new_causes is not None or self.worse_by_at_most is not None

    @property
    def title(self) -> str:
        """What to call the rule."""
        return self.name or self.claim


def _where_text(name: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"{name} = {value}"
    first = f"{value['from']:g} ≤ " if "from" in value else ""
    return f"{first}{name}" + (f" < {value['below']:g}" if "below" in value else "")


@dataclass(frozen=True)
class Policy:
    """Rules, the Run to compare with, and where in the file each stands."""

    rules: list[PolicyRule]
    baseline: Path | None
    places: Places

    def where(self, number: int, *path: str) -> str:
        """File and line of a rule, or of something in it."""
        return self.places.of("rules", number, *path)


def read_policy(path: Path) -> Policy:
    """A policy from its file; the path of a baseline is relative to the file's folder."""
    content, places = read_yaml(path)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{places.of()}: expected a mapping with the key rules, got {shortened(content)}")
    for key in content:
        if key not in KEYS:
            raise ConfigError(f"{places.of(key)}: unknown key {key!r}: {nearest(key, KEYS)}expected {', '.join(KEYS)}")
    rules = content.get("rules")
    if not isinstance(rules, list) or not rules:
        raise ConfigError(f"{places.of('rules')}: expected a list of rules, got {shortened(rules)}")
    with places.named("baseline"):
        baseline = checked("baseline", content.get("baseline"), str | None, of="policy")
    least = {name: _least(name, content.get(name), places) for name in LEAST}
    read = [_asked(_rule(entry, number, places), least) for number, entry in enumerate(rules)]
    if all(rule.finding.startswith(COVERAGE) for rule in read):
        raise ConfigError(
            f"{places.of('rules')}: every rule is about coverage, which alone shows no quality: add a rule of another "
            "question, such as robustness or classes"
        )
    return Policy(read, None if baseline is None else path.parent / baseline, places)


def _least(name: str, value: Any, places: Places) -> int | None:
    """What a policy asks of all its rules."""
    with places.named(name):
        least: int | None = checked(name, value, int | None, of="policy")
        _check_least(name, least)
    return least


def _asked(rule: PolicyRule, least: Mapping[str, int | None]) -> PolicyRule:
    """A rule with what the policy asks of all, where it says nothing itself; only rules of a column have rows."""
    rows = least["least_rows"] if rule.rows_column is not None and rule.least_rows is None else rule.least_rows
    samples = least["least_samples"] if rule.least_samples is None else rule.least_samples
    return replace(rule, least_rows=rows, least_samples=samples)


def _check_least(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise OptionError(name, f"{name} is {value}, expected 1 or more")


def _rule(entry: Any, number: int, places: Places) -> PolicyRule:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{places.of('rules', number)}: expected a rule as a mapping, got {shortened(entry)}")
    hints = get_type_hints(PolicyRule)
    keys = [option.name for option in fields(PolicyRule)]
    with places.named("rules", number):
        for key in entry:
            if key not in keys:
                raise OptionError(str(key), f"a rule has no {key!r}: {nearest(key, keys)}it has {', '.join(keys)}")
        if "finding" not in entry:
            raise ConfigError("a rule needs a finding: the name of a Finding, as `weakspot show` lists them")
        options = {name: checked(name, value, hints[name], of="rule") for name, value in entry.items()}
        rule = PolicyRule(**options)
        _check(rule)
    return rule


def _check(rule: PolicyRule) -> None:
    """Refuse what cannot be combined."""
    subjects = [name for name in SUBJECTS if getattr(rule, name) is not None]
    conditions = [name for name in CONDITIONS if getattr(rule, name) is not None and (name != "exists" or rule.exists)]
    if len(subjects) != 1:
        raise ConfigError(
            f"a rule is about one of {', '.join(SUBJECTS)}; this one has {' and '.join(subjects) or 'none'}"
        )
    if rule.new_causes is not None and conditions:
        raise OptionError(conditions[0], f"new_causes is a bound itself: leave out {conditions[0]}")
    if rule.new_causes is None and not conditions:
        raise ConfigError(f"the rule has no condition for {subjects[0]}: give one of {', '.join(CONDITIONS)}")
    if len(conditions) > 1 and set(conditions) != {"at_most", "at_least"}:
        raise OptionError(conditions[1], f"{' and '.join(conditions)} cannot be combined: write two rules")
    if rule.exists and rule.number is None:
        raise OptionError("exists", "exists can be used with a number only")
    for name in LEAST:
        _check_least(name, getattr(rule, name))
    if rule.share is not None and not {"at_most", "at_least"} >= set(conditions):
        raise OptionError(conditions[0], f"{conditions[0]} cannot be used with a share: give at_most or at_least")
    if rule.least_rows is not None and rule.rows_column is None:
        raise OptionError("least_rows", "least_rows can be used with a column or share only: use least_samples")
    if rule.where and rule.rows_column is None:
        raise OptionError("where", "where can be used with a column or share only")
    for name, value in rule.where.items():
        _check_where(name, value)
    if rule.confidence is not None and not 0 < rule.confidence < 1:
        raise OptionError("confidence", f"confidence is {rule.confidence}, expected a number from 0 to 1, such as 0.95")
    if rule.confidence is not None and rule.column is not None and rule.worse_by_at_most is None:
        raise OptionError("confidence", "rows have no interval: use the column that holds an end of their intervals")


def _check_where(name: str, value: Any) -> None:
    """Refuse what is neither a value nor a range."""
    if isinstance(value, str | float | int | bool):
        return
    ends = value if isinstance(value, Mapping) else {}
    numbers = [end for end in ends.values() if isinstance(end, int | float) and not isinstance(end, bool)]
    if (
        not ends
        or set(ends) - set(RANGE)
        or len(numbers) != len(ends)
        or sorted(numbers) != [ends[end] for end in RANGE if end in ends]
    ):
        raise OptionError(
            "where",
            f"where: {name} is {shortened(value)}: expected a value, or a range such as {{from: 0.1, below: 0.2}}",
        )
