"""Options of a question as given on the command line with --set."""

from collections.abc import Mapping, Sequence
from typing import Any

from weakspot.asking.config import check_plain
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.options import OptionError, shortened
from weakspot.registry import steps_of
from weakspot.yaml_file import parse_yaml


def read_settings(arguments: Sequence[str]) -> dict[str, Any]:
    """From `name=value` to options; values are read as YAML."""
    options = {}
    for setting in arguments:
        name, separator, value = setting.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set {setting!r} sets nothing: expected name=value")
        options[name] = parse_yaml(value, f"--set {name}", expected="a value")[0]
    return options


def check_settings(room: str, written: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse what the question cannot be asked with, where that is due to what was set here and not to the file."""
    try:
        check_plain(options, ["--set"])
        steps_of(room, {**written, **options})
    except WeakspotError as error:
        option = error.option if isinstance(error, OptionError) and error.option in options else None
        if option is None:
            steps_of(room, written)  # an error of the file is told as such
        said = ", ".join(f"{name}={shortened(options[name])}" for name in ([option] if option else options))
        raise ConfigError(f"--set {said}: {error}") from error
