"""What of a question is not for the model's task: all of it at once, in the words of the file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.plan import Plan
from weakspot.core.step import Step
from weakspot.core.tasks import Task
from weakspot.registry import steps_of

Place = Callable[..., str]
"""Where the value under some keys stands in the file, before what is wrong with it."""


def check_tasks(ask: Mapping[str, Mapping[str, Any] | None], task: Task, place: Place = lambda *path: "") -> None:
    """Refuse what cannot be asked of a model of that task, before anything runs, with every reason."""
    reasons = [
        f"{place('ask', name, *path)}{'.'.join((name, *path))} {reason}"
        for name, options in ask.items()
        for path, reason in _reasons(name, dict(options or {}), task)
    ]
    if reasons:
        raise ConfigError("\n".join(reasons))


def _reasons(name: str, options: Mapping[str, Any], task: Task) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each option at fault, or the question itself, with what it is for."""
    wrong = _wrong(_steps(name, options), task)
    known = wrong.keys()
    for path, without in _lessened(options):
        with suppress(WeakspotError):  # an option that others need is not tried
            left = _steps(name, without)
            due = {key: step for key, step in wrong.items() if key not in left}
            if due and _wrong(left, task).keys() <= known:
                wrong = {key: step for key, step in wrong.items() if key not in due}
                yield path, _reason(list(due.values()), task, "leave it out")
    if wrong:
        yield (), _reason(list(wrong.values()), task, "take it out of ask, or ask less of it")


def _steps(name: str, options: Mapping[str, Any]) -> dict[str, Step]:
    return {step.key: step for step in Plan.of(steps_of(name, options)).steps}


def _wrong(steps: Mapping[str, Step], task: Task) -> dict[str, Step]:
    return {key: step for key, step in steps.items() if _refusal(step, task) is not None}


def _refusal(step: Step, task: Task) -> str | None:
    try:
        step.probe.check_task(task, step.options)
    except ConfigError as error:
        return str(error)
    return None


def _lessened(options: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The options without each part of a list, and without each option."""
    for key, value in options.items():
        for part in value if isinstance(value, list | tuple) and len(value) > 1 else ():
            yield (key, str(part)), {**options, key: [other for other in value if other != part]}
    for key in options:
        yield (key,), {name: value for name, value in options.items() if name != key}


def _reason(steps: list[Step], task: Task, advice: str) -> str:
    """What the steps are for; where they are for the task, what else is wrong with them."""
    others = [step for step in steps if task in step.probe.tasks]
    refusals = [refusal for step in others or steps if (refusal := _refusal(step, task))]
    if others:
        return f"cannot be asked of {task}: {refusals[0]}"
    more = refusals[0].partition(f"the subject's task is {task}: ")[2]
    tasks = [one for one in steps[0].probe.tasks if all(one in step.probe.tasks for step in steps)]
    return f"is for {_listed(tasks)}, and the model's task is {task}: {more or advice}"


def _listed(names: list[Any]) -> str:
    return " or ".join(", ".join(names).rsplit(", ", 1))
