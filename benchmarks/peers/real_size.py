"""Whole commands on networks and images of real size, against the bare passes that they ran.

    python benchmarks/peers/real_size.py [--cells coverage:mobilenet_v3 classes:resnet50 …] [--train 96] [--test 96]
                                         [--size 224] [--data array|jpeg] [--device cuda] [--profile FILE]

Each cell is a process of its own. It runs `weakspot examine` with the default options of a room, once over a few inputs
so that everything is imported, then over all of them; then it runs the model alone on as many inputs as often as the
command did, in the same batches: forward, and forward and backward where relevance was asked for. On a GPU the inputs
of these bare passes lie there already. Seconds of the command include loading the model and the data, and writing the
Findings; memory is the peak of the process, with model and torch, scratch is the largest Run with its shards.

With `--data jpeg` the images are files, and beside the bare passes stands the bare decoding of as many.

The networks come from torchvision where it is installed, else from timm. Their weights are random: batch norms are
fitted to the images, and the last layer is scaled so that predictions spread over the classes. Labels are the
predictions, a tenth of them changed (`--changed`). Rows are written one by one; `plan` adds what `weakspot plan` says
and takes.
"""

import argparse
import cProfile
import io
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import bytes_below, largest, machine, read_rows, write_rows
from real_size_case import LIBRARY, NETS, PASSES, SMALL, plain_net, prepared, write_case
from torch import nn

import weakspot
from weakspot.core import replay

HERE = Path(__file__).resolve().parent
ROOMS: dict[str, dict[str, Any]] = {
    "coverage": {"coverage": {}},
    "classes": {"classes": {}},
    "robustness": {"robustness": {"neighbours": {"rotate": 10, "shift": 8}, "looks": 20}},
    "causes": {"causes": {}},
}
ROOMS["all"] = {name: options for room in tuple(ROOMS.values()) for name, options in room.items()}
DEFAULT = [f"{room}:{net}" for net in ("mobilenet_v3", "efficientnet", "resnet50") for room in ("coverage", "classes")]
WARM_UP = {"cpu": 8, "cuda": 512}
SIZES = ("train", "test", "size", "classes", "changed", "data")


def cell(options: argparse.Namespace) -> dict[str, Any]:
    """One command, measured in this process."""
    from weakspot.cli.main import app

    folder = Path(options.folder)
    sys.path.insert(0, str(folder))
    count_replays()

    def command(run: Path, *more: str, name: str = "examine") -> None:
        asked = [name, str(folder / "weakspot.yaml"), "--run", str(run), *more]
        app([*asked, "--quiet"] if name == "examine" else asked, standalone_mode=False)

    with tempfile.TemporaryDirectory(prefix="real-size-") as scratch:
        runs = Path(scratch)
        command(runs / "warm-up", "--limit", str(WARM_UP[options.device.partition(":")[0]]))
        planned = plan_columns(lambda: command(runs / "planned", "--json", name="plan"), options)
        PASSES.clear()
        with largest(lambda: bytes_below(runs / "run"), every=0.2) as scratch_bytes:
            wall, cpu = _seconds(lambda: command(runs / "run"), options.device)
        passes = list(PASSES)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if options.profile:
            profile(lambda: command(runs / "profiled"), Path(options.profile), f"{options.room} {options.net}")
    bare, bare_cpu = bare_seconds(folder, options, passes)
    return {
        "passes_forward": sum(count for count, grad in passes if not grad),
        "passes_backward": sum(count for count, grad in passes if grad),
        "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "peak_gb": round(peak, 2),
        "scratch_gb": round(scratch_bytes[0] / 2**30, 2), "bare_s": round(bare, 2), "bare_cpu_s": round(bare_cpu, 2),
        "ratio": round(wall / bare, 2), "ratio_cpu": round(cpu / bare_cpu, 2), **planned,
        "plan_ratio": round(planned["plan_says_s"] / wall, 2) if planned["plan_says_s"] else "",
    }  # fmt: skip


def count_replays() -> None:
    """Note recorded passes too: no hook runs when they are replayed."""
    replayed = replay._replay

    def noted(recorded: Any, forward: Any, inputs: Any, recorder: Any) -> Any:
        PASSES.append((len(inputs), False))
        return replayed(recorded, forward, inputs, recorder)

    replay._replay = noted


def plan_columns(plan: Callable[[], None], options: argparse.Namespace) -> dict[str, Any]:
    """What `weakspot plan` takes, and what it says that the examination will; nothing where it is not asked."""
    if not options.plan:
        return {"plan_s": "", "plan_says_s": ""}
    told = io.StringIO()
    with redirect_stdout(told):
        taken, _ = _seconds(plan, options.device)
    says = sum(entry["seconds"] for entry in json.loads(told.getvalue()))
    return {"plan_s": round(taken, 2), "plan_says_s": round(says, 2)}


