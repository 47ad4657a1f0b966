"""Attacks by which robustness is claimed today: PGD, and the four of AutoAttack, alone and one after the other.

All of them look within a ball about the original, L∞ or L2, and leave a sample once it is predicted incorrectly.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from weakspot.attacks.attack import Attack, Case
from weakspot.attacks.balls import Norm, per_sample
from weakspot.attacks.boundary import fab
from weakspot.attacks.losses import Loss, cross_entropy, logits_of
from weakspot.attacks.margins import difference_of_logits, toward
from weakspot.attacks.projected_gradient import auto_pgd, pgd
from weakspot.attacks.square import square_attack
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.look import Forward
from weakspot.core.stateless_random import draw_keys
from weakspot.core.subject import Subject
from weakspot.core.tasks import Task

Run = Callable[[Forward, Tensor, Tensor, Sequence[str]], Tensor]
"""From forward, inputs from 0 to 1, classes and ids to changed inputs."""


@dataclass(frozen=True, kw_only=True)
class WithinBall(Attack):
    """An attack that leads away from the right class within a ball.

    epsilon: its radius, in the units of the inputs.
    norm: "linf", how far any number may move, or "l2", the root of the sum of squares.
    """

    epsilon: float
    norm: Norm = "linf"
    tasks: ClassVar[tuple[Task, ...]] = ("classification",)

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ConfigError(f"{type(self).__name__}: epsilon is {self.epsilon}, expected more than 0")
        if self.norm not in get_args(Norm):
            raise ConfigError(
                f"{type(self).__name__}: norm is {self.norm!r}, choose one of {', '.join(get_args(Norm))}"
            )


@dataclass(frozen=True, kw_only=True)
class _InRuns(WithinBall):
    """An attack that is made of runs, each on the samples that the ones before left."""

    def change(self, case: Case) -> Tensor:
        """The inputs that the attack ends with; a sample that is predicted incorrectly already stays as it is."""
        low, high = case.bounds
        scale = high - low
        logits = logits_of(case.forward, "classification", case.subject.scores)
        forward: Forward = logits if (low, high) == (0.0, 1.0) else lambda some: logits(some * scale + low)
        inputs = (case.inputs - low) / scale
        made = inputs.clone()
        for attack in self._runs(case, self.epsilon / scale):
            rows = _still_right(forward, made, case.goal.answers)
            if not len(rows):
                break
            ids = [case.ids[row] for row in rows.tolist()]
            changed = attack(forward, inputs[rows], case.goal.answers[rows], ids)
            turned = _wrong(forward, changed, case.goal.answers[rows])
            made[rows[turned]] = changed[turned]
        moved = (made != inputs).flatten(1).any(1)
        return torch.where(per_sample(moved, made), made * scale + low, case.inputs)

    @abstractmethod
    def _runs(self, case: Case, epsilon: float) -> Iterator[Run]:
        """The runs of the attack, one after the other, each on the samples that are still predicted correctly."""


@dataclass(frozen=True, kw_only=True)
class Pgd(_InRuns):
    """Projected gradient descent on the cross-entropy, from random starts [madry2018].

    epsilon, norm: the ball.
    step: how far each step goes; by default 2.5 · epsilon / iterations.
    iterations: steps from each start.
    restarts: random starts, each for the samples that are still predicted correctly.
    """

    step: float | None = None
    iterations: int = 40
    restarts: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self, "iterations", "restarts")
        if self.step is not None and not self.step > 0:
            raise ConfigError(f"Pgd: step is {self.step}, expected more than 0")

    def _runs(self, case: Case, epsilon: float) -> Iterator[Run]:
        step = 2.5 * epsilon / self.iterations if self.step is None else self.step * epsilon / self.epsilon
        for restart in range(self.restarts):
            yield lambda forward, inputs, classes, ids, restart=restart: pgd(  # type: ignore[misc]
                forward, inputs, classes, draw_keys(ids, case.seed, restart), epsilon=epsilon, norm=self.norm,
                step=step, iterations=self.iterations, loss=cross_entropy,
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AutoPgd(_InRuns):
    """Auto-PGD, which needs no step size [croce2020].

    epsilon, norm: the ball.
    loss: "cross_entropy"; "dlr", the difference of logits ratio; "targeted_dlr", that toward other classes in turn.
    classes: toward how many classes at most, the likeliest first; of "targeted_dlr" alone.
    iterations: steps of each run.
    restarts: random starts; of "targeted_dlr" toward each class.
    """

    loss: Literal["cross_entropy", "dlr", "targeted_dlr"] = "cross_entropy"
    classes: int = 9
    iterations: int = 100
    restarts: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self, "classes", "iterations", "restarts")

    def _runs(self, case: Case, epsilon: float) -> Iterator[Run]:
        targets = range(1, _others(case, self.classes) + 1) if self.loss == "targeted_dlr" else range(1)
        for target in targets:
            for restart in range(self.restarts):
                yield lambda forward, inputs, classes, ids, target=target, restart=restart: auto_pgd(  # type: ignore[misc]
                    forward, inputs, classes, draw_keys(ids, case.seed, target, restart), epsilon=epsilon,
                    norm=self.norm, iterations=self.iterations,
                    loss_of_rows=self._losses(forward, inputs, target),
                )  # fmt: skip

    def _losses(self, forward: Forward, inputs: Tensor, target: int) -> Callable[[Tensor], Loss]:
        if self.loss == "targeted_dlr":
            other = _likely(forward, inputs, target)
            return lambda rows: toward(other[rows])
        return lambda rows: cross_entropy if self.loss == "cross_entropy" else difference_of_logits


@dataclass(frozen=True, kw_only=True)
class Fab(_InRuns):
    """The fast adaptive boundary attack toward other classes in turn: looks for the nearest change [crocefab2020].

    epsilon, norm: the ball that the change must lie in.
    classes: toward how many classes at most, the likeliest first.
    iterations: steps toward each class.
    """

    classes: int = 9
    iterations: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self, "classes", "iterations")

    def _runs(self, case: Case, epsilon: float) -> Iterator[Run]:
        for target in range(1, _others(case, self.classes) + 1):
            yield lambda forward, inputs, classes, ids, target=target: fab(  # type: ignore[misc]
                forward, inputs, classes, _likely(forward, inputs, target), epsilon=epsilon, norm=self.norm,
                iterations=self.iterations,
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Square(_InRuns):
    """Random search over squares; needs outputs alone, so a black box will do [andriushchenko2020].

    epsilon, norm: the ball.
    queries: how many changes are tried.
    """

    queries: int = 5000
    looks_inside: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self, "queries")

    def check(self, subject: Subject) -> None:
        """A margin between classes needs scores."""
        super().check(subject)
        logits_of(subject.forward, "classification", subject.scores)

    def _runs(self, case: Case, epsilon: float) -> Iterator[Run]:
        if case.inputs.ndim != 4:
            raise DataError(f"Square needs images (samples, channels, height, width), got {tuple(case.inputs.shape)}")
        yield lambda forward, inputs, classes, ids: square_attack(
            forward, inputs, classes, draw_keys(ids, case.seed), epsilon=epsilon, norm=self.norm, queries=self.queries
        )


def standard_attacks(epsilon: float, norm: Norm = "linf") -> tuple[WithinBall, ...]:
    """The standard set of AutoAttack: APGD on cross-entropy, targeted APGD on DLR, targeted FAB, Square."""
    return (
        AutoPgd(epsilon=epsilon, norm=norm),
        AutoPgd(epsilon=epsilon, norm=norm, loss="targeted_dlr"),
        Fab(epsilon=epsilon, norm=norm),
        Square(epsilon=epsilon, norm=norm),
    )


@dataclass(frozen=True, kw_only=True)
class AutoAttack(WithinBall):
    """The standard set of AutoAttack, each attack on the samples that the ones before did not turn [croce2020].

    epsilon, norm: the ball.
    """

    def change(self, case: Case) -> Tensor:
        """Each attack in turn."""
        return in_turn(standard_attacks(self.epsilon, self.norm), case)


def in_turn(attacks: Sequence[Attack], case: Case) -> Tensor:
    """What several attacks do one after the other, each to the samples that are still predicted correctly."""
    made = case.inputs.clone()
    for attack in attacks:
        rows = _still_right(case.forward, made, case.goal.answers)
        if not len(rows):
            break
        goal = replace(case.goal, answers=case.goal.answers[rows])
        ids = [case.ids[row] for row in rows.tolist()]
        made[rows] = attack.change(replace(case, inputs=case.inputs[rows], ids=ids, goal=goal))
    return made


def _others(case: Case, most: int) -> int:
    """Toward how many other classes there is to go."""
    with torch.no_grad():
        return min(most, case.forward(case.inputs[:1]).shape[1] - 1)


def _likely(forward: Forward, inputs: Tensor, place: int) -> Tensor:
    """The class at this place in the order of the logits, the predicted one at place 0."""
    with torch.no_grad():
        return forward(inputs).sort(1, descending=True).indices[:, place]


def _wrong(forward: Forward, inputs: Tensor, classes: Tensor) -> Tensor:
    with torch.no_grad():
        return forward(inputs).argmax(1) != classes


def _still_right(forward: Forward, inputs: Tensor, classes: Tensor) -> Tensor:
    return (~_wrong(forward, inputs, classes)).nonzero()[:, 0]


def _check_counts(attack: Attack, *names: str) -> None:
    for name in names:
        value = getattr(attack, name)
        if type(value) is not int or value < 1:
            raise ConfigError(f"{type(attack).__name__}: {name} is {value!r}, expected a whole number from 1")
