"""How a Finding came about: its provenance line by line, and what it was built from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy as np

from weakspot.core.finding import Finding
from weakspot.formatting import value_text

_FIRST = ("probe", "parameters", "subject", "data", "samples", "execution", "versions")


@dataclass(frozen=True)
class ProvenanceLine:
    """One line of a provenance; `finding` names the Finding of the same Run that the value is the digest of."""

    path: str
    value: str
    finding: str | None = None


def origins(finding: Finding, names: Mapping[str, str]) -> list[ProvenanceLine]:
    """The provenance, the arrays and the Finding's own digest; `names` has the Run's Findings by digest."""
    provenance = finding.provenance
    ordered = {key: provenance[key] for key in (*_FIRST, *provenance) if key in provenance}
    lines = [ProvenanceLine(path, _text(value), names.get(str(value))) for path, value in _leaves("", ordered)]
    arrays = [ProvenanceLine(_joined("arrays", name), _kind(array)) for name, array in finding.arrays.items()]
    return [*lines, *arrays, ProvenanceLine("digest of this Finding", finding.digest)]


def built_from(finding: Finding, names: Mapping[str, str]) -> set[str]:
    """The Findings of the Run whose digests stand in this one's parameters."""
    leaves = _leaves("", finding.provenance.get("parameters", {}))
    return {names[value] for _, value in leaves if isinstance(value, str) and value in names}


_VARIED = {
    "Rotate": "rotated by up to {degrees}°",
    "Shift": "shifted by up to {pixels} px",
    "Shear": "sheared by up to {degrees}°",
    "Scale": "scaled by {factor}",
    "Blur": "blurred by up to {sigma} px",
    "Brightness": "brightness changed by up to {share}",
    "Contrast": "contrast changed by {factor}",
    "Noise": "noise of up to {deviation}",
}
"""How variations are told; another one, or one of other options, is told by its options."""


def variation_words(told: Mapping[str, Any]) -> str:
    """How inputs were varied, from the settings of a variation.

    >>> variation_words({"is": "a:Both", "parts": [{"is": "b:Rotate", "degrees": 10}, {"is": "b:Rain", "drops": 4}]})
    'rotated by up to 10°, rain (drops 4)'
    """
    parts = [part for value in told.values() if isinstance(value, list) for part in value if isinstance(part, Mapping)]
    if parts:
        word = " or " if str(told.get("is", "")).endswith("Either") else ", "
        return word.join(map(variation_words, parts))
    kind = str(told.get("is", "")).rpartition(":")[2]
    options = {name: _range(value) for name, value in told.items() if name not in ("is", "code") and value is not None}
    words = _VARIED.get(kind, "")
    if any(isinstance(value, list) for value in told.values()):
        words = words.replace("up to ", "")
    if words and set(options) == {name for _, name, _, _ in Formatter().parse(words) if name}:
        return words.format(**options)
    given = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    return kind.lower() + (f" ({given})" if given else "")


def _range(value: Any) -> str:
    return " to ".join(map(_text, value)) if isinstance(value, list) and len(value) == 2 else _text(value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its path; a list of such values is one of them."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(_joined(path, key), item)
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(_joined(path, index + 1), item)
    elif path:
        yield path, value


def _joined(path: str, key: object) -> str:
    return f"{path} › {key}" if path else str(key)


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype}, " + (" × ".join(map(str, array.shape)) or "one number")


def _text(value: Any) -> str:
    """Settings are shown as they were given: numbers in full, lists complete."""
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, float | int | str) and not isinstance(value, bool):
        return str(value)
    return "none" if value is None or value == {} else value_text(value)
