"""The attacks by name, each a class with its options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from weakspot.attacks.attack import Attack, Case, Directed
from weakspot.attacks.carlini_wagner import carlini_wagner
from weakspot.attacks.goals import Toward
from weakspot.attacks.gradient_sign import bim, fgsm
from weakspot.attacks.jsma import jsma
from weakspot.attacks.losses import logits_of, loss_of
from weakspot.attacks.noise import gaussian, noisy, pixel_count, random_pixels, relevant_pixels
from weakspot.core.errors import ConfigError
from weakspot.core.look import Forward
from weakspot.core.subject import Subject
from weakspot.core.tasks import Task
from weakspot.relevance import Method, Output, Winner, deep_importance, propagation


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(Attack):
    """Gaussian noise on random pixels, the set U_S of DeepImportance [gerasimou2020].

    sigma: standard deviation in the units of the inputs; the paper's 0.3 is for inputs in [0, 1].
    share: of the pixels that change, in all their channels; the paper's 2 %. 1 is noise everywhere.
    """

    sigma: float = 0.3
    share: float = 0.02
    looks_inside: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_positive(self, "sigma")
        _check_share(self, "share")

    def change(self, case: Case) -> Tensor:
        """x + N(0, σ²) at pixels drawn from (seed, id)."""
        count = pixel_count(case.inputs, self.share)
        pixels = random_pixels(case.ids, case.inputs[0, 0].numel(), count, seed=case.seed)
        return _with_noise(case, pixels.to(case.inputs.device), self.sigma)


@dataclass(frozen=True, kw_only=True)
class RelevantNoise(Attack):
    """Gaussian noise on the most relevant pixels, the set U_DI of DeepImportance [gerasimou2020].

    sigma, share: as for `GaussianNoise`; with the same seed the noise is the same as there, only elsewhere.
    method: how relevance is found; by default LRP-0 with the biases' share spread, as in the paper.
    """

    sigma: float = 0.3
    share: float = 0.02
    method: Method = field(default_factory=deep_importance)
    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel", "regression", "keypoints")

    def __post_init__(self) -> None:
        _check_positive(self, "sigma")
        _check_share(self, "share")

    def change(self, case: Case) -> Tensor:
        """x + N(0, σ²) at the pixels that speak most for the winning class, or for the outputs of a regression."""
        count, model = pixel_count(case.inputs, self.share), case.subject.model
        assert isinstance(model, nn.Module)
        plain = case.subject.forward  # relevance is always worked out in float32
        with torch.enable_grad(), propagation(model, self.method, conservation=False, forward=plain) as trace:
            outputs = plain(trace.watch(case.inputs))
        start = Winner() if case.subject.task in ("classification", "multilabel") else Output()
        pixels = relevant_pixels(trace.relevance(outputs, start=start).input, count)
        return _with_noise(case, pixels, self.sigma)


@dataclass(frozen=True, kw_only=True)
class Fgsm(Directed):
    """The fast gradient sign method [goodfellow2015]: one step up the loss.

    epsilon: how far every pixel moves, in the units of the inputs.
    toward: a class to reach: "random", "least_likely", "runner_up" or its number; by default any but the right one.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check_positive(self, "epsilon")

    def change(self, case: Case) -> Tensor:
        """`fgsm` on the usual loss of the task."""
        return fgsm(epsilon=self.epsilon, **_climb(case))


@dataclass(frozen=True, kw_only=True)
class Bim(Directed):
    """The basic iterative method [kurakin2017]: many small steps up the loss.

    epsilon: how far a pixel may move at most, in the units of the inputs.
    step: how far it moves each time; by default a tenth of epsilon.
    iterations: how many times.
    stop_early: leave a sample alone once its class has turned; the paper does not.
    toward: as for `Fgsm`.
    """

    epsilon: float
    step: float | None = None
    iterations: int = 10
    stop_early: bool = False

    def __post_init__(self) -> None:
        _check_positive(self, "epsilon", "step", "iterations")

    def check(self, subject: Subject) -> None:
        """Only a class turns from one step to the next."""
        super().check(subject)
        if self.stop_early and subject.task != "classification":
            raise ConfigError(f"stop_early waits for a class to turn, and the subject's task is {subject.task}")

    def change(self, case: Case) -> Tensor:
        """`bim` on the usual loss of the task."""
        step = self.epsilon / 10 if self.step is None else self.step
        return bim(
            epsilon=self.epsilon, step=step, iterations=self.iterations, stop_early=self.stop_early, **_climb(case)
        )


