"""Damaged shards and Findings, and power cuts: how many are used silently, how many Runs end with other bytes.

    python benchmarks/faults/damage.py --damaged 500 --cuts 100

Writes `damage.csv` beside this file.
"""

import argparse
import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults.recording import record
from tests.core.helpers import Heard, TrainTally
from tests.core.test_damaged_shards import DAMAGES
from tests.core.test_damaged_shards import found as examined_shards
from tests.core.test_power_cut import contents, examined
from tests.core.test_reuse import Compared
from tests.core.test_reuse import examined as examined_findings
from tests.core.torn import calls_of, cut

from weakspot.core.run import Run
from weakspot.core.step import Step


def damaged_shards(base: Path, count: int) -> int:
    """How many damaged shards were used without a word, or gave other bytes."""
    whole, wrong = base / "shards", 0
    digests = examined_shards(whole)
    files = sorted(path.relative_to(whole) for path in whole.rglob("shard-*/*"))
    for seed in range(count):
        draw, work, heard = random.Random(seed), base / "work", Heard()
        shutil.copytree(whole, work)
        kinds = {name for name in DAMAGES if name != "zeroed"}  # some files hold nothing but zeros
        DAMAGES[draw.choice(sorted(kinds))](work / draw.choice(files), draw)
        wrong += examined_shards(work, progress=heard) != digests or len(heard.said) != 1
        shutil.rmtree(work)
    return wrong


def damaged_findings(base: Path, count: int) -> int:
    """How many damaged Findings were built upon without a word, or gave other bytes."""
    fresh, _ = examined_findings(Run.create(base / "fresh"), Step.of(Compared))
    examined_findings(Run.create(base / "before"), Step.of(TrainTally))
    wrong = 0
    for seed in range(count):
        draw, folder = random.Random(seed), base / "run"
        shutil.copytree(base / "before", folder)
        finding = folder / "findings" / "train_tally"
        DAMAGES[draw.choice(list(DAMAGES))](finding / draw.choice(["finding.json", "total.npy"]), draw)
        digests, said = examined_findings(Run.open(folder), Step.of(Compared))
        wrong += digests != fresh or len(said) != 1
        shutil.rmtree(folder)
    return wrong


def power_cuts(base: Path, count: int) -> int:
    """How many Runs ended with other bytes after the power went while they were made or replaced."""
    (base / "whole").mkdir()
    calls = [calls_of(lambda: examined(base / "whole" / "run"), base / "whole")]
    examined(base / "whole" / "run", weight=2.0)
    calls.append(calls_of(lambda: examined(base / "whole" / "run"), base / "whole"))
    expected, wrong = contents(base / "whole" / "run"), 0
    for seed in range(count):
        chance, disk, left = random.Random(1000 + seed), base / "disk", base / "left"
        disk.mkdir()
        before = chance.random() < 0.5
        if before:
            examined(disk / "run", weight=2.0)
        survives = chance.randrange(calls[before])
        assert cut(lambda disk=disk: examined(disk / "run"), disk, left, survives=survives, chance=chance)
        examined(left / "run")
        wrong += contents(left / "run") != expected
        shutil.rmtree(disk)
    return wrong


def main() -> None:
    """Measure and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--damaged", type=int, default=500)
    parser.add_argument("--cuts", type=int, default=100)
    options = parser.parse_args()
    half = options.damaged // 2
    record(
        "damage",
        [
            ("damaged shards", half, damaged_shards),
            ("damaged Findings", options.damaged - half, damaged_findings),
            ("power cuts", options.cuts, power_cuts),
        ],
    )


if __name__ == "__main__":
    main()
