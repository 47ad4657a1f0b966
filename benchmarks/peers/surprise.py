"""Distance- and likelihood-based surprise of 10,000 inputs against 60,000, side by side with dnn-tip.

    python benchmarks/peers/surprise.py [--repeats 3] [--queries 250]

`oracle` are published traces of MNIST, 10 neurons; `drawn` are of ten classes, each a Gaussian around a centre of its
own, cut off at zero as a ReLU does. dnn-tip is measured on fewer inputs, since its work grows with their number, and
extended by that factor; on those inputs the scores of both differ by up to `largest_difference` (dnn-tip's distances
are float32). Bars: 5 seconds and 20 times dnn-tip for 128 neurons.
"""

import argparse
import os
import statistics
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
from dnn_tip.surprise import DSA, LSA, MultiModalSA
from measuring import SHARED, interleaved, machine, write

from weakspot.coverage import distance_surprise, likelihood_surprise

TRAIN, TEST, NEURONS, CLASSES = 60_000, 10_000, 128, 10
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def oracle() -> Data:
    with np.load(SHARED / "oracles" / "surprise" / "mnist.npz") as stored:
        return stored["train_traces"], stored["train_pred"], stored["test_traces"], stored["test_pred"]


def drawn() -> Data:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, NEURONS))
    predicted = rng.integers(0, CLASSES, TRAIN + TEST)
    traces = np.maximum(centres[predicted] + rng.normal(size=(TRAIN + TEST, NEURONS)), 0).astype(np.float32)
    return traces[:TRAIN], predicted[:TRAIN], traces[TRAIN:], predicted[TRAIN:]


def distances(what: str, data: Data, queries: int, repeats: int) -> dict[str, object]:
    train, classes, test, predicted = data
    some, theirs = slice(0, queries), DSA([train], classes)
    tasks = {
        "ours": lambda: distance_surprise(*data),
        "dnn_tip": lambda: theirs([test[some]], predicted[some], num_threads=2),
    }
    seconds = {name: statistics.median(each) for name, each in interleaved(tasks, repeats).items()}
    difference = np.abs(theirs([test[some]], predicted[some], num_threads=2) - distance_surprise(*data)[some]).max()
    return told("DSA", what, seconds, len(test) / queries, queries, difference, bar=train.shape[1] == NEURONS)


def likelihoods(what: str, data: Data, queries: int, repeats: int) -> dict[str, object]:
    train, classes, test, predicted = data
    some = slice(0, queries)
    theirs = MultiModalSA.build_by_class([train], classes, lambda traces, _: LSA(traces))
    tasks = {
        "ours": lambda: likelihood_surprise(*data),
        "dnn_tip": lambda: theirs([test[some]], predicted[some]),
    }
    seconds = {name: statistics.median(each) for name, each in interleaved(tasks, repeats).items()}
    difference = np.abs(theirs([test[some]], predicted[some]) - likelihood_surprise(*data)[some]).max()
    return told("LSA", what, seconds, len(test) / queries, queries, difference, bar=False)


def told(
    score: str,
    what: str,
    seconds: dict[str, float],
    factor: float,
    queries: int,
    difference: float,
    *,
    bar: bool,
) -> dict[str, object]:
    times = seconds["dnn_tip"] * factor / seconds["ours"]
    return {
        "score": score,
        "traces": what,
        "ours_seconds": f"{seconds['ours']:.2f}",
        "dnn_tip_queries": queries,
        "dnn_tip_seconds": f"{seconds['dnn_tip']:.2f}",
        "dnn_tip_extended_seconds": f"{seconds['dnn_tip'] * factor:.0f}",
        "times_faster": f"{times:.0f}",
        "largest_difference": f"{difference:.1e}",
        "bar": "≤ 5 s, ≥ 20×" if bar else "",
        "held": ("yes" if seconds["ours"] <= 5 and times >= 20 else "no") if bar else "",
        "machine": machine("cpu"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--queries", type=int, default=250)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # dnn-tip's, about memory
    sets = {"oracle, 10 neurons": oracle(), f"drawn, {NEURONS} neurons": drawn()}
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stderr(nowhere),
        redirect_stdout(nowhere),
    ):  # dnn-tip's progress
        rows = [distances(what, data, asked.queries, asked.repeats) for what, data in sets.items()]
        rows.append(likelihoods("oracle, 10 neurons", sets["oracle, 10 neurons"], asked.queries, asked.repeats))
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
