"""Few labels, diverse selection, the guard and gaps between groups: time beside plain code or scikit-learn, and memory.

    python benchmarks/peers/judging.py [--repeats 3] [--inputs 100000]

Both sides of a row get the same numbers, drawn at random, in one run, one thread, and must agree; seconds are the
processor's. The plain sides do what the papers say with loops or whole recomputations, the guard's rival is a pipeline
of scikit-learn. judging_memory.csv holds the peak of anonymous memory of whole examinations of 5,000, 10,000 and 20,000
images of digits, one for each of the four. Bars: no slower than the peer, and memory within 5 % of the smallest set's.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from frame_memory import anonymous_bytes
from measuring import interleaved, largest, machine, write
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from weakspot.classes.metrics_gaps import group_gaps
from weakspot.classes.metrics_labels import allocation, average_thresholded_confidence, drawn, strata
from weakspot.coverage import diverse_order
from weakspot.robustness import OperatingPoint
from weakspot.robustness.guard_fitting import GuardInputs, GuardSettings, fit_guard, scored
from weakspot.statistics import auroc

IMAGES = 5_000
Case = tuple[Callable[[], Any], Callable[[], Any], Callable[[Any, Any], bool]]
"""Ours, the peer's, and whether what they give agrees."""


def label_plan(count: int) -> Case:
    """Which 400 inputs to label: strata, allocation and draw."""
    rng = np.random.default_rng(0)
    uncertainty, keys = rng.beta(0.3, 3, count), rng.integers(0, 2**63, count, dtype=np.uint64)

    def ours() -> np.ndarray:
        placed = strata(uncertainty, 400)
        return drawn(placed, allocation(placed, uncertainty, 400), keys)

    def plain() -> set[int]:
        order = sorted(range(count), key=uncertainty.__getitem__)
        weights = [(uncertainty[row] + 4 / 400) ** 0.5 for row in order]
        number, whole, so_far = 33, sum(weights), 0.0
        members: list[list[int]] = [[] for _ in range(number)]
        for row, weight in zip(order, weights, strict=True):
            so_far += weight
            members[min(int(so_far / whole * number - 1e-9), number - 1)].append(row)
        members = [own for own in members if own]
        spread = [(sum(uncertainty[r] * (1 - uncertainty[r]) for r in own) / len(own) + 0.01) ** 0.5 for own in members]
        taken = [min(2, len(own)) for own in members]
        while sum(taken) < 400:
            gains = [len(o) * s / t if t < len(o) else -1 for o, s, t in zip(members, spread, taken, strict=True)]
            taken[gains.index(max(gains))] += 1
        return {row for own, n in zip(members, taken, strict=True) for row in sorted(own, key=keys.__getitem__)[:n]}

    return ours, plain, lambda one, other: len(set(one.tolist()) & other) >= 396  # borders of strata by rounding


def thresholded(count: int) -> Case:
    """Average thresholded confidence, its threshold sought as its authors' code does: score by score."""
    rng = np.random.default_rng(1)
    known, asked = rng.beta(5, 1, 10_000), rng.beta(4, 1, count)
    correct = rng.random(10_000) < known

    def plain() -> float:
        best, threshold, wrong = float("inf"), 0.0, int((~correct).sum())
        for below, score in enumerate(sorted(known.tolist()), 1):
            if abs(below - wrong) < best:
                best, threshold = abs(below - wrong), score
        return sum(score > threshold for score in asked.tolist()) / count

    return lambda: average_thresholded_confidence(asked, known, correct), plain, lambda a, b: abs(a - b) < 1e-3


def diverse(count: int) -> Case:
    """The first 200 by uncertainty times distance to those before, from 20,000."""
    rng = np.random.default_rng(2)
    count = min(count, 20_000)
    unsure, features = rng.random(count), rng.normal(size=(count, 64))

    def plain() -> list[int]:
        candidates = np.argsort(-unsure, kind="stable")[:1000]
        unit, own = _unit(features[candidates]), unsure[candidates].copy()
        chosen = [int(np.argmax(own))]
        while len(chosen) < 200:
            away = np.linalg.norm(unit[:, None] - unit[chosen], axis=2).min(1)
            gains = own * away
            gains[chosen] = -1
            chosen.append(int(np.argmax(gains)))
        return candidates[chosen].tolist()

    def ours() -> list[int]:
        return diverse_order(unsure, features, budget=200)[:200].tolist()

    return ours, plain, list.__eq__


def guard(count: int) -> Case:
    """Fit on 5,000 inputs and judge as many: beside nearest neighbours, covariance and regression of scikit-learn."""
    rng = np.random.default_rng(3)
    centres, targets = rng.normal(size=(10, 64)) * 2, rng.integers(0, 10, 10_000)
    features = centres[targets] + rng.normal(size=(10_000, 64)) * 3
    logits = features @ centres.T / 8 + rng.normal(size=(10_000, 10)) * 8
    looks, wrong = rng.random((10_000, 6)) + 0.1, logits.argmax(1) != targets
    ids = np.array([f"{number:05d}" for number in range(10_000)])
    halves = (np.arange(5_000), np.arange(5_000, 10_000))
    own, other = (GuardInputs(ids[rows], logits, looks, features, rows) for rows in halves)
    layer = {"name": "classifier", "side": "input", "channel_dim": 1}
    settings = GuardSettings(OperatingPoint("false_alarms", 0.05), 0.1, "lac", 0.01, 10, False, (3, 8, 8), layer)

    def plain() -> np.ndarray:
        reference, learnt, judged = halves[0][:2000], halves[0][2000:3000], halves[1]
        neighbours = NearestNeighbors(n_neighbors=10).fit(_unit(features[reference]))
        means = np.stack([features[reference][targets[reference] == one].mean(0) for one in range(10)])
        inverse = np.linalg.inv(np.cov((features[reference] - means[targets[reference]]).T))

        def columns(rows: np.ndarray) -> np.ndarray:
            away = features[rows][:, None] - means
            near = neighbours.kneighbors(_unit(features[rows]))[0][:, -1]
            mahalanobis = np.einsum("rci,ij,rcj->rc", away, inverse, away, optimize=True).min(1)
            ranked = np.sort(logits[rows], 1)
            powers = np.exp(logits[rows] - ranked[:, -1:])
            highest = (powers / powers.sum(1, keepdims=True)).max(1)
            margin, energy = ranked[:, -1] - ranked[:, -2], -np.log(np.exp(logits[rows]).sum(1))
            return np.stack([-highest, -margin, energy, -ranked[:, -1], mahalanobis, near], 1)

        return LogisticRegression(max_iter=500).fit(columns(learnt), wrong[learnt]).predict_proba(columns(judged))[:, 1]

    def close(one: np.ndarray, peer: np.ndarray) -> bool:
        return abs(auroc(one, wrong[halves[1]]) - auroc(peer, wrong[halves[1]])) < 0.02

    return lambda: scored(fit_guard(own, targets[halves[0]], settings).guard, other)["guard"], plain, close


