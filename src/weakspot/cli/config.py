"""`weakspot.yaml`: what to examine, on which data, and what to ask."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weakspot.core.errors import ConfigError


class Entry(BaseModel):
    """A part of the file; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SubjectEntry(Entry):
    """The model under test."""

    model: str
    """`module:factory`: a class or function that gives the model; modules beside the file are found."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the factory."""
    weights: Path | None = None
    """A safetensors file."""
    task: Literal["classification", "multilabel", "regression", "keypoints", "segmentation"] = "classification"
    classes: Path | int | list[str] | None = None
    """Names, how many, or a text file with one name per line."""
    scores: Literal["logits", "probabilities"] | None = None
    bounds: tuple[float, float] | None = None
    output: int | str | None = None
    preprocess: str | None = None
    """`module:function`."""
    device: str = "auto"
    cuda_graphs: bool = False


class DataEntry(Entry):
    """One split."""

    path: Path
    inputs: str | None = None
    """The array's name in an npz file."""
    targets: str | None = None
    channels: Literal["first", "last", "none"] = "first"
    mode: Literal["RGB", "L"] = "RGB"
    size: tuple[int, int] | None = None


class Config(Entry):
    """The whole file."""

    subject: SubjectEntry
    data: dict[str, str | DataEntry]
    ask: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    run: Path | None = None
    """Where the Run goes; by default `runs/` and the name of the file."""


def read_config(path: Path) -> Config:
    """Read and check the file."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no valid YAML: {error}") from error
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{path} must hold the keys subject, data and ask; it holds {type(raw).__name__}")
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {e['input']!r})" for e in error.errors()]
        raise ConfigError(f"{path}: " + "; ".join(problems)) from error
