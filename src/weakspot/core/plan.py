"""A plan: the steps that answer all questions, merged where they are equal, in as few passes as possible."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from weakspot.core.driver import Driver, driving
from weakspot.core.engine import Engine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.files import remove_folder
from weakspot.core.finding import Finding
from weakspot.core.progress import Progress
from weakspot.core.reuse import KeptFindings, request_of
from weakspot.core.run import Run
from weakspot.core.sample_check import ValidSubset
from weakspot.core.source import Source, how_made, splits_behind, with_made_splits
from weakspot.core.step import Step
from weakspot.core.subject import Subject


@dataclass(frozen=True)
class PlannedPass:
    """One pass over one split, with the steps that share it."""

    split: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """Steps in an order that works, equal ones merged."""

    steps: tuple[Step, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each step's Finding, by the step's key."""
    asked: frozenset[str] = frozenset()
    """The keys of the steps that were asked for; the others are there for these to be built from."""

    @classmethod
    def of(cls, steps: Sequence[Step]) -> "Plan":
        """The plan for these steps and all they need."""
        merged: dict[str, Step] = {}
        for step in steps:
            for needed in _with_upstream(step):
                merged.setdefault(needed.key, needed)
        ordered = tuple(sorted(merged.values(), key=lambda step: step.depth))
        return cls(ordered, _names(ordered), frozenset(step.key for step in steps))

    def passes(self) -> list[PlannedPass]:
        """As few passes as possible: a step waits for a later pass over its split, if nobody needs it before."""
        groups: dict[tuple[int, str], list[Step]] = {}
        for step in self.steps:
            groups.setdefault((self._levels[step.key], step.split), []).append(step)
        return [PlannedPass(split, tuple(groups[level, split])) for level, split in sorted(groups)]

    @cached_property
    def _levels(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        last = max((step.depth for step in self.steps), default=0)
        for step in reversed(self.steps):
            users = [user.key for user in self.steps if step.key in {needed.key for needed in user.upstream.values()}]
            latest = min((levels[key] - 1 for key in users), default=last)
            starts = {other.depth for other in self.steps if other.split == step.split}
            levels[step.key] = max(depth for depth in starts if step.depth <= depth <= latest)
        return levels

    def asked_in_order(self) -> list[str]:
        """The keys of the steps that were asked for."""
        return [step.key for step in self.steps if step.key in self.asked]

    def groundwork(self) -> set[str]:
        """The names of the Findings that are only there for others to be built from."""
        return {self.names[step.key] for step in self.steps if step.key not in self.asked}

    def check(self, data: Mapping[str, Source]) -> None:
        """Refuse a plan that wants a split that is not there, that is empty, or that its probe must not see."""
        for step in self.steps:
            behind = splits_behind(step.split, data)
            lost = [split for split in behind if split not in data]
            if lost:
                raise ConfigError(
                    f"{self.names[step.key]} needs the split {lost[0]!r}, and the data have only "
                    f"{', '.join(map(repr, data)) or 'none'}: add it under data"
                )
            empty = [split for split in behind if not len(data[split].ids)]
            if empty:
                raise DataError(f"{self.names[step.key]} needs the split {empty[0]!r}, which has no samples")
            upstream = {name: needed.split for name, needed in step.upstream.items()}
            step.probe.check_splits(step.split, step.options, data, upstream)

    def run(
        self,
        subject: Subject,
        data: Mapping[str, Source],
        run: Run,
        *,
        execution: ExecutionOptions | None = None,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> list[Finding]:
        """Compute the plan into a Run. Findings that exist already are reused; unfinished ones resume."""
        self.check(data)
        for step in self.steps:
            step.probe.check_task(subject.task, step.options)
        with run.locked(), subject.borrowed():
            subject.fingerprint()  # what is kept must be known again: refuse a black box without a name
            work, noted = run.folder / "work", run.manifest().get("answers")
            with driving(subject, work, execution, engine=engine, progress=progress, answers=noted) as driver:
                valid = _valid(data, run, driver)
                data = with_made_splits(valid, [*(step.split for step in self.steps), *_made_before(run, valid)])
                driver.check_answers(data)
                run.note_answers(driver.book.record())
                asked = [self.names[key] for key in self.asked_in_order()]
                described_data = {split: described(source) for split, source in data.items()}
                with run.described(subject=subject.describe(), data=described_data, asked=asked):
                    findings = self._findings(driver, data, run)
                remove_folder(work)
        return findings

    def _findings(self, driver: Driver, data: Mapping[str, Source], run: Run) -> list[Finding]:
        """All passes, one after the other: what fits is used again, the rest is computed."""
        findings, model, earlier = (
            dict[str, Finding](),
            driver.subject.fingerprint(),
            KeptFindings(run, driver.progress),
        )
        for planned in self.passes():
            source = data[planned.split]
            missing = []
            for step in planned.steps:
                old = earlier.get(request_of(step, findings, model, source.fingerprint()))
                if old is None:
                    missing.append(step)
                else:
                    findings[step.key] = old if old.name == self.names[step.key] else self._keep(step, old, run)
            if missing:
                probes = [step.build(findings) for step in missing]
                label = f"{planned.split}: {len(missing)} question{'s' if len(missing) > 1 else ''}"
                made = driver.findings(source, probes, label, note=run.note_answers)
                for step, (finding, shards) in zip(missing, made, strict=True):
                    findings[step.key] = self._keep(step, finding, run)
                    remove_folder(shards)
        return [findings[step.key] for step in self.steps]

    def _keep(self, step: Step, finding: Finding, run: Run) -> Finding:
        named = _renamed(finding, self.names[step.key])
        run.save(named)
        return Finding.load(run.finding_folder(named.name), table=named.table)


def _valid(data: Mapping[str, Source], run: Run, driver: Driver) -> Mapping[str, Source]:
    """The data without bad samples, where they are to be skipped; what was checked before is not read again."""
    if driver.options.on_bad_sample == "stop":
        return data
    before = run.manifest()
    same_model = before["subject"].get("fingerprint") == driver.subject.fingerprint()
    usable: dict[str, Source] = {}
    for split, source in data.items():
        noted = before["data"].get(split, {}) if same_model else {}
        again = ValidSubset(source, noted["skipped"]) if "skipped" in noted else source
        unchanged = "skipped" in noted and again.fingerprint() == noted["fingerprint"]
        usable[split] = again if unchanged else driver.valid(source)
    return usable


def _made_before(run: Run, data: Mapping[str, Source]) -> list[str]:
    """The splits made of others that Findings of the Run are about, and that can be made of these data again."""
    before = (split for split in run.manifest()["data"] if split not in data)
    return [split for split in before if all(part in data for part in splits_behind(split, data))]


def described(source: Source) -> dict[str, Any]:
    """What a Run notes of a split."""
    noted: dict[str, Any] = {"fingerprint": source.fingerprint(), "samples": len(source.ids)}
    if how_made(source):
        noted["made"] = how_made(source)
    return {**noted, "skipped": source.skipped} if isinstance(source, ValidSubset) else noted


def _with_upstream(step: Step) -> Iterator[Step]:
    for needed in step.upstream.values():
        yield from _with_upstream(needed)
    yield step


def _names(steps: Sequence[Step]) -> dict[str, str]:
    """The probe's name, with the split where it is not the usual one, and a piece of the key where that is taken."""
    names: dict[str, str] = {}
    for step in steps:
        name = step.probe.name() + (
            f"-{step.split}" if step.split != step.probe.split and step.probe.name_says_split else ""
        )
        names[step.key] = f"{name}-{step.key[:6]}" if name in names.values() else name
    return names


def _renamed(finding: Finding, name: str) -> Finding:
    return finding if finding.name == name else replace(finding, name=name)
