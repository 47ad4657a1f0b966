"""How fast the viewer shows lesions and keeps labels: a case of 512×512×192 with 30 lesions, and 5,000 images to label.

    python benchmarks/peers/viewer_lesions.py

Through a real server on loopback, one question after another, as a page asks. `open` is all that the lesion page asks
for before it shows three planes: the list, the case, three slices and their outlines, with the volume's file put out of
the page cache first. `step` is one slice further in one plane, slice and outlines together; `label` one label, on the
disk. Bars: open under 1 s, step under 50 ms.
"""

import argparse
import http.client
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import uvicorn
from measuring import machine, write

from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run
from weakspot.viewer.app import create_app
from weakspot.viewer.serving import listen

SHAPE = (192, 512, 512)
LESIONS, IMAGES = 30, 5000
PLANES = ("axial", "coronal", "sagittal")


def volume() -> tuple[np.ndarray, np.ndarray]:
    """Noise as of a scanner, with bright ellipsoids; the image (1, z, y, x) and the lesions' numbers."""
    rng = np.random.default_rng(0)
    image, labels = rng.integers(0, 200, SHAPE, dtype=np.int16), np.zeros(SHAPE, dtype=np.uint32)
    for number in range(1, LESIONS + 1):
        z, y, x = (int(side * (0.15 + 0.7 * rng.random())) for side in SHAPE)
        labels[z - 5 : z + 5, y - 15 : y + 15, x - 15 : x + 15] = number
    image[labels > 0] += 300
    return image[None], labels


def lesion_findings() -> list[Finding]:
    """As `CaseVolumes` and `Scores` give them."""
    image, labels = volume()
    places = np.flatnonzero(labels)
    found = np.stack([places, labels.ravel()[places]], 1).astype(np.uint32)
    numbers = {"scale": 1.0, "offset": 0.0, "low": 0.0, "high": 400.0, "smallest": 0.0, "largest": 500.0}
    arrays = {"image_0000": image, "lesions_0000": found, "truth_0000": found[:, 0]}
    arrays |= {name: np.full((1, 1), value) for name, value in numbers.items()}
    case = {"case": ["big"], **{axis: [side] for axis, side in zip("zyx", SHAPE, strict=True)}}
    case |= {f"spacing_{axis}": [1.0] for axis in "zyx"} | {"axes": ["LPS"], "truth": [True]}
    own = [number for number in range(1, LESIONS + 1) if (found[:, 1] == number).any()]
    centres = [np.argwhere(labels == number).mean(0).tolist() for number in own]
    listed = {"case": ["big"] * len(own), "lesion": own, "voxels": [9000] * len(own)}
    listed |= dict(zip("zyx", np.array(centres).T, strict=True))
    listed |= {"false_positive_probability": np.linspace(0, 1, len(own)), "true_positive": [True] * len(own)}
    return [
        Finding(name="lesions.case_volumes", table=table_of(case), arrays=arrays),
        Finding(name="lesions.scores", table=table_of(listed)),
    ]


def label_finding() -> Finding:
    """As `UnsafeSet` gives it."""
    ids = [f"image-{number:05d}" for number in range(IMAGES)]
    table = {
        "id": ids,
        "cluster": np.arange(IMAGES) * 20 // IMAGES + 1,
        "distance": np.ones(IMAGES),
        "guess": ["a"] * IMAGES,
    }
    arrays = {"task": np.array("classification"), "classes": np.array(["a", "b"]), "outputs": np.array(2)}
    arrays["thumbnails"] = np.zeros((IMAGES, 32, 32, 3), dtype=np.uint8)
    return Finding(name="causes.unsafe", table=table_of(table), arrays=arrays)


@contextmanager
def asking(run: Run) -> Iterator[Callable[..., bytes]]:
    """Ask a viewer of the Run: `ask(path)`, or `ask(path, body)` to change something."""
    socket = listen("127.0.0.1", 0)
    host = f"127.0.0.1:{socket.getsockname()[1]}"
    app = create_app([run], token="token", hosts=[host])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    connection = http.client.HTTPConnection(host)
    headers = {"Authorization": "Bearer token", "Origin": f"http://{host}", "Content-Type": "application/json"}

    def ask(path: str, body: object = None) -> bytes:
        given = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "PUT", path, given, headers)
        told = connection.getresponse()
        content = told.read()
        assert told.status == 200, content
        return content

    try:
        while not server.started:
            time.sleep(0.01)
        yield ask
    finally:
        connection.close()
        server.should_exit = True
        thread.join()


def out_of_the_page_cache(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def shown(ask: Callable[..., bytes], plane: str, index: int) -> None:
    case = "/api/lesions/case/0"
    ask(f"{case}/slice/{plane}/{index}?low=0&high=400")
    ask(f"{case}/outlines/{plane}/{index}?width=512&height=512&truth=1&line=2&below=0.5")


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--labels", type=int, default=500)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run")
        for finding in (*lesion_findings(), label_finding()):
            run.save(finding)
        out_of_the_page_cache(run.finding_folder("lesions.case_volumes") / "image_0000.npy")
        with asking(run) as ask:
            first = ("/api/lesions", "/api/lesions/case/0")
            opened = timed(lambda: [*map(ask, first), *(shown(ask, plane, 96) for plane in PLANES)])
            rows.append({"what": "open", "milliseconds": opened, "slowest": opened})
            for plane in PLANES:
                steps = [timed(lambda: shown(ask, plane, index)) for index in range(40, 40 + options.steps)]  # noqa: B023
                rows.append({"what": f"step {plane}", "milliseconds": statistics.median(steps), "slowest": max(steps)})
            ask("/api/label")
            bodies = [{"labels": {f"image-{n:05d}": "ab"[n % 2]}} for n in range(options.labels)]
            labels = [timed(lambda: ask("/api/label", body)) for body in bodies]  # noqa: B023
            rows.append({"what": "label", "milliseconds": statistics.median(labels), "slowest": max(labels)})
    numbers = [{**row, **{key: round(1000 * row[key], 1) for key in ("milliseconds", "slowest")}} for row in rows]
    write(Path(__file__).with_suffix(".csv"), [{"machine": machine("cpu"), **row} for row in numbers])


if __name__ == "__main__":
    main()
