"""A policy as tests: `pytest --weakspot-run runs/resn policy.yaml` has one test for each rule.

Without `--weakspot-run` the plugin does nothing; nothing of weakspot is imported before it is needed, and torch never.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("weakspot", "check a weakspot Run against a policy")
    group.addoption("--weakspot-run", metavar="RUN", help="folder of the Run to check against the given policies")
    group.addoption("--weakspot-baseline", metavar="RUN", help="the Run to compare with, instead of the policy's own")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "PolicyFile | None":
    """A YAML file that is named on the command line is a policy, if a Run is given."""
    asked = parent.config.getoption("--weakspot-run", default=None)
    if asked is None or file_path.suffix not in (".yaml", ".yml") or not parent.session.isinitpath(file_path):
        return None
    return PolicyFile.from_parent(parent, path=file_path)


class PolicyFile(pytest.File):
    """A policy, checked against the Run."""

    def collect(self) -> Iterator["RuleItem"]:
        """A test for each rule."""
        from weakspot.core.errors import WeakspotError
        from weakspot.core.run import Run
        from weakspot.gate.evaluation import judge
        from weakspot.gate.policy import read_policy

        option = self.config.getoption
        try:
            baseline = option("--weakspot-baseline")
            other = None if baseline is None else Run.open(baseline)
            verdict = judge(Run.open(option("--weakspot-run")), read_policy(self.path), other)
        except WeakspotError as error:
            raise self.CollectError(f"weakspot: {error}") from error
        for one in verdict.judged:
            yield RuleItem.from_parent(self, name=f"{one.rule.finding}: {one.rule.title}", judged=one)


class RuleItem(pytest.Item):
    """One rule."""

    def __init__(self, *, judged: Any, **options: Any):
        super().__init__(**options)
        self.judged = judged

    def runtest(self) -> None:
        """Fail where the rule does not hold."""
        for warning in self.judged.warnings:
            self.add_report_section("call", "weakspot", warning)
        if not self.judged.passed:
            raise RuleBroken(f"{self.judged.rule.claim}: {self.judged.measured}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """What does not hold, without a trace-back."""
        return str(excinfo.value) if isinstance(excinfo.value, RuleBroken) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the rule stands."""
        return self.path, None, self.name


class RuleBroken(Exception):  # noqa: N818 - it is a verdict, not an error
    """A rule of a policy does not hold."""
