"""How fast the viewer opens and stays: a Run of 100,000 samples, pictures of 32 × 32 pixels and some twenty columns.

    python benchmarks/peers/viewer.py

The command itself, as a user starts it, asked through loopback one question after another. `start` is from the command
to the address it prints, `page` to the first page, `samples` to the first 200 samples with all that is known of them;
everything else is the median of several questions of a kind, each asked once, so that nothing is remembered. Bars:
samples within 1.5 s of the command, every other question under 50 ms. `memory` is the process's largest, in MB.
"""

import http.client
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import machine, write

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.viewer.runs import make_big

Ask = Callable[[str], float]
ROUNDS = 9
KINDS: dict[str, Callable[[int], str]] = {
    "a page of 200": lambda n: f"samples?limit=200&offset={n * 9999}",
    "filter": lambda n: f"samples?filter=metadata.light:above:0.{n + 1}&filter=wrong:is:yes",
    "filter by text": lambda n: f"samples?filter=target:is:top&filter=metadata.blur:below:0.{n + 1}",
    "sort": lambda n: f"samples?sort={'-' * (n % 2)}{('entropy', 'concentration', 'low', 'high', 'accuracy')[n // 2]}",
    "filter and sort": lambda n: f"samples?filter=metadata.angle:above:0.{n + 1}&sort=-consistency",
    "search": lambda n: f"samples?search={n}{n}",
    "sheet of 256 pictures": lambda n: "sheet/test?positions=" + ",".join(str(n + 390 * k) for k in range(256)),
    "a column for the map": lambda n: f"samples/column?column={('x', 'y', 'accuracy')[n % 3]}",
    "positions of all": lambda n: f"samples/positions?sort=metadata.{('light', 'blur', 'angle')[n % 3]}&search={n}",
}


@contextmanager
def forward_pass(run: Path) -> Iterator[tuple[Ask, float, int]]:
    """Ask the command: `ask(path)` gives seconds; with it when the command was called, and its process."""
    begun = time.perf_counter()
    command = [sys.executable, "-c", "from weakspot.cli.main import run; run()", "view", str(run), "--no-browser"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        port, token = re.findall(r":(\d+)/\?token=(\S+)", line)[0]
        connection = http.client.HTTPConnection("127.0.0.1", int(port))

        def ask(path: str) -> float:
            started = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": f"weakspot-{port}={token}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            return time.perf_counter() - started

        yield ask, begun, process.pid
        connection.close()
        process.send_signal(signal.SIGINT)


def peak(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def main() -> None:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        run = make_big(Path(folder) / "run", side=32)
        starts = []
        for _ in range(5):
            with forward_pass(run) as (ask, begun, _):
                marks = [time.perf_counter() - begun]
                for path in ("/samples", "/api/samples?limit=200"):
                    ask(path)
                    marks.append(time.perf_counter() - begun)
                starts.append(marks)
        for place, what in enumerate(("start", "page", "samples")):
            times = [marks[place] for marks in starts]
            rows.append({"what": what, "median": 1000 * statistics.median(times), "slowest": 1000 * max(times)})
        with forward_pass(run) as (ask, _, process):
            ask("/api/samples?limit=200")
            for what, path in KINDS.items():
                times = [ask(f"/api/{path(number)}") for number in range(ROUNDS)]
                rows.append({"what": what, "median": 1000 * statistics.median(times), "slowest": 1000 * max(times)})
            rows.append({"what": "memory in MB", "median": peak(process), "slowest": peak(process)})
    shown = [{"what": row["what"], **{key: f"{row[key]:.1f}" for key in ("median", "slowest")}} for row in rows]
    write(Path(__file__).with_suffix(".csv"), [{"machine": machine("cpu"), **row} for row in shown])


if __name__ == "__main__":
    main()
