"""The room's question, "Is my test set adequate?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.probe import Probe
from weakspot.core.step import Step
from weakspot.coverage.importance import ImportanceDrivenCoverage
from weakspot.coverage.neurons import KMultisection, NeuronCoverage

CRITERIA: dict[str, type[Probe]] = {"nc": NeuronCoverage, "kmnc": KMultisection, "idc": ImportanceDrivenCoverage}


def steps(options: Mapping[str, Any]) -> list[Step]:
    """One step per criterion asked for; all by default. Each criterion may be given options of its own under its name.

    >>> [step.probe.__name__ for step in steps({"criteria": ["nc"], "nc": {"threshold": 0.5}})]
    ['NeuronCoverage']
    """
    given = options.get("criteria", list(CRITERIA))
    chosen = [given] if isinstance(given, str) else given
    for name in [*chosen, *(key for key in options if key != "criteria")]:
        if name not in CRITERIA:
            raise ConfigError(f"coverage knows no criterion or option {name!r}: choose from {', '.join(CRITERIA)}")
    return [Step.of(CRITERIA[name], **(options.get(name) or {})) for name in chosen]
