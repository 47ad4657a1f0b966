"""What the benchmarks share: interleaved timing, peak memory, the machine's name, and one way to write results."""

import csv
import os
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

SHARED = Path(os.environ.get("WEAKSPOT_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))


def machine(device: str) -> str:
    """The processor or GPU, the number of threads, and torch's version."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    names = [line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")]
    name = names[0] if names else platform.processor()
    return f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


@contextmanager
def largest(measure: Callable[[], int], *, every: float = 0.01) -> Iterator[list[int]]:
    """The largest value of a measure while this lasts, looked at every so many seconds, as the one entry of a list."""
    found, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(every):
            found[0] = max(found[0], measure())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def bytes_below(folder: Path) -> int:
    """The bytes of the files in a folder; one that is just removed counts for none."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


def interleaved(
    tasks: Mapping[str, Callable[[], Any]],
    repeats: int,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each task, one after another in every round, so that all meet the same load; one round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for round_number in range(repeats + 1):
        for name, task in tasks.items():
            _wait(device)
            begun = clock()
            task()
            _wait(device)
            if round_number:
                seconds[name].append(clock() - begun)
    return seconds


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def ratio(seconds: Mapping[str, Sequence[float]], task: str, base: str) -> float:
    """Median over the rounds of task / base."""
    return statistics.median(t / b for t, b in zip(seconds[task], seconds[base], strict=True))


def architectures() -> Any:
    """The definitions of the trained models, from the shared folder."""
    folder = SHARED / "models"
    if not folder.is_dir():
        sys.exit(f"needs the shared models: {folder} is missing, set $WEAKSPOT_SHARED")
    sys.path.insert(0, str(folder))
    import architectures

    return architectures


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Replace the rows of the machines measured now, keep those of others."""
    measured = {row["machine"] for row in rows}
    kept = [row for row in read_rows(path) if row["machine"] not in measured]
    write_rows(path, [*kept, *rows], columns=list(rows[0]))
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in row.items()))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], *, columns: Sequence[str] | None = None) -> None:
    """Write these rows and no others; the columns are those of the first unless given."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=columns or list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV; none where it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
