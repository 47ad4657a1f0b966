"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path, typer.Argument(help="The file that says what to examine, usually weakspot.yaml.")]
RunFolder = Annotated[Path, typer.Argument(help="The folder of a Run.")]
RunOption = Annotated[
    Path | None, typer.Option("--run", help="Folder of the Run; by default runs/ and the file's name.")
]
Limit = Annotated[int | None, typer.Option(help="Examine at most so many samples of each split, drawn at random.")]
ProbeOption = Annotated[
    list[str] | None, typer.Option("--probe", help="Ask this probe too: its name, or module:Class.")
]
BatchSize = Annotated[int, typer.Option(help="Samples per forward pass.")]
ShardSize = Annotated[int, typer.Option(help="Samples per unit of work that is kept when a run is interrupted.")]
Workers = Annotated[int, typer.Option(help="Threads that read ahead.")]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Threads that torch computes with; by default as the run was begun, else one per core, or one with ray."
    ),
]
Engine = Annotated[str, typer.Option(help="Who does the work: local, or ray for many cores, GPUs or machines.")]
Address = Annotated[
    str | None, typer.Option(help="ray: a cluster that is there; by default Ray is started on this machine.")
]
EngineWorkers = Annotated[
    int | None, typer.Option(help="ray: how many workers; by default one per GPU, or per core where there is none.")
]
GpusPerWorker = Annotated[
    float | None, typer.Option(help="ray: GPUs of each worker, or a part of one; by default 1 on a GPU, else 0.")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 …; by default what the file says.")]
OnBadSample = Annotated[
    str, typer.Option(help="stop at a sample that cannot be used, with its name; or skip it, and list it.")
]
Precision = Annotated[str | None, typer.Option(help="float32 or bf16; by default what the file says.")]
Compile = Annotated[bool, typer.Option("--compile", help="Run the model through torch.compile where possible.")]
ChannelsLast = Annotated[
    bool, typer.Option("--channels-last", help="Hand the model images with the channels innermost in memory.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the question, as name=value; may be given several times."),
]
