"""All pairs of 1,000 classes: distance, bias and disparity, against plain loops; with `--large`, of 10,000 classes.

Writes `classes_pairs.csv`, or `classes_pairs_large.csv`, beside itself. Every row is measured in a process of its own,
so that its peak memory is its own. Plain loops are measured at a size they can do and scaled by the number of their
steps. Run it on a quiet machine: the distances are one matrix product, which suffers most from company.

    python benchmarks/peers/classes_pairs.py [--large]
"""

import csv
import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

NEURONS = 26_560  # channels of all convolutions of a ResNet-50


@dataclass
class Row:
    what: str
    classes: int
    seconds: float
    peak_gb: float
    bar: str
    held: str
    against: str = ""
    against_classes: int = 0
    against_seconds: float = 0
    times_faster: float = 0
    machine: str = ""


def probability(classes: int) -> np.ndarray:
    return np.random.default_rng(0).random((classes, NEURONS), dtype=np.float32)


def distance(classes: int) -> np.ndarray:
    """Distances spread as real ones are: about a seventh below mean − std."""
    from scipy.spatial.distance import cdist

    points = np.random.default_rng(1).random((classes, 50))
    return cdist(points, points)


def confusion(classes: int) -> np.ndarray:
    generator = np.random.default_rng(2)
    return generator.random((classes, classes)) * (generator.random((classes, classes)) < 0.1)


def napvd(classes: int) -> Callable[[], object]:
    from weakspot.classes import activation_distance

    given = probability(classes)
    return lambda: activation_distance(given)


def napvd_normalised(classes: int) -> Callable[[], object]:
    from weakspot.classes import activation_distance

    given = probability(classes)
    return lambda: activation_distance(given, normalise=True)


def average_bias(classes: int) -> Callable[[], object]:
    from weakspot.classes import average_bias

    given = distance(classes)
    return lambda: average_bias(given)


def average_bias_unfiltered(classes: int) -> Callable[[], object]:
    from weakspot.classes import average_bias

    given = distance(classes)
    return lambda: average_bias(given, near=None)


def average_bias_with_labels(classes: int) -> Callable[[], object]:
    from weakspot.classes import average_bias

    given, truth = distance(classes), confusion(classes)
    return lambda: average_bias(given, confusion=truth)


def disparity(classes: int) -> Callable[[], object]:
    from weakspot.classes import average_confusion_disparity

    given = confusion(classes)
    return lambda: average_confusion_disparity(given)


def errors(classes: int) -> Callable[[], object]:
    from weakspot.classes import confusion_errors

    given, truth = distance(classes), confusion(classes)
    return lambda: confusion_errors(given, truth)


def loop_napvd(classes: int) -> Callable[[], object]:
    """Eq. 2 neuron by neuron."""
    from tests.references.classes import activation_distance

    given = probability(classes).tolist()
    return lambda: activation_distance(given, normalise=False)


def loop_napvd_normalised(classes: int) -> Callable[[], object]:
    from tests.references.classes import activation_distance

    given = probability(classes).tolist()
    return lambda: activation_distance(given, normalise=True)


def numpy_napvd(classes: int) -> Callable[[], object]:
    """Eq. 2 pair by pair, all neurons of a pair in one numpy expression."""
    given = probability(classes).astype(np.float64)

    def call() -> object:
        return {(a, b): np.sqrt(((given[a] - given[b]) ** 2).sum()) for a, b in combinations(range(classes), 2)}

    return call


def loop_bias(classes: int) -> Callable[[], object]:
    """Eq. 3 and 4 triplet by triplet, on the matrix as it comes: a numpy array."""
    given = distance(classes)
    limit = given.mean() - given.std()

    def call() -> object:
        score = np.zeros((classes, classes))
        for a, b in combinations(range(classes), 2):
            for c in range(classes):
                if c not in (a, b) and (given[c, a] < limit or given[c, b] < limit):
                    score[a, b] += abs(given[c, a] - given[c, b]) / (given[c, a] + given[c, b])
        return score / (classes - 2)

    return call


def list_bias(classes: int) -> Callable[[], object]:
    """The same on nested lists, the fastest that plain Python does."""
    from tests.references.classes import average_bias

    given = distance(classes)
    limit = float(given.mean() - given.std())
    return lambda: average_bias(given.tolist(), limit=limit)


