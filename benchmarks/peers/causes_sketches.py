"""What sketches of heat maps cost in exactness: the clusters that they give against those of whole heat maps.

    python benchmarks/peers/causes_sketches.py [--images 5000] [--nets ResN WideResN]

Root causes of the errors of trained networks on SVHN, all convolutions and linears, once with whole maps and once with
sketches: the adjusted Rand index of the clusters of every layer whose maps are large enough to be sketched, each with
the number of clusters that its own knee chooses, whether the same layer is best, and the bytes that the rows take.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import machine, write
from relevance_peers import images, network
from sklearn.metrics import adjusted_rand_score

from weakspot import Finding, Subject, examine
from weakspot.causes import Errors, RootCauses
from weakspot.causes.sketches import SKETCH
from weakspot.data.sources import ArraySource

HERE = Path(__file__).resolve().parent


def root_causes(subject: Subject, data: ArraySource, errors: Finding, sketch: int | None) -> tuple[Finding, int, float]:
    """The Finding, the bytes of its rows, and seconds."""
    probe = RootCauses(errors=errors, sketch=sketch, replicates=0, thumbnail=0, most_images=8000)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        (found,) = examine(subject, data, [probe], work=Path(folder))
        seconds = time.perf_counter() - begun
        rows = sum(path.stat().st_size for path in Path(folder).rglob("heat_maps.*"))
    return found, rows, seconds


def measure(name: str, count: int) -> dict[str, Any]:
    net, (pictures, labels) = network(name, "cpu"), images(count, "cpu")
    data = ArraySource(pictures.numpy(), labels.numpy())
    subject = Subject(net, classes=10, scores="logits", fingerprint=name)
    (errors,) = examine(subject, data, [Errors()])
    (whole, whole_bytes, whole_s), (kept, kept_bytes, kept_s) = (
        root_causes(subject, data, errors, sketch) for sketch in (None, SKETCH)
    )
    sketched = ~np.isnan(kept.arrays["sketch_errors"])
    pairs = list(zip(whole.arrays["layer_labels"][sketched], kept.arrays["layer_labels"][sketched], strict=True))
    agreement = np.array([adjusted_rand_score(exact, close) for exact, close in pairs])
    chosen = [found.summary["layer"].value for found in (whole, kept)]
    clusters = [np.asarray(found.arrays["image_cluster"]) for found in (whole, kept)]
    return {
        "machine": machine("cpu"), "net": name, "errors": len(clusters[0]), "layers": len(sketched),
        "sketched_layers": int(sketched.sum()), "rand_mean": round(float(agreement.mean()), 3),
        "rand_least": round(float(agreement.min()), 3), "same_best_layer": chosen[0] == chosen[1],
        "rand_of_best": round(adjusted_rand_score(*clusters), 3),
        "length_error": round(float(np.nanmax(kept.arrays["sketch_errors"])), 4),
        "whole_mb": round(whole_bytes / 1e6, 1), "kept_mb": round(kept_bytes / 1e6, 1),
        "whole_s": round(whole_s, 1), "kept_s": round(kept_s, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--nets", nargs="+", default=["ResN", "WideResN"])
    options = parser.parse_args()
    torch.set_num_threads(2)
    write(HERE / "causes_sketches.csv", [measure(name, options.images) for name in options.nets])


if __name__ == "__main__":
    main()
