"""Archives, weights and arrays made to run code or write files: how many do when weakspot reads them.

    python benchmarks/faults/hostile_files.py --count 1000

Writes `hostile_files.csv` beside this file. What is tried is in `tests/models/evil_*.py`: each file is read, and its
model run, in a process that notes every program started, file written, module imported and object unpickled.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults.recording import record
from tests.models.test_evil_files import tried


def harmful(what: str):
    """How many files of that kind did something, or ended otherwise than loaded or refused."""

    def measure(folder: Path, count: int) -> int:
        seen = tried(what, folder, "--count", count, "--seed", 1)
        for line in seen["strange"]:
            print(line, file=sys.stderr)
        assert sum(seen["ends"].values()) == count
        return max(len(seen["strange"]), len(seen["left"]), seen["marks"])

    return measure


def main() -> None:
    """Measure and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    parts = {"archives": 2 * count // 5, "weights": 3 * count // 10}
    parts["arrays"] = count - sum(parts.values())
    record("hostile_files", [(f"hostile {what}", number, harmful(what)) for what, number in parts.items()])


if __name__ == "__main__":
    main()
