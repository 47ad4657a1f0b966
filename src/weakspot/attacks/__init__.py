"""Noisy and adversarial inputs: data sets made by small changes, for any examination."""

from weakspot.attacks.attack import Attack, Case, Directed
from weakspot.attacks.carlini_wagner import carlini_wagner
from weakspot.attacks.foreign import ForeignAttack
from weakspot.attacks.goals import Goal
from weakspot.attacks.gradient_sign import bim, fgsm
from weakspot.attacks.jsma import jsma
from weakspot.attacks.kinds import ATTACKS, Bim, CarliniWagner, Fgsm, GaussianNoise, Jsma, RelevantNoise
from weakspot.attacks.making import attack_batch
from weakspot.attacks.noise import noisy
from weakspot.attacks.options import attack_from, attacked
from weakspot.attacks.outcome import Outcome, distortion
from weakspot.attacks.robustness_kinds import AutoAttack, AutoPgd, Fab, Pgd, Square, WithinBall, standard_attacks
from weakspot.attacks.source import Attacked
from weakspot.attacks.together import Together

__all__ = [
    "ATTACKS",
    "Attack",
    "Attacked",
    "AutoAttack",
    "AutoPgd",
    "Bim",
    "CarliniWagner",
    "Case",
    "Directed",
    "Fab",
    "Fgsm",
    "ForeignAttack",
    "GaussianNoise",
    "Goal",
    "Jsma",
    "Outcome",
    "Pgd",
    "RelevantNoise",
    "Square",
    "Together",
    "WithinBall",
    "attack_batch",
    "attack_from",
    "attacked",
    "bim",
    "carlini_wagner",
    "distortion",
    "fgsm",
    "jsma",
    "noisy",
    "standard_attacks",
]