def list_bias_unfiltered(classes: int) -> Callable[[], object]:
    from tests.references.classes import average_bias

    given = distance(classes).tolist()
    return lambda: average_bias(given, limit=float("inf"))


def list_bias_with_labels(classes: int) -> Callable[[], object]:
    from tests.references.classes import average_bias

    given, truth = distance(classes), confusion(classes).tolist()
    limit = float(given.mean() - given.std())
    return lambda: average_bias(given.tolist(), limit=limit, directional=truth)


def list_disparity(classes: int) -> Callable[[], object]:
    from tests.references.classes import average_confusion_disparity

    given = confusion(classes).tolist()
    return lambda: average_confusion_disparity(given)


def measure(prepare: Callable[[int], Callable[[], object]], classes: int, repeats: int) -> tuple[float, float]:
    """Median seconds and peak memory (GB, the whole process), in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (prepare, classes, repeats))


def _measured(prepare: Callable[[int], Callable[[], object]], classes: int, repeats: int) -> tuple[float, float]:
    call, taken = prepare(classes), []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return median(taken), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


@dataclass
class Case:
    what: str
    ours: Callable[[int], Callable[[], object]]
    plain: Callable[[int], Callable[[], object]]
    against: str
    plain_classes: int
    exponent: int
    """The plain version's cost grows with this power of the number of classes."""
    most_seconds: float = np.inf
    most_gb: float = np.inf
    least_times: float = 0


CASES = [
    Case("distance of all pairs", napvd, loop_napvd, "loop over neurons", 12, 2, 2, least_times=200),
    Case("distance of all pairs", napvd, numpy_napvd, "numpy per pair", 100, 2),
    Case("distance, normalised", napvd_normalised, loop_napvd_normalised, "loop over neurons", 12, 2),
    Case("average bias", average_bias, loop_bias, "loop over triplets", 100, 3, 3, 1, 200),
    Case("average bias", average_bias, list_bias, "loop on lists", 150, 3),
    Case("average bias, unfiltered", average_bias_unfiltered, list_bias_unfiltered, "loop on lists", 150, 3, 3, 1),
    Case("average bias, with labels", average_bias_with_labels, list_bias_with_labels, "loop on lists", 150, 3, 3, 1),
    Case("confusion disparity", disparity, list_disparity, "loop on lists", 150, 3),
]
LARGE = {
    "distance of all pairs": napvd,
    "average bias": average_bias,
    "confusion disparity": disparity,
    "confusion errors": errors,
}


def compared(case: Case) -> Row:
    seconds, peak = measure(case.ours, 1000, 5)
    plain, _ = measure(case.plain, case.plain_classes, 3)
    times = plain * (1000 / case.plain_classes) ** case.exponent / seconds
    bars = {f"≤ {case.most_seconds} s": case.most_seconds, f"≤ {case.most_gb} GB": case.most_gb}
    words = [word for word, most in bars.items() if most < np.inf] + [f"≥ {case.least_times}×"] * (case.least_times > 0)
    held = seconds <= case.most_seconds and peak <= case.most_gb and times >= case.least_times
    said = ("yes" if held else "no") if words else ""
    return Row(case.what, 1000, seconds, peak, ", ".join(words), said, case.against, case.plain_classes, plain, times)


def large(what: str, ours: Callable[[int], Callable[[], object]]) -> Row:
    seconds, peak = measure(ours, 10_000, 1)
    return Row(what, 10_000, seconds, peak, "≤ 4 GB", "yes" if peak <= 4 else "no")


def machine() -> str:
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    is_large = "--large" in sys.argv
    rows = (large(*entry) for entry in LARGE.items()) if is_large else (compared(case) for case in CASES)
    name = "classes_pairs_large.csv" if is_large else "classes_pairs.csv"
    with Path(__file__).with_name(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Row)])
        writer.writeheader()
        for row in rows:
            row.machine = machine()
            told = {name: f"{item:.4g}" if isinstance(item, float) else item for name, item in asdict(row).items()}
            print(told, flush=True)
            writer.writerow(told)


if __name__ == "__main__":
    main()
