"""The command of a question: it asks that question alone; a room may have further commands beside it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from weakspot.cli.arguments import (
    ConfigFile,
    ExaminationFlags,
    Json,
    Quiet,
    SetOption,
    takes_examination_flags,
)
from weakspot.rooms import QUESTIONS

if TYPE_CHECKING:
    from weakspot.asking.config import Config
    from weakspot.core.finding import Finding


def question(asks: str) -> type[TyperGroup]:
    """A group of commands of which `asks` is meant where none is named: `weakspot causes weakspot.yaml`."""

    class Question(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            return super().parse_args(ctx, args or ["--help"])

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer keeps the types of these to itself
            if args and args[0] not in self.commands:
                args = [asks, *args]
            return super().resolve_command(ctx, args)

    return Question


def asking_alone(room: str) -> str:
    """What the command of a question does, in a line."""
    return f"{QUESTIONS[room]} Asks only this, with the options in the file and --set."


def with_settings(config: "Config", room: str, settings: Sequence[str] | None) -> "Config":
    """The configuration with one room asked alone, with the file's options and those set here."""
    from weakspot.cli.settings import check_settings, read_settings

    written, options = config.ask.get(room) or {}, read_settings(settings or [])
    if options:
        check_settings(room, written, options)
    return config.model_copy(update={"ask": {room: {**written, **options}}})


def ask_command(room: str) -> Callable[..., Any]:
    """The command that asks the one question of a room."""

    @takes_examination_flags
    def ask(
        *,
        config: ConfigFile,
        settings: SetOption = None,
        flags: ExaminationFlags,
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        from weakspot.asking.config import read_config

        asked = with_settings(flags.applied(read_config(config)), room, settings)
        answer(config, asked, flags, as_json=as_json, quiet=quiet)

    return ask


def answer(
    file: Path,
    config: "Config",
    flags: ExaminationFlags,
    *,
    probes: Sequence[str] = (),
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer what a configuration asks, and print it."""
    from weakspot.asking.session import run_folder
    from weakspot.cli import session

    target = run_folder(file, config, flags.run)
    silent = quiet or as_json
    findings = session.examine(config, file.parent, target, limit=flags.limit, probes=probes, silent=silent)
    tell(findings, target, as_json=as_json, quiet=quiet)


def tell(findings: Sequence["Finding"], target: Path, *, as_json: bool, quiet: bool) -> None:
    from weakspot.cli.printing import finding_entry, print_finding

    if as_json:
        typer.echo(json.dumps([finding_entry(finding) for finding in findings], indent=1))
    elif not quiet:
        for finding in findings:
            print_finding(finding, rows=0)
        typer.echo(f"run: {target}")
