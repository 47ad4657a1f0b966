"""Known ways to hang, crash or fool the command line, each once, in a process of its own as a user starts it.

    python benchmarks/faults/command_line.py

Writes `command_line.csv` beside this file. Right is exit code 2 within two minutes, one line that starts with
`weakspot: `, no trace-back, and no Run.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults.recording import record
from tests.cli.calling import make_project
from tests.cli.damaging import OF_RUN, make_all
from tests.cli.test_hostile import CALL, OWN, YAML

SECONDS = 120
EXAMINE = ("examine", "weakspot.yaml")


def _nothing(folder: Path) -> None:
    """The call alone is wrong."""


@dataclass(frozen=True)
class Case:
    """What is wrong with a good project, and the call that meets it."""

    call: tuple[str, ...] = EXAMINE
    spoil: Callable[[Path], None] = _nothing
    yaml: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def fifo(name: str) -> Callable[[Path], None]:
    """A FIFO in the place of a file."""

    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return spoil


def written(name: str, content: str | bytes) -> Callable[[Path], None]:
    """A file with this content."""

    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def listed_provenance(folder: Path) -> None:
    """A list where the provenance of a Finding belongs."""
    path = folder / OF_RUN / "finding.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "provenance": ["a", "b"]}))


def damaged_header(folder: Path) -> None:
    """An npy file with 200 kB of brackets as its header."""
    np.save(folder / "x.npy", np.zeros((6, 3), np.float32))
    header = b"[" * 200_000
    (folder / "x.npy").write_bytes(b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header)


def library(folder: Path) -> None:
    """An installed library that fails when it is imported."""
    package = folder / "site-packages" / "brokenlib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')\n")


def dead_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


def bundle_with_folder(folder: Path) -> None:
    """A bundle of evidence that holds a folder in the place of a file."""
    command = [sys.executable, "-c", CALL, "evidence", "run", "--output", "bundle"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "bundle" / "SHA256SUMS").unlink()
    (folder / "bundle" / "SHA256SUMS").mkdir()


CASES = {
    "a FIFO as weakspot.yaml": Case(spoil=fifo("weakspot.yaml")),
    "a FIFO as data": Case(spoil=fifo("data.npz")),
    "a FIFO as a policy": Case(("gate", "run", "policy.yaml"), fifo("policy.yaml")),
    "a FIFO as run.json": Case(("report", "run"), fifo("run/run.json")),
    "a FIFO as a table": Case(("show", "run"), fifo(f"{OF_RUN}/table.parquet")),
    "a port where no Ray listens": Case((*EXAMINE, "--engine", "ray", "--address", dead_port())),
    "a Ray that does not start": Case((*EXAMINE, "--engine", "ray"), environment={"RAY_TMPDIR": "/proc/nowhere"}),
    "classes: 1000000000": Case(yaml={"more": ", classes: 1000000000"}),
    "a YAML list of 10 MB": Case(spoil=written("weakspot.yaml", "a: [" + "0, " * 3_500_000 + "]")),
    "a CSV delimiter of no character": Case(yaml={"data": "{path: list.csv, delimiter: ''}"}),
    "a CSV delimiter of two characters": Case(yaml={"data": "{path: list.csv, delimiter: ',,'}"}),
    "a damaged header of an npy file": Case(spoil=damaged_header, yaml={"data": "x.npy"}),
    "outputs that are bool": Case(yaml={"model": "Gives", "more": ", arguments: {kind: bool}"}),
    "outputs that are complex": Case(yaml={"model": "Gives", "more": ", arguments: {kind: complex64}"}),
    "--threads 100000": Case((*EXAMINE, "--threads", "100000")),
    "a folder in a bundle of evidence": Case(("evidence", "verify", "bundle"), bundle_with_folder),
    "JSON nested 100000 deep": Case(("report", "run"), written("run/run.json", "[" * 100_000)),
    "a provenance that is a list": Case(("show", "run"), listed_provenance),
    "half a surrogate pair in classes": Case(yaml={"more": ', classes: ["a", "\\ud800"]'}),
    "half a surrogate pair in run.json": Case(
        ("report", "run"), written("run/run.json", rb'{"format": "weakspot-run", "version": 1, "a": "\ud800"}')
    ),
    "a model that calls sys.exit(0)": Case(yaml={"model": "Ends"}),
    "a module that calls sys.exit(0)": Case(
        ("init", "--model", "quits:net", "--test", "data.npz", "--output", "new.yaml"),
        written("quits.py", "import sys\nsys.exit(0)\n"),
    ),
    "a library that cannot be imported": Case(
        ("init", "--model", "brokenlib:net", "--test", "data.npz", "--output", "new.yaml"), library
    ),
}


def measure(case: Case) -> Callable[[Path, int], int]:
    """Whether the call ends otherwise than it should, as 0 or 1."""

    def ended_wrong(base: Path, _: int) -> int:
        folder = make_all(base / "project")
        project = make_project(folder)  # its data replace those of the same name
        with (folder / f"{project.module}.py").open("a") as module:
            module.write(OWN)
        config = {"model": "net", "more": "", "data": "data.npz", **case.yaml}
        project.write(YAML.format(module=project.module, **config))
        case.spoil(folder)
        return _troubles(folder, case)

    return ended_wrong


def _troubles(folder: Path, case: Case) -> int:
    paths = [*sys.path, str(folder / "site-packages")]
    environment = {**os.environ, **case.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", CALL, *case.call]
    try:
        ended = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        print(case.call, f"not done after {SECONDS} s", file=sys.stderr)
        return 1
    lines = [line for line in ended.stderr.splitlines() if line.startswith("weakspot: ")]
    left = [name for name in ("runs", "new.yaml") if (folder / name).exists()]
    wrong = ended.returncode != 2 or len(lines) != 1 or "Traceback" in ended.stderr or "defect" in lines[0] or left
    print("   ", *lines, file=sys.stderr)
    if wrong:
        print(case.call, ended, left, file=sys.stderr)
    shutil.rmtree(folder)
    return int(bool(wrong))


def main() -> None:
    """Measure and write the CSV."""
    record("command_line", [(name, 1, measure(case)) for name, case in CASES.items()])


if __name__ == "__main__":
    main()
