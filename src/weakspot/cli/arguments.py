"""Arguments and options that several commands take."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from weakspot.core.execution_options import ExecutionOptions, execution_fields

if TYPE_CHECKING:
    from weakspot.asking.config import Config

ConfigFile = Annotated[Path, typer.Argument(help="The file that says what to examine, usually weakspot.yaml.")]
RunFolder = Annotated[Path, typer.Argument(help="The folder of a Run.")]
RunOption = Annotated[
    Path | None,
    typer.Option("--run", help="Folder of the Run; by default what the file says, else runs/NAME for NAME.yaml."),
]
ProbeOption = Annotated[
    list[str] | None,
    typer.Option("--probe", help="Run this probe too: its name, or module:Class; may be given several times."),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 …; by default what the file says.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the question, as name=value; may be given several times."),
]

_ON_SUBJECT = {
    "device": Device,
    "precision": Annotated[str | None, typer.Option(help="float32 or bf16; by default what the file says.")],
    "compile": Annotated[bool, typer.Option("--compile", help="Run the model through torch.compile where possible.")],
    "channels_last": Annotated[
        bool, typer.Option("--channels-last", help="Use PyTorch's channels_last memory format.")
    ],
}
"""What may be said of the model here, as in the file under `subject`."""


@dataclass(frozen=True)
class ExaminationFlags:
    """What the command line says of how to examine; it goes before what the file says."""

    run: Path | None
    limit: int | None
    subject: Mapping[str, Any]
    execution: Mapping[str, Any]

    def applied(self, config: "Config") -> "Config":
        """The configuration with what was said here instead of what the file says."""
        subject = config.subject.model_copy(update=dict(self.subject))
        execution = replace(config.execution, **self.execution)
        return config.model_copy(update={"subject": subject, "execution": execution})


def takes_examination_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all flags of an examination; they reach it together, as its argument `flags`."""
    added = {
        "run": RunOption,
        "limit": Annotated[
            int | None, typer.Option(help="Examine at most this many samples of each split, drawn at random.")
        ],
        **{name: _flag(name, *field) for name, field in execution_fields().items()},
        **_ON_SUBJECT,
    }

    @wraps(command)
    def filled(**values: Any) -> Any:
        said = {name: values.pop(name) for name in added}
        return command(
            flags=ExaminationFlags(
                said["run"],
                said["limit"],
                {name: said[name] for name in _ON_SUBJECT if said[name] not in (None, False)},
                {name: said[name] for name in execution_fields() if said[name] is not None},
            ),
            **values,
        )

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "flags":
            parameters += [_parameter(name, flag) for name, flag in added.items()]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    filled.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return filled


def _parameter(name: str, flag: Any) -> inspect.Parameter:
    default = False if get_args(flag)[0] is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=flag)


def _flag(name: str, annotation: Any, meaning: str) -> Any:
    """The flag of an option of the work: as in `ExecutionOptions`, and None where it is not given."""
    choices = get_origin(annotation) is Literal
    plain = str if choices else next(iter(get_args(annotation)), annotation)
    default = getattr(ExecutionOptions, name)
    usual = "" if default is None else f"  [default: {default}]"
    return Annotated[plain | None, typer.Option(help=meaning + usual)]
