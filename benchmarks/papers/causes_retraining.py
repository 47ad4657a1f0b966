"""HUDD's Table 1, RQ1 and RQ2 (Fahmy et al. 2021, 2022) on five nets: eyes (three), traffic signs, faces.

python benchmarks/papers/causes_retraining.py [--cases gaze signs …] [--device cuda] [--repeats 10] [--budgets 100 …]
    [--net 0] [--unit-length] [--minutes 7] [--out FOLDER] [--work FOLDER]

Writes causes_cases.csv (errors, clusters, images to inspect, what clusters share), causes_retraining.csv (what
retraining brings, as far as it has come) and the nets that it trains beside this script, or to --out. What is there
already is not made again: every training is kept in --work, by default the folder runs beside the tables.

Root causes are found in the test set, B images are chosen from the pool, labelled with the truth, and
trained on together with the training set by HUDD's own recipe (10 epochs of small steps, no validation): balanced by
bootstrap; as many random images; those of these that fail; the random ones repeated until they weigh as much as the
balanced set; nothing new at all. Every model is judged by the test set and by a fresh one that played no part in
choosing.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import causes_eyes
import causes_faces
import causes_signs
import torch
from causes_cases import Case, append, table_row
from causes_repeats import Repeats
from measuring import machine, read_rows, write_rows

CASES: dict[str, Callable[..., Case]] = {
    "gaze": causes_eyes.gaze,
    "closed": partial(causes_eyes.detector, "drowsiness"),
    "glasses": partial(causes_eyes.detector, "glasses"),
    "signs": causes_signs.case,
    "faces": causes_faces.case,
}
KEY = ("case", "asked", "machine")


def cases(name: str, given: argparse.Namespace) -> Iterator[Case]:
    """The case as published, and with heat maps of unit length if that is asked for."""
    case = CASES[name](given.device, given.out, seed=given.net)
    yield case
    if given.unit_length:
        yield replace(case, name=f"{case.name}, unit length", options={**case.options, "unit_length": True})


def missing(case: Case, given: argparse.Namespace) -> list[Repeats]:
    """Write the case's row of Table 1, if it is not there; what is not trained as often as asked, for each budget."""
    table, retraining, mine = given.out / "causes_cases.csv", given.out / "causes_retraining.csv", machine(given.device)
    if not any(row["case"] == case.name and row["machine"] == mine for row in read_rows(table)):
        append(table, [table_row(case)])
    there = [row for row in read_rows(retraining) if row["machine"] == mine and int(row["repeats"]) >= given.repeats]
    done = {int(row["asked"]) for row in there if row["case"] == case.name}
    budgets = () if given.table_only else given.budgets or case.budgets
    work = given.work or given.out / "runs"
    return [Repeats.kept(case, budget, work) for budget in budgets if budget not in done]


def run(name: str, given: argparse.Namespace, until: float) -> None:
    """Whatever is still missing: the first repeat of everything, then the second, while another one has time to end."""
    asked, took = [one for case in cases(name, given) for one in missing(case, given)], 0.0
    for repeat, one in product(range(given.repeats), asked):
        begun = time.monotonic()
        if begun + took > until:
            return
        one.train(repeat)
        put(given.out / "causes_retraining.csv", one.rows())
        took = time.monotonic() - begun
        print(f"{one.case.name}, {one.budget} labels, repeat {repeat}: {took:.1f} s", flush=True)


def put(path: Path, rows: list[dict[str, Any]]) -> None:
    """These rows in the place of older ones of the same case, labels and machine."""
    same = [str(rows[0][key]) for key in KEY]
    write_rows(path, [*(row for row in read_rows(path) if [row[key] for key in KEY] != same), *rows])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--budgets", nargs="+", type=int, help="labels, instead of each case's two numbers")
    asked.add_argument("--repeats", type=int, default=10)
    asked.add_argument("--net", type=int, default=0, help="seed of the net: others than 0 are further nets of the kind")
    asked.add_argument("--unit-length", action="store_true", help="and once more with heat maps of unit length")
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
