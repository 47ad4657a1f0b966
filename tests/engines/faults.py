"""Killing at random, counted: runs with `kill -9` at random moments, and workers of a run one after another.

    python -m tests.engines.faults [--kills 100] [--workers 20]

Writes `benchmarks/faults/faults.csv`, one line per kill. The drivers of Ray runs are killed on a Ray that stays.
"""

import argparse
import csv
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import tests.conftest  # noqa: F401 - sets the token for Ray
from tests.core.helpers import Keep
from tests.core.test_kill import Examiner
from tests.engines.helpers import AtOneInput, contents, samples
from weakspot import ExecutionOptions, Subject, examine
from weakspot.engines import RayEngine
from weakspot.engines.schedule import Patience

CSV = Path(__file__).resolve().parents[2] / "benchmarks" / "faults" / "faults.csv"
COLUMNS = ("what", "number", "engine", "after_seconds", "killed", "shards_kept", "same_bytes", "shards_repeated")


def kill_runs(kills, seed=0):
    """Runs that are killed up to four times, in turn on one process and on Ray, and go on on either.

    One line per kill, with whether every byte was the same in the end.
    """
    chance, lines = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder, RayEngine(workers=1) as keeper:
        root, address = Path(folder), _address(keeper, Path(folder))
        examiner = Examiner()
        took = {
            "local": min(examiner.finish(what="demo", folder=root / f"whole-{n}") for n in range(2)),
            "ray": examiner.finish(what="demo", folder=root / "on-ray", address=address),
        }
        whole = contents(root / "whole-0")
        assert contents(root / "on-ray") == whole
        for number in range(4 * kills):
            run, killed = root / f"run-{number}", []
            for _ in range(min(kills - len(lines), chance.randint(1, 4))):
                engine = ("local", "ray")[(len(lines) + len(killed)) % 2]
                killed += _killed(examiner, run, engine, address, _moment(chance, took[engine]))
            last = {"address": address} if chance.random() < 0.5 else {}
            examiner.finish(what="demo", folder=run, **last)
            same = contents(run) == whole
            lines += [
                {"what": "run", "number": len(lines) + n + 1, **k, "same_bytes": same} for n, k in enumerate(killed)
            ]
            if len(lines) == kills:
                break
        examiner.close()
    return lines


def _moment(chance, took):
    """Any time, or as soon as so many shards are there."""
    return {"kill_after": chance.uniform(0, took)} if chance.random() < 0.5 else {"kill_at": chance.randint(1, 60)}


def _address(engine, folder):
    import ray

    how = ExecutionOptions(batch_size=4, shard_size=8, workers=0, threads=1)
    examine(Subject(AtOneInput(folder)), samples(8), [Keep()], execution=how, engine=engine)
    return ray.get_runtime_context().gcs_address


def _killed(examiner, run, engine, address, moment):
    """The line of a kill; none where the run was faster."""
    how, begun = {"address": address} if engine == "ray" else {}, time.perf_counter()
    status = examiner.work(what="demo", folder=run, **moment, **how)
    kept, after = sum(1 for _ in run.glob("work/*/shard-*")), round(time.perf_counter() - begun, 3)
    line = {"engine": engine, "after_seconds": after, "killed": True, "shards_kept": kept}
    return [line] if status == -signal.SIGKILL else []


def kill_workers(count, seed=0):
    """One run of which so many workers are killed, one after another at random moments; one line for all of them."""
    with tempfile.TemporaryDirectory() as folder, RayEngine(workers=2, patience=Patience(attempts=count)) as engine:
        net, data = AtOneInput(Path(folder), pause=0.05), samples(4000)
        how = ExecutionOptions(batch_size=4, shard_size=8, workers=0, threads=1)
        expected = examine(Subject(AtOneInput(Path(folder))), data, [Keep()], execution=how)[0]
        killer = _Killer(engine, count, random.Random(seed))
        killer.start()
        found = examine(Subject(net), data, [Keep()], execution=how, engine=engine)[0]
        killer.over.set()
        killer.join()
    return {
        "what": "workers",
        "number": len(killer.killed),
        "engine": "ray",
        "killed": len(killer.killed) == count,
        "same_bytes": found.digest == expected.digest,
        "shards_repeated": len(engine.repeated),
    }


class _Killer(threading.Thread):
    """Ends a worker that is at work, waits until another is there, and so on."""

    def __init__(self, engine, count, chance):
        super().__init__(daemon=True)
        self._engine, self._count, self._chance = engine, count, chance
        self.killed, self.over = [], threading.Event()

    def run(self):
        while len(self.killed) < self._count and not self.over.wait(self._chance.uniform(0.05, 0.5)):
            crew = self._engine._crew
            ready = [m.about["process"] for m in list(crew.members.values()) if m.ready] if crew else []
            fresh = [process for process in ready if process not in self.killed]
            if fresh:
                process = self._chance.choice(fresh)
                os.kill(process, signal.SIGKILL)
                self.killed.append(process)


def write(lines):
    CSV.parent.mkdir(exist_ok=True)
    with CSV.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, default=20)
    options = parser.parse_args()
    begun = time.perf_counter()
    made = [kill_workers(options.workers), *kill_runs(options.kills)]
    write(made)
    same = all(line["same_bytes"] for line in made)
    print(f"{len(made)} lines in {time.perf_counter() - begun:.0f} s; every byte the same: {same}")
