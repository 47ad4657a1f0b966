"""The room's question, "Why does it fail, and what should it be retrained on?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.causes.errors import Errors
from weakspot.causes.probes import RootCauses
from weakspot.core.probe import complete_options
from weakspot.core.step import Step

OF_ERRORS = ("threshold", "quantile")
"""Options that say which images are wrong."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The error-inducing images, and their root-cause clusters.

    threshold, quantile: which numbers or keypoints are wrong, as in `Errors`.
    All other options are those of `RootCauses`.

    >>> [step.probe.__name__ for step in steps({"quantile": 0.8, "linkage": "average"})]
    ['Errors', 'RootCauses']
    """
    own = dict(options)
    errors = Step.of(Errors, **{name: own.pop(name) for name in OF_ERRORS if name in own})
    complete = complete_options(RootCauses, own)
    causes = Step(RootCauses, complete, RootCauses.split, {"errors": errors})
    causes.try_options()
    return [errors, causes]
