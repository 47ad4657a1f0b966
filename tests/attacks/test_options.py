"""From an entry of a configuration to a set."""

from dataclasses import fields

import numpy as np
import pytest

from weakspot.attacks import ATTACKS, Attacked, Bim, Fgsm, Jsma, RelevantNoise, Together, attack_from, attacked
from weakspot.core.errors import ConfigError
from weakspot.relevance import GradientTimesInput


def test_every_attack_can_be_named():
    for name, kind in ATTACKS.items():
        needed = {"epsilon": 1} if "epsilon" in {entry.name for entry in fields(kind)} else {}
        assert isinstance(attack_from({"attack": name, **needed}), kind)
    assert attack_from({"attack": "bim", "epsilon": 0.1, "iterations": 3}) == Bim(epsilon=0.1, iterations=3)
    assert attack_from({"attack": "jsma", "toward": None, "on": "probabilities"}) == Jsma(
        toward=None, on="probabilities"
    )
    assert attack_from({"attack": "fgsm", "epsilon": 0.1, "toward": "runner_up"}) == Fgsm(
        epsilon=0.1, toward="runner_up"
    )
    relevant = attack_from({"attack": "relevant_noise", "method": "gradient"})
    assert isinstance(relevant, RelevantNoise) and relevant.method == GradientTimesInput()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "attack is None: choose one of gaussian_noise, relevant_noise, fgsm"),
        ({"attack": "fgms"}, "did you mean 'fgsm'"),
        ({"attack": "fgsm"}, "fgsm needs epsilon"),
        ({"attack": "fgsm", "epsilon": "much"}, "epsilon is 'much', expected a number"),
        ({"attack": "fgsm", "epsilon": 0.1, "steps": 3}, "fgsm has no option 'steps'"),
        ({"attack": "fgsm", "epsilon": 0.1, "toward": "anything"}, "toward is 'anything'"),
        ({"attack": "bim", "epsilon": 0.1, "iterations": 2.5}, "iterations is 2.5, expected a whole number"),
        ({"attack": "relevant_noise", "method": "magic"}, "method is 'magic', choose one of lrp"),
        ({"attack": "gaussian_noise", "sigma": -1}, "sigma is -1, expected more than 0"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        attack_from(options)


def test_a_set_from_an_entry(tmp_path, digit_subject, some_digits):
    entry = {"attack": "fgsm", "epsilon": 0.1, "seed": 3, "against": "prediction"}
    made = attacked(some_digits, digit_subject, entry, folder=tmp_path)
    same = Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1), seed=3, against="prediction")
    assert isinstance(made, Attacked) and made.fingerprint() == same.fingerprint()
    made.read(np.arange(1))
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ConfigError, match="against is 'all'"):
        attacked(some_digits, digit_subject, {**entry, "against": "all"})


def test_a_set_with_the_originals(digit_subject, some_digits):
    both = attacked(some_digits, digit_subject, {"attack": "gaussian_noise", "with_originals": True})
    assert isinstance(both, Together)
    assert both.ids[0] == f"original/{some_digits.ids[0]}" and both.ids[-1] == f"gaussian_noise/{some_digits.ids[-1]}"
