"""The command of a question: it asks that question alone; a room may have further commands beside it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from weakspot.cli.arguments import (
    Address,
    BatchSize,
    ChannelsLast,
    Compile,
    ConfigFile,
    Device,
    Engine,
    EngineWorkers,
    GpusPerWorker,
    Json,
    Limit,
    OnBadSample,
    Precision,
    Quiet,
    RunOption,
    SetOption,
    Threads,
)
from weakspot.rooms import QUESTIONS

if TYPE_CHECKING:
    from weakspot.cli.config import Config
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
    return f"{QUESTIONS[room]} Asks this alone, with the file's options and those given here."


def with_inference_options(config: "Config", precision: str | None, compile: bool, channels_last: bool) -> "Config":
    """The configuration with the inference options of the command line."""
    given = {"precision": precision, "compile": compile, "channels_last": channels_last}
    subject = config.subject.model_copy(update={way: value for way, value in given.items() if value})
    return config.model_copy(update={"subject": subject})


def with_settings(config: "Config", room: str, settings: Sequence[str] | None) -> "Config":
    """The configuration with one room asked alone, with the file's options and those set here."""
    from weakspot.cli.settings import check_settings, read_settings

    written, given = config.ask.get(room) or {}, read_settings(settings or [])
    if given:
        check_settings(room, written, given)
    return config.model_copy(update={"ask": {room: {**written, **given}}})


def engine_options(
    engine: str, address: str | None, workers: int | None, gpus_per_worker: float | None
) -> dict[str, Any]:
    """Who is to do the work, as asked for."""
    options = {"address": address, "workers": workers, "gpus_per_worker": gpus_per_worker}
    return {"engine": engine, **{name: value for name, value in options.items() if value is not None}}


def ask_command(room: str, samples_per_batch: int = 64) -> Any:
    """The command that asks one question of a room, by default with so many samples per batch."""

    def ask(
        config: ConfigFile,
        settings: SetOption = None,
        run: RunOption = None,
        limit: Limit = None,
        batch_size: BatchSize = samples_per_batch,
        on_bad_sample: OnBadSample = "stop",
        device: Device = None,
        precision: Precision = None,
        compile: Compile = False,
        channels_last: ChannelsLast = False,
        threads: Threads = None,
        engine: Engine = "local",
        address: Address = None,
        engine_workers: EngineWorkers = None,
        gpus_per_worker: GpusPerWorker = None,
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        from weakspot.cli.config import read_config

        read = with_inference_options(read_config(config), precision, compile, channels_last)
        asked = with_settings(read, room, settings)
        execution = {"batch_size": batch_size, "on_bad_sample": on_bad_sample, "threads": threads}
        doing = engine_options(engine, address, engine_workers, gpus_per_worker)
        how = {"limit": limit, "execution": execution, "device": device, "engine": doing}
        answer(config, asked, run, how, as_json=as_json, quiet=quiet)

    return ask


def answer(
    file: Path, config: "Config", run: Path | None, how: Mapping[str, Any], *, as_json: bool, quiet: bool
) -> None:
    """Answer what a configuration asks, and print it."""
    from weakspot.cli import session

    target = session.run_folder(file, config, run)
    findings = session.examine(config, file.parent, target, silent=quiet or as_json, **how)
    tell(findings, target, as_json=as_json, quiet=quiet)


def tell(findings: Sequence["Finding"], target: Path, *, as_json: bool, quiet: bool) -> None:
    from weakspot.cli.printing import finding_entry, print_finding

    if as_json:
        typer.echo(json.dumps([finding_entry(finding) for finding in findings], indent=1))
    elif not quiet:
        for finding in findings:
            print_finding(finding, rows=0)
        typer.echo(f"run: {target}")
