"""weakspot finds where a neural network can't be trusted, shows why, helps fix it, and leaves evidence.

Names are loaded when they are first used, so that importing weakspot, or reading a Run, does not load torch.
"""

from typing import TYPE_CHECKING

from weakspot._version import __version__
from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.core.driver import examine
    from weakspot.core.errors import WeakspotError
    from weakspot.core.execution_options import ExecutionOptions
    from weakspot.core.finding import Estimate, Finding, Picture
    from weakspot.core.needs import Attribution, Needs
    from weakspot.core.observation import Observation
    from weakspot.core.outputs import Outputs
    from weakspot.core.plan import Plan
    from weakspot.core.probe import Probe, Rows
    from weakspot.core.run import Run
    from weakspot.core.state import LogicalOr, Max, Min, Sum
    from weakspot.core.step import Step
    from weakspot.core.subject import Subject
    from weakspot.core.taps import Tap

__all__ = [
    "Attribution",
    "Estimate",
    "ExecutionOptions",
    "Finding",
    "LogicalOr",
    "Max",
    "Min",
    "Needs",
    "Observation",
    "Outputs",
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

__getattr__, __dir__ = lazy_names(
    "weakspot",
    {
        "core.errors": "WeakspotError",
        "core.driver": "examine",
        "core.finding": "Estimate Finding Picture",
        "core.execution_options": "ExecutionOptions",
        "core.needs": "Attribution Needs",
        "core.observation": "Observation",
        "core.outputs": "Outputs",
        "core.plan": "Plan",
        "core.probe": "Probe Rows",
        "core.run": "Run",
        "core.state": "LogicalOr Max Min Sum",
        "core.step": "Step",
        "core.subject": "Subject",
        "core.taps": "Tap",
    },
)
