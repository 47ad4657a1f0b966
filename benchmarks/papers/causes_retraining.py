"""HUDD's Table 1, RQ1 and RQ2 (Fahmy et al. 2021, 2022) on five nets: eyes (three), traffic signs, faces.

python benchmarks/papers/causes_retraining.py [--cases gaze signs …] [--device cuda] [--repeats 10] [--budgets 100 …]
    [--net 0] [--unit-length] [--minutes 7] [--out FOLDER] [--work FOLDER]

Writes causes_cases.csv (errors, clusters, images to inspect, what clusters share), causes_retraining.csv (what
retraining brings) and the nets that it trains beside this script, or to --out. What is there already is not made again;
with --work, trainings that were interrupted go on.

Root causes are found in the test set, B images are chosen from the improvement set, labelled with the truth, and
trained on together with the training set by HUDD's own recipe (10 epochs of small steps, no validation): balanced by
bootstrap; as many random images; those of these that fail; the random ones repeated until they weigh as much as the
balanced set; nothing new at all. Every model is judged by the test set and by a fresh one that played no part in
choosing.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import causes_eyes
import causes_faces
import causes_signs
import torch
from causes_cases import Case, append, retraining_rows, table_row
from measuring import machine, read_rows

CASES: dict[str, Callable[..., Case]] = {
    "gaze": causes_eyes.gaze,
    "closed": partial(causes_eyes.detector, "drowsiness"),
    "glasses": partial(causes_eyes.detector, "glasses"),
    "signs": causes_signs.case,
    "faces": causes_faces.case,
}


@contextmanager
def folder_for(work: Path | None) -> Iterator[Path]:
    """The folder that was given, or a temporary one."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
        yield work
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def asked_case(name: str, given: argparse.Namespace) -> Case:
    """The case; another net or other heat maps go by another name."""
    case = CASES[name](given.device, given.out, seed=given.net)
    if given.net:
        case = replace(case, name=f"{case.name}, net {given.net}")
    if given.unit_length:
        case = replace(case, name=f"{case.name}, unit length", options={**case.options, "unit_length": True})
    return case


def run(name: str, given: argparse.Namespace, until: float) -> None:
    """Whatever is still missing of one case."""
    table, retraining = given.out / "causes_cases.csv", given.out / "causes_retraining.csv"
    mine = machine(given.device)
    case = asked_case(name, given)
    with folder_for(given.work) as folder:
        if not any(row["case"] == case.name and row["machine"] == mine for row in read_rows(table)):
            append(table, [table_row(case, folder / case.name)])
        for budget in [] if given.table_only else given.budgets or case.budgets:
            done = [(row["case"], row["asked"]) for row in read_rows(retraining) if row["machine"] == mine]
            if (case.name, str(budget)) in done or time.monotonic() > until:
                continue
            begun = time.monotonic()
            append(retraining, retraining_rows(case, budget, folder / f"{case.name} {budget}", given.repeats))
            print(f"{case.name}, budget {budget}: {time.monotonic() - begun:.0f} s", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--budgets", nargs="+", type=int, help="labels, instead of each case's two numbers")
    asked.add_argument("--repeats", type=int, default=10)
    asked.add_argument("--net", type=int, default=0, help="seed of the net: others than 0 are further nets of the kind")
    asked.add_argument("--unit-length", action="store_true", help="compare heat maps of unit length")
    asked.add_argument("--table-only", action="store_true", help="without retraining")
    asked.add_argument("--minutes", type=float, default=1e6)
    asked.add_argument("--out", type=Path, default=Path(__file__).parent)
    asked.add_argument("--work", type=Path)
    given = asked.parse_args()
    until = time.monotonic() + 60 * given.minutes
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.cases:
        run(name, given, until)


if __name__ == "__main__":
    main()
