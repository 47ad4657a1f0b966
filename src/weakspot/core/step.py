"""A step of a plan: one probe over one split, built from the Findings of earlier steps."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.options import checked

if TYPE_CHECKING:
    from weakspot.core.probe import Probe


class _TooEarlyError(Exception):
    """A probe looks at a Finding that is not there yet."""


class _ToCome(Finding):
    """A placeholder for the Finding of an earlier step while options are checked; reading it raises."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise _TooEarlyError


@dataclass(frozen=True)
class Step:
    """A probe to run over a split of the data; `upstream` fills options with the Findings of other steps."""

    probe: "type[Probe]"
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = "test"
    upstream: "Mapping[str, Step]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked("split", self.split, str, of=self.probe.name())

    @classmethod
    def of(cls, probe: "type[Probe]", *, split: str | None = None, **options: Any) -> "Step":
        """The step that asks `probe` with these options, with the steps that it needs before."""
        from weakspot.core.probe import check_complete, complete_options

        complete = complete_options(probe, options)
        upstream = {name: step for name, step in probe.upstream(complete).items() if name not in complete}
        check_complete(probe, [*complete, *upstream])
        step = cls(probe, complete, probe.split if split is None else split, upstream)
        step.try_options()
        return step

    def try_options(self) -> None:
        """Let the probe refuse its options now, and not when the passes before it are done."""
        with suppress(_TooEarlyError):
            self.build({step.key: _ToCome() for step in self.upstream.values()})

    @cached_property
    def key(self) -> str:
        """Equal for steps that ask the same."""
        return digest([self.probe, self.options, self.split, {name: step.key for name, step in self.upstream.items()}])

    @property
    def depth(self) -> int:
        """How many steps must come before."""
        return max((step.depth + 1 for step in self.upstream.values()), default=0)

    def build(self, findings: Mapping[str, Finding]) -> "Probe":
        """The probe, given the Findings of the steps before by their keys."""
        upstream = {name: findings[step.key] for name, step in self.upstream.items()}
        try:
            return self.probe(**self.options, **upstream)
        except TypeError as error:
            raise ConfigError(f"{self.probe.name()} cannot be asked with {dict(self.options)}: {error}") from error
