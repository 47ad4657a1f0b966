"""Does memory grow with the data? Peak anonymous memory of an examination over 1×, 2× and 4× the images.

    python benchmarks/peers/frame_memory.py

Every probe kind takes part: counts, ranges, neighbours, relevance, and rows of a whole layer (mapped, so not counted).
Bar: within 5 % of the 1× run. Linux only: memory is read from /proc.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import largest, machine, write


def anonymous_bytes() -> int:
    """Anonymous memory of this process now."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))


def peak_while(images: int) -> int:
    """Examine so many images; the peak of anonymous memory above what was there before."""
    import numpy as np
    import torch

    from weakspot import ExecutionOptions, Plan, Run, Subject
    from weakspot.coverage.room import steps as coverage
    from weakspot.data import digits
    from weakspot.data.sources import ArraySource
    from weakspot.robustness.room import steps as robustness

    torch.set_num_threads(2)
    batch = digits.train().read(np.arange(1000))
    rows = np.arange(images) % 1000
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", batch.inputs.numpy()[rows])
        inputs = np.load(Path(folder) / "x.npy", mmap_mode="r")
        source = ArraySource(inputs, batch.targets.numpy()[rows])
        subject = Subject(digits.model(), classes=10)
        plan = Plan.of([*coverage({}), *robustness({"looks": 3})])
        data, run = {"train": source, "test": source}, Run.create(Path(folder) / "run")
        with largest(anonymous_bytes) as peak:
            plan.run(subject, data, run, execution=ExecutionOptions())
        return peak[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(peak_while(options.child))
        return
    peaks = {}
    for factor in (1, 2, 4):
        command = [sys.executable, __file__, "--child", str(factor * options.images)]
        peaks[factor] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows = [
        {
            "machine": machine("cpu"),
            "images": factor * options.images,
            "peak_anonymous_mb": round(peak / 1e6),
            "ratio_to_1x": round(peak / peaks[1], 3),
            "bar": 1.05,
        }
        for factor, peak in peaks.items()
    ]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
