"""`weakspot robustness`: which inputs are weak, and a guard to take along."""

from pathlib import Path
from typing import Annotated

import typer

from weakspot.cli.arguments import ConfigFile, ExaminationFlags, Quiet, takes_examination_flags
from weakspot.cli.room_commands import ask_command, asking_alone, question

app = typer.Typer(cls=question("ask"))
app.command("ask", help=asking_alone("robustness"))(ask_command("robustness"))


@app.command("export-guard")
@takes_examination_flags
def export(
    *,
    config: ConfigFile,
    output: Annotated[Path, typer.Option(help="The new folder.")] = Path("guard"),
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write model and guard together as guarded.onnx.")] = False,
    flags: ExaminationFlags,
    quiet: Quiet = False,
) -> None:
    """Write the guard of a Run as safetensors and JSON, with a loader that needs PyTorch alone."""
    from weakspot.asking.config import read_config
    from weakspot.asking.session import prepare, run_folder
    from weakspot.cli.session import tell_notes
    from weakspot.core.run import Run
    from weakspot.robustness.guard_file import export_guard, guarded_model, prediction_guard

    asked = flags.applied(read_config(config))
    run = Run.open(run_folder(config, asked, flags.run))
    found, guarded = prediction_guard(run), None
    if onnx:
        loaded, _ = prepare(asked, config.parent, limit=flags.limit)
        tell_notes(loaded, silent=quiet)
        guarded = guarded_model(run, loaded.subject)
    written = export_guard(found, output, guarded=guarded)
    if not quiet:
        typer.echo("\n".join(map(str, written)))