@dataclass(frozen=True, kw_only=True)
class Jsma(Directed):
    """The Jacobian-based saliency map attack [papernot2016]: few pixels, two at a time.

    theta: how much a chosen pixel changes, in the units of the inputs; negative to take away.
    gamma: share of the features that may be chosen (each channel of a pixel is one), two per step.
    toward: a class to reach, as for `Fgsm`, random by default; None to leave the right one by any way (NT-JSMA).
    on: whose slopes count: those of all "logits", as in the paper; of "probabilities", where the others lose what the
        wanted class gains; or of "one_logit", the wanted class's alone, as in the adversarial robustness toolbox.
    """

    theta: float = 1.0
    gamma: float = 0.145
    toward: Toward | None = "random"
    on: Literal["logits", "probabilities", "one_logit"] = "logits"
    tasks: ClassVar[tuple[Task, ...]] = ("classification",)

    def __post_init__(self) -> None:
        _check_share(self, "gamma")
        if self.theta == 0:
            raise ConfigError("Jsma: theta is 0 and changes nothing; give how much a chosen pixel changes")

    def check(self, subject: Subject) -> None:
        """Logits cannot be had from probabilities: one number per sample is lost, which saliency depends on."""
        super().check(subject)
        if self.on != "probabilities" and subject.scores == "probabilities":
            raise ConfigError("Jsma: the model gives probabilities, so saliency must be theirs: on='probabilities'")

    def change(self, case: Case) -> Tensor:
        """`jsma` on logits, or on logarithms of probabilities, which keep a slope where probabilities round to 0."""
        logits = logits_of(case.forward, "classification", case.subject.scores)
        log_probabilities: Forward = lambda inputs: logits(inputs).log_softmax(1)  # noqa: E731
        return jsma(
            log_probabilities if self.on == "probabilities" else logits, case.inputs, case.goal.answers,
            theta=self.theta, gamma=self.gamma, bounds=case.bounds, targeted=case.goal.targeted,
            others=self.on == "logits",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CarliniWagner(Directed):
    """The L2 attack of Carlini and Wagner [carlini2017]: the smallest change that changes the prediction.

    confidence: by how much the wrong logit must win (κ).
    search_steps: how many values of c are tried.
    iterations: steps of Adam for each.
    learning_rate: of Adam, in tanh space.
    initial_constant: the first c.
    restart: whether each c begins at the original, as in the paper, or where the last one ended.
    abort_early: leave a c whose objective no longer falls.
    toward: as for `Fgsm`.
    """

    confidence: float = 0.0
    search_steps: int = 9
    iterations: int = 100
    learning_rate: float = 0.05
    initial_constant: float = 0.1
    restart: bool = True
    abort_early: bool = True
    tasks: ClassVar[tuple[Task, ...]] = ("classification",)

    def __post_init__(self) -> None:
        _check_positive(self, "search_steps", "iterations", "learning_rate", "initial_constant")
        if self.confidence < 0:
            raise ConfigError(f"CarliniWagner: confidence is {self.confidence}, expected 0 or more")

    def change(self, case: Case) -> Tensor:
        """`carlini_wagner` on logits."""
        logits = logits_of(case.forward, "classification", case.subject.scores)
        return carlini_wagner(
            logits, case.inputs, case.goal.answers, bounds=case.bounds, targeted=case.goal.targeted,
            confidence=self.confidence, search_steps=self.search_steps, iterations=self.iterations,
            learning_rate=self.learning_rate, initial_constant=self.initial_constant, restart=self.restart,
            abort_early=self.abort_early,
        )  # fmt: skip


ATTACKS: Mapping[str, type[Attack]] = {
    "gaussian_noise": GaussianNoise,
    "relevant_noise": RelevantNoise,
    "fgsm": Fgsm,
    "bim": Bim,
    "jsma": Jsma,
    "carlini_wagner": CarliniWagner,
}
"""By the name a configuration uses."""


def _with_noise(case: Case, pixels: Tensor, sigma: float) -> Tensor:
    noise = gaussian(case.ids, case.inputs.shape[1], pixels.shape[1], sigma=sigma, seed=case.seed)
    return noisy(case.inputs, pixels, noise, case.bounds)


def _climb(case: Case) -> dict[str, Any]:
    """What `fgsm` and `bim` have in common."""
    task = case.subject.task
    return {
        "forward": logits_of(case.forward, task, case.subject.scores),
        "inputs": case.inputs,
        "answers": case.goal.answers,
        "bounds": case.bounds,
        "loss": loss_of(task),
        "targeted": case.goal.targeted,
    }


def _check_positive(attack: Attack, *names: str) -> None:
    for name in names:
        value = getattr(attack, name)
        if value is not None and not value > 0:
            raise ConfigError(f"{type(attack).__name__}: {name} is {value}, expected more than 0")


def _check_share(attack: Attack, name: str) -> None:
    value = getattr(attack, name)
    if not 0 < value <= 1:
        raise ConfigError(f"{type(attack).__name__}: {name} is {value}, expected a share above 0 and at most 1")
