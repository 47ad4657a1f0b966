"""RQ2 of HUDD, one repeat at a time: each one's answers are kept on disk, and the rows tell of those that are there.

See causes_retraining.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from causes_cases import Case, chosen
from measuring import machine

from weakspot import Finding
from weakspot.repair import ExperimentDesign, Labelled, Recipe, RetrainingData, run_experiment
from weakspot.repair.experiment import METHODS as ALL_METHODS
from weakspot.repair.retraining_finding import MethodScores, retraining_finding

METHODS = ALL_METHODS[:5]
"""The paper's, and its controls."""
TESTS = ("test", "fresh test")


@dataclass(frozen=True)
class UnsafeSet:
    """Images to label with the cluster of each, by their ids, and above which error a keypoint is wrong."""

    clusters: Mapping[str, int]
    threshold: float | None

    def data(self, case: Case, test: str) -> RetrainingData:
        """These images, labelled with the truth, beside everything else that a comparison needs."""
        pool = case.data["pool"]
        places = [place for place, name in enumerate(pool.ids) if name in self.clusters]
        truth = pool.read(np.array(places)).known_targets.cpu().tolist()
        labels = {pool.ids[place]: target for place, target in zip(places, truth, strict=True)}
        labelled = Labelled(pool, labels)
        return RetrainingData(
            labelled, self.clusters, case.data[test], case.data["train"], pool, threshold=self.threshold
        )


@dataclass(frozen=True)
class Repeats:
    """The trainings of a case with so many labels. The folder keeps what was chosen, and each repeat's answers.

    trainings: a folder that cases may share; what is trained alike there is trained once.
    """

    case: Case
    budget: int
    folder: Path
    trainings: Path

    @classmethod
    def kept(cls, case: Case, budget: int, work: Path) -> "Repeats":
        """Those of a folder that all cases and budgets share."""
        return cls(case, budget, work / case.name / str(budget), work / "trainings")

    @cached_property
    def unsafe(self) -> UnsafeSet:
        """What was chosen the first time."""
        path = self.folder / "unsafe.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _, unsafe, threshold = chosen(self.case, self.budget)
            clusters = dict(zip(*(unsafe.table[name].to_pylist() for name in ("id", "cluster")), strict=True))
            path.write_text(json.dumps({"clusters": clusters, "threshold": threshold}))
        return UnsafeSet(**json.loads(path.read_text()))

    def train(self, repeat: int) -> None:
        """One training of each method, unless it was done; its answers to both test sets."""
        path = self.folder / f"repeat-{repeat:02d}.npz"
        if path.exists():
            return
        kept: dict[str, Any] = {"machine": machine(self.case.device)}
        for test in TESTS:
            made = run_experiment(
                self.case.subject,
                self.unsafe.data(self.case, test),
                ExperimentDesign(1, METHODS[1:], validation=0.0, balance=True),
                recipe=Recipe(seed=repeat),
                checkpoints=self.trainings,  # the second test set finds the same models trained
            )
            kept |= {f"{test} {name}": values for name, values in made.finding.arrays.items() if name != "id"}
            kept["added"] = _added(made.finding)
        with path.with_suffix(".partial").open("wb") as file:
            np.savez_compressed(file, **kept)
        path.with_suffix(".partial").replace(path)

    def answers(self) -> list[dict[str, np.ndarray]]:
        """Of every finished repeat: what each model predicted correctly, or how far it was off, before and after."""
        return [dict(np.load(path)) for path in sorted(self.folder.glob("repeat-*.npz"))]

    def rows(self) -> list[dict[str, Any]]:
        """Each method's figure after the repeats that are there, on the test set and on the fresh one."""
        repeats = self.answers()
        known = {"case": self.case.name, "budget": len(self.unsafe.clusters), "asked": self.budget}
        rows = []
        for test in TESTS:
            outcomes = {method: _outcome(repeats, test, number) for number, method in enumerate(METHODS)}
            ids, before = self.case.data[test].ids, repeats[0][f"{test} before"]
            rows += rows_of(retraining_finding(ids, before, outcomes, {}), **known, test=test)
        machines = "; ".join(sorted({str(repeat["machine"]) for repeat in repeats}))
        return [{**row, "machine": machines} for row in rows]


def _added(finding: Finding) -> list[int]:
    """How many samples each method trains on besides the training set, in their order."""
    return [int(part.rsplit(" ", 1)[1]) for part in str(finding.summary["added"].value).split(", ")]


def _outcome(repeats: list[dict[str, np.ndarray]], test: str, number: int) -> MethodScores:
    name = f"{test} after-{METHODS[number].replace(' ', '_')}"
    return MethodScores([repeat[name][0] for repeat in repeats], [int(repeat["added"][number]) for repeat in repeats])


def rows_of(finding: Finding, **known: Any) -> list[dict[str, Any]]:
    """One row per method: the figure before and after, its spread, and the difference of the unsafe set to it."""
    told, rows = finding.summary, []
    for method, added in zip(METHODS, _added(finding), strict=True):
        key = "" if method == "unsafe set" else method.replace(" ", "_")
        scores = finding.arrays[f"after-{key or 'unsafe_set'}"].mean(1)
        over = told[f"over_{key}" if key else "difference"]
        rows.append(
            {
                **known,
                "method": method,
                "repeats": len(scores),
                "added": added,
                "before": round(told["before"].value, 4),
                "after": round(float(scores.mean()), 4),
                "standard_deviation": round(float(scores.std(ddof=1)), 4) if len(scores) > 1 else "",
                "unsafe_set_less": method if key else "before",
                "difference": round(over.value, 4),
                "low": round(over.low, 4),
                "high": round(over.high, 4),
                "verdict": told[f"verdict_{key}" if key else "verdict"].value,
            }
        )
    return rows
