"""From an entry of a configuration to an attacked set."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

from weakspot.attacks.attack import Attack
from weakspot.attacks.goals import Against
from weakspot.attacks.kinds import ATTACKS
from weakspot.attacks.source import Attacked
from weakspot.attacks.together import Together
from weakspot.core.options import OptionError, checked, nearest
from weakspot.core.progress import Progress
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.relevance import GradientTimesInput, IntegratedGradients, Method, deep_importance, epsilon_plus

METHODS: Mapping[str, Method] = {
    "lrp": deep_importance(),
    "lrp_biases_absorb": deep_importance(bias="absorbed"),
    "epsilon_plus": epsilon_plus(),
    "gradient": GradientTimesInput(),
    "integrated_gradients": IntegratedGradients(),
}
"""InferenceOptions to find relevance, by the name a configuration uses."""
_OF_THE_SET = {"seed": int, "against": Against, "with_originals": bool}


def attack_from(options: Mapping[str, Any]) -> Attack:
    """The attack that an entry such as `{attack: fgsm, epsilon: 0.1}` names.

    >>> attack_from({"attack": "fgsm", "epsilon": 0.1})
    Fgsm(toward=None, epsilon=0.1)
    """
    of_attack = {name: value for name, value in options.items() if name not in _OF_THE_SET}
    name = of_attack.pop("attack", None)
    if name not in ATTACKS:
        hint = nearest(name, list(ATTACKS))
        raise OptionError("attack", f"attack is {name!r}: {hint}choose one of {', '.join(ATTACKS)}")
    kind = ATTACKS[name]
    declared = {field.name: field for field in fields(kind)}
    hints = get_type_hints(kind)
    for option in of_attack:
        if option not in declared:
            listed = ", ".join([*declared, *_OF_THE_SET])
            raise OptionError(
                option, f"{name} has no option {option!r}: {nearest(option, list(declared))}there are {listed}"
            )
    for option, field in declared.items():
        if option not in of_attack and field.default is MISSING and field.default_factory is MISSING:
            raise OptionError(option, f"{name} needs {option}: say how much, for instance {option}: 0.1")
    return kind(**{option: _value(name, option, value, hints[option]) for option, value in of_attack.items()})


def attacked(
    source: Source,
    subject: Subject,
    options: Mapping[str, Any],
    *,
    folder: Path | None = None,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> Source:
    """The set that an entry means: those of the attack, and `seed`, `against`, `with_originals`.

    With `with_originals` the originals come first, as `original/id`, and the attacked ones follow as `attack/id`; else
    the ids are those of the originals. See `Attacked` for `folder`, `batch_size` and `progress`.
    """
    attack = attack_from(options)
    of_set = {
        name: checked(name, options[name], kind, of="attack") for name, kind in _OF_THE_SET.items() if name in options
    }
    joined = of_set.pop("with_originals", False)
    made = Attacked(source, subject, attack, folder=folder, batch_size=batch_size, progress=progress, **of_set)
    return Together({"original": source, options["attack"]: made}) if joined else made


def _value(attack: str, option: str, value: Any, annotation: Any) -> Any:
    if option == "method":
        if value not in METHODS:
            raise OptionError(option, f"{attack}: method is {value!r}, choose one of {', '.join(METHODS)}")
        return METHODS[value]
    return checked(option, value, annotation, of=attack)
