"""weakspot finds where a neural network can't be trusted, shows why, helps fix it, and proves the fix.

Names are loaded when they are first used, so that importing weakspot, or reading a Run, does not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weakspot._version import __version__

if TYPE_CHECKING:
    from weakspot.core.errors import WeakspotError
    from weakspot.core.examine import examine
    from weakspot.core.finding import Estimate, Finding, Picture
    from weakspot.core.job import Execution
    from weakspot.core.needs import Attribution, Needs
    from weakspot.core.observation import Observation
    from weakspot.core.plan import Plan
    from weakspot.core.probe import Probe, Rows
    from weakspot.core.run import Run
    from weakspot.core.state import Either, Max, Min, Sum
    from weakspot.core.step import Step
    from weakspot.core.subject import Subject
    from weakspot.core.taps import Tap

_WHERE = {
    "WeakspotError": "errors",
    "examine": "examine",
    "Estimate": "finding",
    "Finding": "finding",
    "Picture": "finding",
    "Execution": "job",
    "Attribution": "needs",
    "Needs": "needs",
    "Observation": "observation",
    "Plan": "plan",
    "Probe": "probe",
    "Rows": "probe",
    "Run": "run",
    "Either": "state",
    "Max": "state",
    "Min": "state",
    "Sum": "state",
    "Step": "step",
    "Subject": "subject",
    "Tap": "taps",
}

__all__ = [
    "Attribution",
    "Either",
    "Estimate",
    "Execution",
    "Finding",
    "Max",
    "Min",
    "Needs",
    "Observation",
    "Picture",
    "Plan",
    "Probe",
    "Rows",
    "Run",
    "Step",
    "Subject",
    "Sum",
    "Tap",
    "WeakspotError",
    "__version__",
    "examine",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'weakspot' has no attribute {name!r}")
    return getattr(import_module(f"weakspot.core.{_WHERE[name]}"), name)
