"""What the scripts of this folder share: each line of a CSV says what was tried, where and with which commit."""

import csv
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import weakspot

HERE = Path(__file__).resolve().parent
COLUMNS = ("what", "tried", "wrong", "seconds", "cpu", "cores", "python", "torch", "weakspot", "commit")
Trial = tuple[str, int, Callable[[Path, int], int]]
"""What is tried, how often, and a function of an empty folder and that number that counts what went wrong."""


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()


def environment() -> list[object]:
    """CPU, cores, versions, and the commit, with `-dirty` where a file other than these CSVs differs from it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    commit = _git("rev-parse", "--short", "HEAD") + ("-dirty" if _git("status", "--porcelain", ":/", ":!*.csv") else "")
    cpu = names[0] if names else platform.processor()
    return [cpu, os.cpu_count(), platform.python_version(), torch.__version__, weakspot.__version__, commit]


def record(name: str, trials: Sequence[Trial]) -> None:
    """Make every trial and write `<name>.csv`."""
    about, table = environment(), []
    for what, count, measure in trials:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            wrong = measure(Path(folder), count)
        table.append([what, count, wrong, f"{time.perf_counter() - begun:.0f}", *about])
        print(*table[-1], flush=True)
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *table])
