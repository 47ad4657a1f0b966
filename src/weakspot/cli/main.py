"""The command line: parses, calls the library, prints. Everything heavy is imported inside the commands."""

import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from weakspot._version import __version__
from weakspot.cli import causes, classes, lesions, robustness, share, verdict_commands, view
from weakspot.cli.arguments import (
    ConfigFile,
    Device,
    ExaminationFlags,
    Json,
    ProbeOption,
    Quiet,
    RunFolder,
    takes_examination_flags,
)
from weakspot.cli.room_commands import answer, ask_command, asking_alone
from weakspot.cli.share import KeyFile, Pictures, Pseudonyms
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.own_process import allow_many_files, keep_freed_memory
from weakspot.rooms import QUESTIONS

if TYPE_CHECKING:
    from weakspot.core.source import Source
    from weakspot.core.subject import Subject

app = typer.Typer(
    help="Find where a neural network can't be trusted, see why, and check the fix.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_SHOWN = {"traceback": False}
_PIPE_CLOSED = 141
"""As a shell tells of a program whose reader, such as `head`, had seen enough."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def main(
    trace: Annotated[
        bool, typer.Option("--traceback", help="Show where an error was raised.", envvar="WEAKSPOT_TRACEBACK")
    ] = False,
    _: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find where a neural network can't be trusted, see why, and check the fix."""
    _SHOWN["traceback"] = trace


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


@app.command()
def demo(
    run: Annotated[Path, typer.Option("--run", help="Folder of the Run.")] = Path("runs/demo"),
    quiet: Quiet = False,
) -> None:
    """Examine a small gaze detector on simulated eyes, and write a report."""
    from weakspot.cli import session
    from weakspot.cli.demo import CONFIG
    from weakspot.cli.printing import print_answers

    findings = session.examine(CONFIG, Path.cwd(), run, silent=quiet)
    if not quiet:
        print_answers(findings)
        typer.echo(f"all numbers: weakspot show {run}")
    report(run, quiet=quiet)


@app.command()
def init(
    model: Annotated[str, typer.Option(help="module:name of a class, function or nn.Module; or a .pt2 or .onnx file.")],
    test: Annotated[str, typer.Option(help="Test data: a folder, a file, module:function, or a mapping in YAML.")],
    train: Annotated[str | None, typer.Option(help="Training data, as for --test.")] = None,
    pool: Annotated[
        str | None, typer.Option(help="Unlabelled data, from which images to label are chosen; as for --test.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A safetensors file, or a state dict.")] = None,
    weights_entry: Annotated[str | None, typer.Option(help="Which part of a checkpoint holds the weights.")] = None,
    arguments: Annotated[
        str | None, typer.Option(help="Arguments of the class or function, as a mapping in YAML.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="classification, multilabel, regression, keypoints or segmentation.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Their number, their names as a list in YAML, or a file with a name per line.")
    ] = None,
    scores: Annotated[str | None, typer.Option(help="What the outputs are: logits or probabilities.")] = None,
    bounds: Annotated[str | None, typer.Option(help="Smallest and largest value of an input, as [0, 1].")] = None,
    preprocess: Annotated[str | None, typer.Option(help="module:function, or numbers: {mean: 0.5, std: 0.5}.")] = None,
    model_output: Annotated[
        str | None, typer.Option(help="Which part of the model's output to use: a name or a position.")
    ] = None,
    device: Device = None,
    output: Annotated[Path, typer.Option(help="The file to write.")] = Path("weakspot.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Run some of the data through the model, print what was found, and write a first weakspot.yaml."""
    from weakspot.cli.init import begin, data_entries, subject_entry, summary_lines
    from weakspot.core.files import write_text

    if output.exists() and not force:
        raise ConfigError(f"{output} already exists: choose another with --output, or write over it with --force")
    entry = {
        "model": model, "arguments": arguments, "weights": weights, "weights_entry": weights_entry, "task": task,
        "classes": classes, "scores": scores, "bounds": bounds, "preprocess": preprocess, "output": model_output,
        "device": device,
    }  # fmt: skip
    data = data_entries({"train": train, "test": test, "pool": pool}, output)
    begun = begin(subject_entry(entry, output), data, output)
    for note in begun.notes:
        typer.echo(f"weakspot: {note}", err=True)
    write_text(output, begun.text)
    typer.echo("\n".join([*summary_lines(begun), f"wrote {output}; next: weakspot examine {output} --limit 500"]))


@app.command()
@takes_examination_flags
def examine(
    *,
    config: ConfigFile,
    probe: ProbeOption = None,
    flags: ExaminationFlags,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer the questions in the file. After an interruption, the same command resumes where it stopped."""
    from weakspot.asking.config import read_config

    answer(config, flags.applied(read_config(config)), flags, probes=probe or [], as_json=as_json, quiet=quiet)


_WITH_MORE = {"causes": causes.app, "classes": classes.app, "lesions": lesions.app, "robustness": robustness.app}
"""Rooms that have further commands beside their question."""
for _room, _question in QUESTIONS.items():
    if _room in _WITH_MORE:
        app.add_typer(_WITH_MORE[_room], name=_room, help=_question)
    else:
        app.command(_room, help=asking_alone(_room))(ask_command(_room))


@app.command()
@takes_examination_flags
def plan(
    *,
    config: ConfigFile,
    probe: ProbeOption = None,
    inference_options: Annotated[
        bool, typer.Option(help="Instead, try faster inference options: how much faster each is, and what it changes.")
    ] = False,
    flags: ExaminationFlags,
    as_json: Json = False,
) -> None:
    """Estimate the passes, time, memory and disk of an examination, by trying a few batches."""
    from weakspot.asking.config import read_config
    from weakspot.asking.session import prepare, run_folder
    from weakspot.cli.printing import cost_entry, print_costs
    from weakspot.cli.session import tell_notes
    from weakspot.core.costs import costs
    from weakspot.core.run import MANIFEST, Run

    asked = flags.applied(read_config(config))
    loaded, planned = prepare(asked, config.parent, limit=flags.limit, probes=probe or [])
    tell_notes(loaded, silent=as_json)
    if inference_options:
        _try_inference_options(
            loaded.subject, next(iter(loaded.data.values())), asked.execution.batch_size, as_json=as_json
        )
        return
    folder = run_folder(config, asked, flags.run)
    before = Run.open(folder) if (folder / MANIFEST).exists() else None
    forecast = list(costs(planned, loaded.subject, loaded.data, before, execution=asked.execution))
    if as_json:
        typer.echo(json.dumps([cost_entry(cost, planned.names) for cost in forecast], indent=1))
    else:
        print_costs(forecast, planned.names)


def _try_inference_options(subject: "Subject", source: "Source", batch_size: int | None, *, as_json: bool) -> None:
    from dataclasses import asdict

    import numpy as np

    from weakspot.cli.printing import print_inference_options
    from weakspot.core.batch_size import chosen_batch_size
    from weakspot.core.speed import try_inference_options

    if batch_size is None:
        first = source.read(np.arange(1)).inputs
        batch_size = chosen_batch_size(subject.model, first, subject.layers(first), subject.device)
    batch = source.read(np.arange(min(batch_size, len(source.ids))))
    tried = list(try_inference_options(subject, batch.inputs, compile=True))
    if as_json:
        typer.echo(json.dumps([asdict(way) for way in tried], indent=1))
    else:
        print_inference_options(tried)


@app.command()
def layers(config: ConfigFile, device: Device = None, as_json: Json = False) -> None:
    """List the layers of the model, with their shapes and the activation that follows each."""
    from dataclasses import asdict

    import numpy as np

    from weakspot.asking.config import read_config
    from weakspot.asking.loading import load
    from weakspot.cli.printing import print_layers

    loaded = load(read_config(config), config.parent, device=device)
    listed = loaded.subject.layers(next(iter(loaded.data.values())).read(np.arange(1)).inputs)
    if as_json:
        typer.echo(json.dumps([{**asdict(layer), "label": layer.label} for layer in listed], indent=1))
    elif listed:
        print_layers(listed)
    else:
        typer.echo("the model is a black box: there are no layers to look into")


@app.command()
def show(
    run: RunFolder,
    name: Annotated[str | None, typer.Argument(help="A Finding of the Run; without it all are shown.")] = None,
    rows: Annotated[int, typer.Option(help="Rows of the table to print.", min=0)] = 10,
    as_json: Json = False,
) -> None:
    """Print the Findings of a Run."""
    from weakspot.cli.error_attribution import reading
    from weakspot.cli.printing import finding_entry, print_finding
    from weakspot.core.run import Run

    with reading(run):
        opened = Run.open(run)
        findings = [opened[name]] if name else list(opened)
        if as_json:
            typer.echo(json.dumps([finding_entry(finding, rows if name else None) for finding in findings], indent=1))
            return
        for finding in findings:
            print_finding(finding, rows if name else 0)


@app.command()
def laws(
    probe: Annotated[str, typer.Argument(help="The probe: its name, or module:Class.")],
    folder: Annotated[Path, typer.Option(help="The folder of the module.")] = Path(),
    quiet: Quiet = False,
) -> None:
    """Test a probe: batch size, shards, order, engine and interruptions must not change its Finding."""
    from weakspot.asking.loading import modules_beside
    from weakspot.laws import LAWS, check
    from weakspot.registry import find_probe

    with modules_beside(folder):
        probe_class = find_probe(probe)
        check(probe_class)
    if not quiet:
        typer.echo(f"{probe_class.name()} keeps all {len(LAWS)} laws, for {', '.join(probe_class.tasks)}")


@app.command()
def report(
    run: RunFolder,
    output: Annotated[Path | None, typer.Option(help="The file to write; by default report.html in the Run.")] = None,
    pictures: Pictures = True,
    pseudonyms: Pseudonyms = False,
    key: KeyFile = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="A file with rules: the report begins with what follows from them.")
    ] = None,
    baseline: verdict_commands.Baseline = None,
    quiet: Quiet = False,
) -> None:
    """Write a Run as one HTML file that opens without a network."""
    from weakspot.cli.error_attribution import reading
    from weakspot.cli.share import shown
    from weakspot.core.run import Run
    from weakspot.gate.output import as_sentence, open_points
    from weakspot.report.html import write_report
    from weakspot.report.view_models import ShownVerdict

    if baseline is not None and policy is None:
        raise ConfigError("--baseline is what the rules of a policy compare with: give --policy, too")
    with reading(run, baseline), shown(Run.open(run), pictures=pictures, pseudonyms=pseudonyms, key=key) as what:
        verdict = None if policy is None else verdict_commands.verdict_of(Run.open(run), policy, baseline)
        summary = None if verdict is None else ShownVerdict(as_sentence(verdict), open_points(verdict))
        written = write_report(what, output or run / "report.html", summary)
    if not quiet:
        typer.echo(f"report: {written}")


verdict_commands.register(app)
view.register(app)
share.register(app)


def run() -> None:
    """The command `weakspot`: exit code 0 when all is well, 1 when a gate failed, 2 for an error."""
    keep_freed_memory()
    allow_many_files()
    for stream in (sys.stdout, sys.stderr):  # names that the terminal cannot show are told all the same
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = app(args=sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        sys.stdout.flush()
    except WeakspotError as error:
        _fail(error, error)
    except typer.Abort as stopped:
        if isinstance(stopped.__context__, EOFError):  # to typer the same as Ctrl-C
            _failed(stopped.__context__)
        sys.exit(130)
    except SystemExit as error:
        _ended(error)
    except Exception as error:
        _failed(error)
    sys.exit(code)


def _ended(ended: SystemExit) -> NoReturn:
    """Something ended the program: weakspot itself, a reader who has seen enough, or a model, which is an error."""
    from weakspot.cli.error_attribution import ended_early

    if isinstance(ended.__context__, BrokenPipeError):
        _failed(ended.__context__)
    problem = ended_early(ended)
    if problem is None:
        raise ended
    _fail(problem, ended)


def _failed(error: Exception) -> NoReturn:
    """What is no error of weakspot's own kinds: told in a line, unless it is a defect."""
    from weakspot.cli.error_attribution import user_error

    problem = _wrong_call(error) or user_error(error)
    if problem is None and isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the rest at its end
        sys.exit(_PIPE_CLOSED)
    if problem is None:
        traceback.print_exception(error)
        problem = WeakspotError("this is a defect of weakspot: please report it, with what is printed above")
    _fail(problem, error)


def _wrong_call(error: Exception) -> ConfigError | None:
    """What typer has to say of options and arguments, if it is that."""
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    command = "weakspot" if context is None else context.command_path
    return ConfigError(f"{error.format_message()} (`{command} --help` lists what there is)")


def _fail(problem: WeakspotError, error: BaseException) -> NoReturn:
    """Say what is wrong, with all that was being done if that is asked for, and end."""
    if _SHOWN["traceback"]:
        traceback.print_exception(error)
    from weakspot.cli.printing import printable

    message = str(problem).partition("\n\nWhile executing %")[0]  # what torch adds inside an exported model
    typer.echo(f"weakspot: {printable(message, lines=True)}", err=True)
    if getattr(problem, "end_at_once", False):
        sys.stdout.flush()
        os._exit(2)
    sys.exit(2)