def bare_seconds(folder: Path, options: argparse.Namespace, passes: list[tuple[int, bool]]) -> tuple[float, float]:
    """Wall and processor seconds of the model alone, or of decoding alone where the images are files."""
    images = np.concatenate([np.load(folder / f"{split}.npy", mmap_mode="r") for split in ("train", "test")])
    if options.data == "jpeg":
        read = sum(count for count, _ in passes)
        return _seconds(lambda: decode(folder, read, options), "cpu")
    net = plain_net(options.net, options.classes).eval()
    net.load_state_dict(torch.load(folder / f"{options.net}.pt", weights_only=True))
    there = torch.from_numpy(images).to(options.device)
    net.to(options.device).requires_grad_(False)
    run_bare(net, there, passes[:2])
    return _seconds(lambda: run_bare(net, there, passes), options.device)


def run_bare(net: nn.Module, images: torch.Tensor, passes: list[tuple[int, bool]]) -> None:
    """The model alone, over as many inputs in the same batches, from memory."""
    first = 0
    for count, backward in passes:
        first = 0 if first + count > len(images) else first
        batch = prepared(images[first : first + count])
        first += count
        with torch.set_grad_enabled(backward):
            outputs = net(batch.requires_grad_(backward))
            if backward:
                outputs.amax(1).sum().backward()


def decode(folder: Path, count: int, options: argparse.Namespace) -> None:
    """Decode as many files with as many threads."""
    from weakspot.core.execution_options import ExecutionOptions
    from weakspot.core.source import read_ahead
    from weakspot.data.folders import ImageFolder

    source = ImageFolder(folder / "test")
    places = np.arange(count) % len(source.ids)
    cut = [places[i : i + 64] for i in range(0, count, 64)]
    for _ in read_ahead(source.read, cut, ExecutionOptions().reading_threads):
        pass


def profile(task: Callable[[], None], path: Path, title: str) -> None:
    """Where the main thread's time goes, added to a file."""
    profiler, told = cProfile.Profile(), io.StringIO()
    profiler.runcall(task)
    statistics = pstats.Stats(profiler, stream=told)
    statistics.sort_stats("tottime").print_stats(30)
    statistics.sort_stats("cumtime").print_stats("weakspot", 60)
    with path.open("a") as file:
        file.write(f"{title}\n{told.getvalue()}\n")


def _seconds(task: Callable[[], None], device: str) -> tuple[float, float]:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(room: str, net: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """The row of one cell, from a process of its own; None where it failed or did not end in time."""
    names = (*SIZES, "device", "folder", "profile")
    arguments = [f"--{name}={getattr(options, name)}" for name in names if getattr(options, name)]
    code = "import real_size; real_size.main()"
    command = [sys.executable, "-c", code, "--cell", f"--cells={room}:{net}", *arguments]
    command += ["--plan"] if options.plan else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    if options.threads:
        environment["OMP_NUM_THREADS"] = str(options.threads)
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=options.limit
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{room} {net}: no result ({type(error).__name__})", flush=True)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def commit() -> str:
    """The commit of the source that is measured; with a plus where it was changed since."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude=*"]
    told = subprocess.run(git, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    return os.environ.get("WEAKSPOT_COMMIT", told)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=DEFAULT, help=f"ROOM:NET of {[*ROOMS]} and {[*NETS, *SMALL]}")
    for name, default in (("train", 96), ("test", 96), ("size", 224), ("classes", 100), ("limit", 3600)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--changed", type=float, default=0.1, help="the share of labels that differ from predictions")
    parser.add_argument("--data", choices=("array", "jpeg"), default="array")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--profile", default="", help="a file to which profiles of one more run of each cell go")
    parser.add_argument("--plan", action="store_true", help="ask `weakspot plan` too")
    parser.add_argument("--folder", default="", help="where the case is kept; by default a temporary folder")
    parser.add_argument("--output", type=Path, default=HERE / "real_size.csv")
    parser.add_argument("--cell", action="store_true", help="measure one cell in this process")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.cell:
        options.room, options.net = options.cells[0].split(":")
        options.ask = ROOMS[options.room]
        write_case(Path(options.folder), options)
        print(json.dumps({"machine": machine(options.device), **cell(options)}))
        return
    with tempfile.TemporaryDirectory(prefix="real-size-") as folder:
        options.folder = options.folder or folder
        for room, net in (each.split(":") for each in options.cells):
            row = measured(room, net, options)
            if row is not None:
                keep(options, room, net, row)


def keep(options: argparse.Namespace, room: str, net: str, row: dict[str, Any]) -> None:
    """Write the row, in place of an earlier one of the same machine, cell and sizes."""
    named = {"library": LIBRARY, "room": room, "net": net, **{name: getattr(options, name) for name in SIZES}}
    row = {"machine": row.pop("machine"), "weakspot": weakspot.__version__, "commit": commit(), **named, **row}
    print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    keys = ("machine", "room", "net", *SIZES)
    same = [str(row[key]) for key in keys]
    kept = [old for old in read_rows(options.output) if [old.get(key) for key in keys] != same]
    write_rows(options.output, [*kept, row], columns=list(row))


if __name__ == "__main__":
    main()
