"""How fluid the viewer is in Chromium: a Run of 100,000 samples, pictures of 32 × 32 pixels and some twenty columns.

    python benchmarks/peers/viewer_browser.py

`cold` is from the call of the page of samples, right after the command printed its address, until every cell in view
has its picture and its words; `again` the same later; `jump` from a jump to a far place until all in view is there. All
in milliseconds; bar: 1 s. `blank` counts frames of a steady scroll in which a row was without pictures, by pixels a
frame; bar: none. `wheel` is the time between two pictures of the screen while the map of all samples is zoomed.
`lesions` is from the call of the page of lesions, right after the command printed its address, until the three planes
of a case of 512×512×192 are drawn, its file out of the page cache; bar: 1 s.
"""

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import machine, write
from viewer_lesions import lesion_findings, out_of_the_page_cache

from weakspot.core.run import Run

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.report.browser import Browser, installed, running
from tests.viewer.driving import settled
from tests.viewer.fluidity import first_planes, first_view, jumps, steady_scroll, wheel_frames
from tests.viewer.runs import make_big

WINDOW = {"width": 1280, "height": 800}


@contextmanager
def forward_pass(run: Path) -> Iterator[tuple[str, str]]:
    """The command as a user starts it: the address it prints, and the token."""
    command = [sys.executable, "-c", "from weakspot.cli.main import run; run()", "view", str(run), "--no-browser"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        yield re.findall(r"(http\S+)/\?(token=\S+)", line)[0]
        process.terminate()


def lesions(browser: Browser, folder: Path) -> list[float]:
    """Three times until the planes of a large case are drawn."""
    run, took = Run.create(folder), []
    for finding in lesion_findings():
        run.save(finding)
    for _ in range(3):
        out_of_the_page_cache(run.finding_folder("lesions.case_volumes") / "image_0000.npy")
        with forward_pass(folder) as (address, token):
            took.append(first_planes(browser.open(f"{address}/lesions?{token}", **WINDOW)))
    return took


def row(what: str, values: Sequence[float]) -> dict[str, str]:
    return {"what": what, "median": f"{statistics.median(values):.1f}", "worst": f"{max(values):.1f}"}


def main() -> None:
    executable = installed()
    assert executable, "needs chromium: apt-get install chromium"
    rows, cold = [], []
    with tempfile.TemporaryDirectory() as folder, running(executable) as browser:
        run = make_big(Path(folder) / "run", side=32)
        browser.open("about:blank", **WINDOW)
        for _ in range(3):
            with forward_pass(run) as (address, token):
                cold.append(first_view(browser.open(f"{address}/samples?{token}", **WINDOW)))
        with forward_pass(run) as (address, token):
            page = browser.open(f"{address}/samples?{token}", **WINDOW)
            again = []
            for _ in range(5):
                page.go(f"{address}/samples")
                again.append(first_view(page))
            rows += [row("cold", cold), row("again", again), row("jump", jumps(page) + jumps(page))]
            for pixels in (40, 120, 300):
                found = steady_scroll(page, pixels, frames=100)
                rows.append(row(f"blank at {pixels} pixels", [found["blank"] + found["holes"]]))
            page = browser.open(f"{address}/map", **WINDOW)
            settled(page)
            rows.append(row("wheel", wheel_frames(page, turns=60)))
        rows.append(row("lesions", lesions(browser, Path(folder) / "lesions")))
    write(Path(__file__).with_suffix(".csv"), [{"machine": machine("cpu"), **one} for one in rows])


if __name__ == "__main__":
    main()
