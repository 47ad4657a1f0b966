"""The room's question, "How good is the model?", as steps of a plan."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.look import Original
from weakspot.core.plan import Plan
from weakspot.core.step import Step
from weakspot.core.subject import Subject
from weakspot.performance.probes import Performance


def steps(options: Mapping[str, Any]) -> list[Step]:
    """The one step of the room. The options are those of `Performance`.

    >>> [step.probe.__name__ for step in steps({"shown": 6})]
    ['Performance']
    """
    return [Step.of(Performance, **options)]


def with_performance(planned: Plan, subject: Subject) -> Plan:
    """The plan with this question added where it costs no pass: the test data are read anyway.

    A plan that asks it already stays as it is, and so does one of a task that it makes no sense for. Where only samples
    of a segmentation's predictions are looked at, as for lesions, the inputs as they are would cost forward passes.
    """
    asks = {step.probe for step in planned.steps}
    answerable = not (subject.task == "multilabel" and subject.scores is None)
    on_test = [step for step in planned.steps if step.split == Performance.split]
    reads = any(map(_predicts_original, on_test)) if subject.task == "segmentation" else bool(on_test)
    if Performance in asks or not answerable or not reads:
        return planned
    asked = [step for step in planned.steps if step.key in planned.asked]
    return Plan.of([*asked, *steps({})])


def _predicts_original(step: Step) -> bool:
    return not step.upstream and Original() in step.build({}).needs.looks
