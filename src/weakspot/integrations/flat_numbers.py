"""The numbers of a Run as one flat mapping, as trackers of experiments take them."""

import math
import re

from weakspot.core.run import Run

_ODD = re.compile(r"[^\w./: -]+")
"""What names of metrics may not hold (MLflow's rule, the strictest)."""


def run_numbers(run: Run) -> dict[str, float]:
    """All numbers of all Findings: "FINDING/NUMBER", and "….low", "….high" for the ends of its interval."""
    numbers: dict[str, float] = {}
    for name in run.names():
        for number, estimate in run.head(name).summary.items():
            for end, value in (("", estimate.value), (".low", estimate.low), (".high", estimate.high)):
                if isinstance(value, int | float) and math.isfinite(value):
                    numbers[_ODD.sub("-", f"{name}/{number}{end}")] = float(value)
    return numbers
