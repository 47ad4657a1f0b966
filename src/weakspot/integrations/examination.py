"""An examination at the end of a training: what callbacks of trainers run, and how it fails a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weakspot.core.errors import WeakspotError
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.gate.evaluation import Verdict, judge
from weakspot.gate.policy import read_policy
from weakspot.registry import steps_for
from weakspot.report import write_report

if TYPE_CHECKING:
    from torch import nn


class GateFailed(WeakspotError):  # noqa: N818 - it reads as what happened
    """A rule of the policy does not hold."""

    def __init__(self, verdict: Verdict):
        lines = [f"{one.rule.title}: {one.rule.claim}; {one.measured}" for one in verdict.failed]
        super().__init__(f"{len(lines)} of {len(verdict.judged)} rules do not hold: {' · '.join(lines)}")
        self.verdict = verdict


@dataclass(frozen=True)
class Examination:
    """What to ask of a model, about which data, and by which policy to judge it.

    ask: questions with their options, as under `ask` in `weakspot.yaml`.
    data: sources by split.
    folder: of the Run.
    policy: a file with rules, as `weakspot gate` takes it; where one does not hold, `GateFailed` is raised.
    subject: options of `Subject`, such as classes, scores and bounds.
    probes: further probes by name, as `--probe` takes them.
    """

    ask: Mapping[str, Mapping[str, Any] | None]
    data: Mapping[str, Source]
    folder: str | Path
    policy: str | Path | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    probes: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.plan.check(dict(self.data))  # what cannot be asked fails before the training, not after it
        if self.policy is not None:
            read_policy(Path(self.policy))

    @property
    def plan(self) -> Plan:
        """The steps."""
        return Plan.of(steps_for(self.ask, self.probes))

    def of(self, model: "nn.Module", **options: Any) -> Run:
        """Examine a model, write its report, and hold it to the policy."""
        run = Run.create(self.folder)
        self.plan.run(Subject(model, **{**options, **self.subject}), dict(self.data), run)
        write_report(run, run.folder / "report.html")
        if self.policy is not None:
            verdict = judge(run, read_policy(Path(self.policy)))
            if not verdict.passed:
                raise GateFailed(verdict)
        return run