def _unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def gaps(count: int) -> Case:
    """Accuracy, true and false positive rates of ten classes in 60 groups, beside a boolean mask for each."""
    rng = np.random.default_rng(4)
    target = rng.integers(0, 10, count)
    predicted = np.where(rng.random(count) < 0.9, target, rng.integers(0, 10, count))
    members = rng.random((60, count)) < 0.2

    def plain() -> list[float]:
        found = []
        for inside in members:
            rates = [(predicted[side] == target[side]).mean() for side in (inside, ~inside)]
            found.append(rates[1] - rates[0])
            for sign, same in ((1, True), (-1, False)):
                for label in range(10):
                    about = (target == label) == same
                    rates = [(predicted[about & side] == label).mean() for side in (inside, ~inside)]
                    found.append(sign * (rates[1] - rates[0]))
        return found

    def ours() -> list[float]:
        return group_gaps(members, predicted, target, 10, least=30).difference.tolist()

    return ours, plain, np.allclose


CASES = {"label plan": label_plan, "thresholded confidence": thresholded, "diverse": diverse, "guard": guard,
         "gaps": gaps}  # fmt: skip


def timed(name: str, options: argparse.Namespace) -> dict[str, Any]:
    ours, plain, agree = CASES[name](options.inputs)
    same = agree(ours(), plain())
    seconds = interleaved({"weakspot": ours, "peer": plain}, options.repeats, clock=time.process_time)
    one, other = (float(np.median(seconds[side])) for side in ("weakspot", "peer"))
    about = (CASES[name].__doc__ or "").rstrip(".")
    return {"machine": machine("cpu"), "what": name, "about": about, "agrees": same, "seconds_weakspot": round(one, 4),
            "seconds_peer": round(other, 4), "times_as_fast": round(other / one, 1)}  # fmt: skip


def probes() -> dict[str, Any]:
    from weakspot import Step
    from weakspot.classes import GroupGaps, LabelPlan
    from weakspot.coverage import NextInputs
    from weakspot.robustness import PredictionGuard

    return {
        "label plan": Step.of(LabelPlan, split="test", labels=200),
        "diverse": Step.of(NextInputs, split="test", budget=200),
        "guard": Step.of(PredictionGuard, split="test"),
        "gaps": Step.of(GroupGaps, split="test", columns=("light", "place")),
    }


def peak_while(name: str, images: int) -> int:
    """Examine so many images; the peak of anonymous memory above what was there before."""
    from weakspot import Plan, Run, Subject
    from weakspot.data import digits
    from weakspot.data.metadata import WithMetadata
    from weakspot.data.sources import ArraySource

    torch.set_num_threads(1)
    batch, rows = digits.train().read(np.arange(1000)), np.arange(images) % 1000
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        noisy = batch.inputs.numpy()[rows] + rng.normal(0, 0.4, (images, *batch.inputs.shape[1:])).astype(np.float32)
        np.save(Path(folder) / "x.npy", noisy.clip(0, 1))
        del noisy
        inputs = np.load(Path(folder) / "x.npy", mmap_mode="r")
        source = ArraySource(inputs, batch.targets.numpy()[rows])
        metadata = {"id": list(source.ids), "light": rng.choice(["day", "night"], images).tolist(),
                    "place": rng.choice(["a", "b", "c"], images).tolist()}  # fmt: skip
        data = {"train": source, "test": WithMetadata(source, metadata)}
        with largest(anonymous_bytes) as peak:
            subject = Subject(digits.model(), classes=10, scores="logits", bounds=(0, 1))
            Plan.of([probes()[name]]).run(subject, data, Run.create(Path(folder) / "run"))
        return peak[0]


def memory() -> list[dict[str, Any]]:
    rows = []
    for name in probes():
        peaks = {}
        for factor in (1, 2, 4):
            command = [sys.executable, __file__, "--child", name, str(factor * IMAGES)]
            peaks[factor] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            rows.append({"machine": machine("cpu"), "what": name, "images": factor * IMAGES,
                         "peak_anonymous_mb": round(peaks[factor] / 1e6),
                         "ratio_to_1x": round(peaks[factor] / peaks[1], 3)})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(peak_while(options.child[0], int(options.child[1])))
        return
    torch.set_num_threads(1)
    write(Path(__file__).with_suffix(".csv"), [timed(name, options) for name in CASES])
    write(Path(__file__).with_name("judging_memory.csv"), memory())


if __name__ == "__main__":
    main()
