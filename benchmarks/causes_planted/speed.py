"""How long all sources take after the pass: 50,000 images, 5,000 errors, 2,048 features, as many layer
statistics, and heat maps as sketches of 1,021 values.

    python benchmarks/causes_planted/speed.py [--images 50000] [--out FILE]

writes speed.csv beside this script, or to --out. Features are drawn: classes, four groups of errors, noise.
"""

import argparse
import csv
import resource
import time
from pathlib import Path

import numpy as np

from weakspot.causes.slice_views import HEAT_VALUES
from weakspot.slices import SliceData, Trait, View, doubtful_labels, first_half, ranked_slices

WIDTH, CLASSES, ERRORS, GROUPS = 2048, 100, 0.1, 4


def drawn(count: int) -> tuple[SliceData, list[Trait], np.ndarray]:
    """Images with labels, errors, metadata, measures and views."""
    rng = np.random.default_rng(0)
    labels, group = rng.integers(0, CLASSES, count), rng.choice(GROUPS + 1, count, p=[0.92] + GROUPS * [0.02])
    wrong = rng.random(count) < np.where(group > 0, 0.7, (ERRORS - 0.08 * 0.7) / 0.92)
    centres = rng.normal(size=(CLASSES, WIDTH)).astype(np.float32)
    moved = rng.normal(size=(GROUPS + 1, WIDTH)).astype(np.float32) * (np.arange(GROUPS + 1) > 0)[:, None]
    views = []
    for name, width in (("features", WIDTH), ("layer statistics", WIDTH), ("heat maps", HEAT_VALUES)):
        values = rng.standard_normal((count, width), dtype=np.float32)
        values += centres[labels, :width]
        values += moved[group, :width]
        views.append(View(name, np.maximum(values, 0, out=values)))
    traits = [Trait(f"measure {number}", rng.random(count), "image") for number in range(7)]
    traits += [Trait(f"column {number}", rng.choice(list("abcdefgh"), count)) for number in range(5)]
    predicted = np.where(wrong, (labels + rng.integers(1, CLASSES, count)) % CLASSES, labels)
    traits += [Trait("true class", labels.astype(str), "class"), Trait("predicted class", predicted.astype(str),
                                                                       "prediction")]  # fmt: skip
    halves = first_half([str(number) for number in range(count)])
    return SliceData(wrong, halves, labels, views=tuple(views)), traits, predicted


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--images", type=int, default=50_000)
    options.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.csv"))
    given = options.parse_args()
    data, traits, predicted = drawn(given.images)
    start, cpu = time.perf_counter(), time.process_time()
    doubtful = doubtful_labels(data.views[0].values, data.labels, predicted)[0]
    labels_seconds = time.perf_counter() - start
    found = ranked_slices(traits, data)
    row = {
        "images": given.images,
        "errors": int(data.wrong.sum()),
        "values": 2 * WIDTH + HEAT_VALUES,
        "labels_s": round(labels_seconds, 1),
        "all_s": round(time.perf_counter() - start, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "confirmed": sum(each.confirmed for each in found),
        "doubtful": int(doubtful.sum()),
    }
    with given.out.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
    print(row)


if __name__ == "__main__":
    main()
