"""Which Findings of a Run may be used again: those of the same probe, code, options, model and data, and undamaged."""

from collections.abc import Mapping

from weakspot._version import __version__
from weakspot.core.digest import digest
from weakspot.core.errors import Damaged, RunError
from weakspot.core.finding import Finding
from weakspot.core.progress import Progress, say
from weakspot.core.run import Run
from weakspot.core.step import Step


def request_of(step: Step, upstream: Mapping[str, Finding], subject: str, data: str) -> str:
    """What must agree for a Finding to be used again."""
    return digest([step.build(upstream).identity(), subject, data, __version__])


class KeptFindings:
    """The Findings of a Run by what was asked for. What is damaged is not used again, which is said.

    Indexes are read at once; every other byte is held against them before a Finding is given.
    """

    def __init__(self, run: Run | None, progress: Progress | None):
        self._run, self._progress = run and Run(run.folder), progress  # which has read nothing before
        self._names: dict[str, str] = {}
        for name in run.names() if run else ():
            head = self._undamaged(name, head=True)
            if head is not None:
                made = head.provenance
                asked = {key: made.get(key) for key in ("probe", "code", "parameters")}
                version = made.get("versions", {}).get("weakspot")
                self._names[digest([asked, made.get("subject"), made.get("data"), version])] = name

    def get(self, request: str) -> Finding | None:
        """The Finding, of which every byte is as it was written; None where there is none."""
        return self._undamaged(self._names[request]) if request in self._names else None

    def _undamaged(self, name: str, *, head: bool = False) -> Finding | None:
        assert self._run is not None, "a name comes from a Run"
        try:
            return self._run.head(name) if head else self._run[name]
        except RunError as error:
            reason = error.reason if isinstance(error, Damaged) else str(error)
            say(self._progress, f"the Finding {name} is damaged and is not used again: {reason}")
            return None
