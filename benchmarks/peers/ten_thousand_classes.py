"""10,000 classes × 50,000 neurons: activation counts and all distances between classes in at most 4 GB.

    python benchmarks/peers/ten_thousand_classes.py [--classes 10000] [--neurons 50000] [--images 10]

From packed neural paths on disk, as an examination leaves them, to NAPVD of every two classes, in a process of its own.
Peak memory is the resident set, the pages of the mapped file that the kernel keeps included. Linux only.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import machine, write

BAR_GB = 4.0


def paths_on_disk(path: Path, images: int, neurons: int) -> None:
    """Random neural paths, written a block at a time."""
    import numpy as np

    generator, width = np.random.default_rng(0), -(-neurons // 8)
    with path.open("wb") as file:
        for start in range(0, images, 1000):
            file.write(generator.integers(0, 256, (min(1000, images - start), width), dtype=np.uint8).tobytes())


def peak_gb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def child(path: Path, classes: int, neurons: int, each: int) -> dict[str, float]:
    """Counts, then distances, with the seconds and the peak after each."""
    import numpy as np

    from weakspot.classes import activation_counts, activation_distance, class_members, class_sizes

    images = classes * each
    bits = np.memmap(path, dtype=np.uint8, mode="r", shape=(images, -(-neurons // 8)))
    members = class_members(np.arange(images) % classes, classes)
    begun = time.perf_counter()
    counts = activation_counts(bits, members, neurons=neurons)
    counted, peak_counted = time.perf_counter(), peak_gb()
    distance = activation_distance(counts, images=class_sizes(members))
    done = time.perf_counter()
    a, b = 0, classes - 1
    direct = np.sqrt(((counts[a].astype(float) - counts[b]) ** 2).sum()) / each
    return {
        "count_s": round(counted - begun, 1),
        "distance_s": round(done - counted, 1),
        "peak_gb_counts": round(peak_counted, 2),
        "peak_gb": round(peak_gb(), 2),
        "relative_error": float(f"{abs(distance[a, b] / direct - 1):.1e}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--neurons", type=int, default=50_000)
    parser.add_argument("--images", type=int, default=10, help="of each class")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.classes, options.neurons, options.images)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bits"
        paths_on_disk(path, options.classes * options.images, options.neurons)
        sizes = [f"--{name}={getattr(options, name)}" for name in ("classes", "neurons", "images")]
        command = [sys.executable, __file__, *sizes, f"--child={path}"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    named = {"classes": options.classes, "neurons": options.neurons, "images_per_class": options.images}
    write(Path(__file__).with_suffix(".csv"), [{"machine": machine("cpu"), **named, **found, "bar_gb": BAR_GB}])


if __name__ == "__main__":
    main()
