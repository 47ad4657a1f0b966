"""The room's question, "Which detected lesions are real?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.step import Step
from weakspot.lesions.uncertainty import LesionUncertainty


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The lesions of each volume, with their uncertainty."""
    return [Step.of(LesionUncertainty, **options)]
