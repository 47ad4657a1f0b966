"""The interface of an attack: frozen options, and one method from a batch of inputs to changed ones."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from weakspot.attacks.goals import Goal, Toward
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.look import Forward
from weakspot.core.subject import Subject
from weakspot.core.tasks import TASKS, Task


@dataclass(frozen=True)
class Case:
    """One batch under attack: the borrowed subject with its forward, the inputs, and what is wanted of them."""

    subject: Subject
    forward: Forward
    inputs: Tensor
    ids: Sequence[str]
    goal: Goal
    seed: int

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest value of an input."""
        return required_bounds(self.subject)


@dataclass(frozen=True, kw_only=True)
class Attack(ABC):
    """A way to change inputs. Its options are all there is to know of it: with a seed they say what comes out."""

    tasks: ClassVar[tuple[Task, ...]] = TASKS
    looks_inside: ClassVar[bool] = True
    """Whether it needs gradients or relevance, which a black box does not give."""

    @abstractmethod
    def change(self, case: Case) -> Tensor:
        """The changed inputs, within the bounds; what is drawn depends on (seed, id) alone."""

    def check(self, subject: Subject) -> None:
        """Refuse a subject that this attack cannot work on."""
        name = type(self).__name__
        required_bounds(subject)
        if subject.task not in self.tasks:
            raise ConfigError(f"{name} is defined for {' and '.join(self.tasks)}, the subject's task is {subject.task}")
        if self.looks_inside and not isinstance(subject.model, nn.Module):
            raise SubjectError(
                f"{name} needs the inside of the model, which a black box does not show: give the nn.Module itself, or "
                "use GaussianNoise, which needs nothing but inputs"
            )


@dataclass(frozen=True, kw_only=True)
class Directed(Attack):
    """An attack that leads away from a prediction or target, or toward a class."""

    toward: Toward | None = None

    def check(self, subject: Subject) -> None:
        """A class to reach makes sense for a classifier alone."""
        super().check(subject)
        if self.toward is not None and subject.task != "classification":
            raise ConfigError(f"toward= names a class, and the subject's task is {subject.task}: leave it out")


def required_bounds(subject: Subject) -> tuple[float, float]:
    """The subject's bounds; an error where it has none."""
    if subject.bounds is None:
        raise ConfigError(
            "an attack must know which values an input may have, and the subject does not say: give it "
            "bounds=(smallest, largest)"
        )
    return subject.bounds
