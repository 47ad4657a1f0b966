"""Robust accuracy: which inputs can no attack turn within a ball? (Croce and Hein 2020, AutoAttack)"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from weakspot.attacks import ATTACKS, Attack, WithinBall, attack_from
from weakspot.attacks.adversarial import Adversarial
from weakspot.attacks.balls import Norm
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.tasks import Task
from weakspot.estimates import share_of
from weakspot.robustness.attack_outputs import ROBUST_ACCURACY
from weakspot.robustness.predictions import named_columns
from weakspot.statistics import wilson_interval

SETS: dict[str, tuple[dict[str, Any], ...]] = {
    "standard": (
        {"attack": "auto_pgd"},
        {"attack": "auto_pgd", "loss": "targeted_dlr"},
        {"attack": "fab"},
        {"attack": "square"},
    ),
    "square": ({"attack": "square"},),
    "pgd": ({"attack": "pgd", "restarts": 5},),
}
"""Sets of attacks by name: AutoAttack's standard set, its part for black boxes, and PGD from five random starts."""


class RobustAccuracy(Probe):
    """Accuracy under attack: inputs are robust if no attack of a set finds a wrong prediction within ε.

    The default set is that of AutoAttack (Croce and Hein 2020). Each attack works on the inputs that the ones before
    left; an input that is turned within a smaller ε is turned within a larger one, too.

    epsilons: sizes of the ball, in the units of the inputs.
    norm: "linf", how far any number may move, or "l2", the root of the sum of squares.
    attacks: "standard" (AutoAttack: APGD on cross-entropy, targeted APGD, targeted FAB, Square), "square" for black
        boxes, "pgd", or a list such as [{attack: pgd, restarts: 10}, {attack: square, queries: 1000}].
    seed: of random starts and squares.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification",)
    outputs = ROBUST_ACCURACY

    epsilons: tuple[float, ...]
    norm: Norm = "linf"
    attacks: str | tuple[Mapping[str, Any] | Attack, ...] = "standard"
    seed: int = 0

    records = Rows()

    def __post_init__(self) -> None:
        if not self.epsilons or min(self.epsilons) <= 0 or len(set(self.epsilons)) < len(self.epsilons):
            raise ConfigError(f"epsilons is {list(self.epsilons)}: expected numbers above 0, each once")
        if self.norm not in get_args(Norm):
            raise ConfigError(f"norm is {self.norm!r}: choose one of {', '.join(get_args(Norm))}")
        if isinstance(self.attacks, str) and self.attacks not in SETS:
            raise ConfigError(
                f"attacks is {self.attacks!r}: choose one of {', '.join(SETS)}, or give a list of attacks"
            )
        self._tried  # noqa: B018 - refuses what cannot be meant before anything runs

    @cached_property
    def _sizes(self) -> list[float]:
        return sorted(self.epsilons)

    @cached_property
    def _asked(self) -> Sequence[Mapping[str, Any] | Attack]:
        return SETS[self.attacks] if isinstance(self.attacks, str) else self.attacks

    @cached_property
    def _tried(self) -> tuple[Attack, ...]:
        """All attacks in the order they are tried: those within the smallest ε first."""
        if not self._asked:
            raise ConfigError("attacks is empty: give one or more")
        return tuple(_within(asked, epsilon, self.norm) for epsilon in self._sizes for asked in self._asked)

    @property
    def needs(self) -> Needs:
        """The original, and one look for each attack within each ε."""
        return Needs(looks={Original(): 1, Adversarial(self._tried, self.seed): len(self._tried)})

    def observe(self, seen: Observation) -> list[str]:
        """Note what turned which input; an input that is predicted incorrectly needs no further attack."""
        wrong = ~seen.correct_array
        if seen.number == 0:
            self._rows = {name: row for row, name in enumerate(seen.ids)}
            self._turned = np.full(len(seen.ids), len(self._tried) + 1)
            self._original = {"target": seen.targets.cpu().numpy(), "prediction": seen.predicted_array}
        released = [name for name, turned in zip(seen.ids, wrong, strict=True) if turned]
        self._turned[[self._rows[name] for name in released]] = seen.number
        return released

    def close(self, ids: Sequence[str]) -> None:
        """Write the batch."""
        self.records.append(ids, turned=self._turned, **self._original)

    def finish(self) -> Finding:
        """Robust accuracy by ε; every input, the first to be turned first."""
        rows = self.records.read()
        by_id = id_order(rows.ids)
        turned, target, prediction = (np.asarray(rows[name])[by_id] for name in ("turned", "target", "prediction"))
        stages = len(self._asked)
        robust = turned[:, None] > np.arange(len(self._sizes) + 1) * stages
        table = {
            "id": np.array(rows.ids)[by_id],
            "robust": robust[:, -1],
            "turned_at": np.array([0.0, *np.repeat(self._sizes, stages), np.nan])[turned],
            "turned_by": np.array(["", *(_name(attack) for attack in self._tried), ""])[turned],
            "correct": turned > 0,
            **named_columns(target, prediction, self.setting),
        }
        order = np.argsort(turned, kind="stable")
        return self.finding(
            summary=self._summary(robust, turned),
            table={name: column[order] for name, column in table.items()},
            arrays=self._arrays(robust, turned),
        )

    def _summary(self, robust: np.ndarray, turned: np.ndarray) -> dict[str, Estimate]:
        last = {}
        inside = [attack.looks_inside for attack in self._tried]
        if any(inside) and not all(inside):
            without = 1 + np.flatnonzero(~np.array(inside))
            last = {"turned_without_gradients": share_of(np.isin(turned, without))}
        return {
            "robust_accuracy": share_of(robust[:, -1]),
            "epsilon": Estimate(float(self._sizes[-1])),
            "accuracy": share_of(robust[:, 0]),
            **last,
            **{f"robust_accuracy_{size:g}": share_of(robust[:, place + 1]) for place, size in enumerate(self._sizes)},
            "norm": Estimate({"linf": "L∞", "l2": "L2"}[self.norm]),
            "attacks": Estimate(", ".join(_name(attack) for attack in self._tried[: len(self._asked)])),
            "inputs": Estimate(len(turned)),
        }

    def _arrays(self, robust: np.ndarray, turned: np.ndarray) -> dict[str, np.ndarray]:
        low, high = wilson_interval(robust.sum(0), len(robust))
        counts = np.bincount(turned, minlength=len(self._tried) + 2)[1:-1]
        return {
            "epsilon": np.array([0.0, *self._sizes]),
            "robust_accuracy": robust.mean(0),
            "robust_accuracy_low": np.asarray(low),
            "robust_accuracy_high": np.asarray(high),
            "attack": np.array([_name(attack) for attack in self._tried[: len(self._asked)]]),
            "epsilon_name": np.array([f"ε = {size:g}" for size in self._sizes]),
            "turned": counts.reshape(len(self._sizes), -1) / len(turned),
        }


def _within(asked: Mapping[str, Any] | Attack, epsilon: float, norm: Norm) -> Attack:
    """The attack that is meant, within a ball; an attack that is given as such must have that size itself."""
    if isinstance(asked, Attack):
        if (getattr(asked, "epsilon", None), getattr(asked, "norm", "linf")) != (epsilon, norm):
            raise ConfigError(f"{asked} is not within {epsilon:g} in {norm}: give the probe the epsilon and norm of it")
        return asked
    kind = ATTACKS.get(asked.get("attack", ""))
    if kind is not None and "epsilon" not in {entry.name for entry in fields(kind)}:
        raise ConfigError(f"attack {asked['attack']!r} has no epsilon, so it keeps to no ball: choose another one")
    if kind is not None and not issubclass(kind, WithinBall):
        if norm != "linf":
            raise ConfigError(f"attack {asked['attack']!r} keeps to linf alone: choose another one")
        return attack_from({**asked, "epsilon": epsilon})
    return attack_from({**asked, "epsilon": epsilon, "norm": norm})


def _name(attack: Attack) -> str:
    """The attack in a word or two."""
    loss = getattr(attack, "loss", "")
    name = type(attack).__name__
    return f"{name} ({loss.replace('_', ' ')})" if loss else name
