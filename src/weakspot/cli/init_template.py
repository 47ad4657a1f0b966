"""The text of a first `weakspot.yaml`, with a word on every key."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from weakspot.models.trial import Alternative, ModelTrial
from weakspot.rooms import QUESTIONS

_BARE = re.compile(r"[A-Za-z][\w./-]*", re.ASCII)
_WIDTH = 34
_ROOMS = {"error_slices": "causes"}
"""Probes that answer a question by themselves."""
_BESIDES = "so that `weakspot view` can show every input"
"""What is asked for besides the questions, small pictures, serves."""


def file_text(
    subject: Mapping[str, Any],
    data: Mapping[str, Any],
    asked: Mapping[str, tuple[dict[str, Any], str | None]],
    trial: ModelTrial,
    better: Sequence[Alternative],
) -> str:
    """The text of a `weakspot.yaml`, with a word on every key that was given or may be wanted."""
    lines = [
        "# What weakspot examines, and what it asks. Begun by `weakspot init`.",
        "# A quick look first:  weakspot examine FILE --limit 500",
        "",
        "subject:",
        *_subject_lines(subject, trial, better),
        "",
        "data:",
        *(f"  {split}: {inline(entry)}" for split, entry in data.items()),
        *([] if "train" in data else ["  # train: …  # some questions compare with the training data"]),
        "",
        "ask:  # leave out what you do not want to know",
    ]
    for name, (options, reason) in asked.items():
        entry = f"{name}: {inline(options)}"
        lines.append(
            f"  {entry:<{_WIDTH}}  # {QUESTIONS.get(_ROOMS.get(name, name), _BESIDES)}"
            if reason is None
            else f"  # {entry}  # {_plain(reason)}"
        )
    return "\n".join(lines) + "\n"


def _subject_lines(subject: Mapping[str, Any], trial: ModelTrial, better: Sequence[Alternative]) -> list[str]:
    low, high = trial.input_range
    alike = "" if trial.like_probabilities else "do not "
    words = {
        "model": "module:name of a class, function or module, or a file .pt2 or .onnx",
        "arguments": "for the class or function",
        "weights": "safetensors, or a state dict",
        "task": "classification, multilabel, regression, keypoints or segmentation",
        "classes": "names in the order of the outputs, how many, or a file with one name per line",
        "scores": f"or probabilities: say which; the outputs tried {alike}look like probabilities",
        "bounds": f"smallest and largest value of an input; those tried lie from {low:.4g} to {high:.4g}",
        "preprocess": "module:function, or numbers; from inputs as in the data to what the model wants",
        "output": "which part of what the model gives",
        "device": "a GPU when there is one",
        "fingerprint": "name and version: change it whenever the function answers otherwise",
    }
    suggested: dict[str, Any] = {"task": "classification", "scores": "logits", "bounds": [0, 1], "device": "auto"}
    if subject.get("task") in ("regression", "keypoints"):
        del suggested["scores"]
    lines = []
    for key, word in words.items():
        if key in subject:
            lines.append(_line(key, subject[key], word))
        elif key in suggested:
            lines.append(_line(key, suggested[key], word, silent=key not in ("task", "device")))
        if key == "preprocess" and better:
            gain = f"accuracy {better[0].accuracy:.2f} instead of {trial.accuracy:.2f} on {trial.samples} samples"
            lines.append(_line(key, better[0].normalise.entry(), gain, silent=True))
    return lines + [_line(key, value, "") for key, value in subject.items() if key not in words]


def _line(key: str, value: Any, word: str, *, silent: bool = False) -> str:
    entry = f"{key}: {inline(value)}"
    return f"  {'# ' if silent else ''}{entry:<{_WIDTH}}" + (f"  # {word}" if word else "")


def inline(value: Any) -> str:
    """On one line, as YAML."""
    if isinstance(value, str):
        quotes = None if _BARE.fullmatch(value) and yaml.safe_load(value) == value else '"'
        text = yaml.safe_dump(value, default_style=quotes, allow_unicode=True, width=10**9)
        return text.removesuffix("\n").removesuffix("\n...")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def _plain(text: str) -> str:
    return " ".join(text.split())
