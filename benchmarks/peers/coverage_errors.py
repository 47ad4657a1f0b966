"""Does coverage find errors? Every criterion beside max-softmax, margin, entropy and DeepGini, on trained networks.

    python benchmarks/peers/coverage_errors.py [--nets ResN WideResN Vgg16Half]

Street-view house numbers: ranges from 5,000 training images; 300 random subsets of 250 out of 2,500 test images
(correlation with the errors in a subset, and by image the AUROC of its contribution for being wrong); and 2,500 further
images ranked by what they add to the test images (APFD: how early the errors come; ½ at random).
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from measuring import SHARED, architectures, machine, write

from weakspot import Finding, Plan, Run, Subject
from weakspot.coverage.room import steps
from weakspot.data.sources import ArraySource

CRITERIA = ["nc", "kmnc", "nbc", "snac", "tknc", "tknp", "idc"]
MEASURES = [*CRITERIA, "max_softmax", "margin", "entropy", "deep_gini"]


def examined(name: str, images: int) -> tuple[Finding, Finding]:
    nets = architectures()
    net = nets.load_half_precision(nets.build(name, "svhn"), str(SHARED / "models" / f"{name}-svhn.safetensors"))
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        parts = {
            "train": (stored["x_train"][: 2 * images], stored["y_train"][: 2 * images]),
            "test": (stored["x_test"][:images], stored["y_test"][:images]),
            "pool": (stored["x_test"][images : 2 * images], stored["y_test"][images : 2 * images]),
        }
    data = {split: ArraySource(*own, channels="last") for split, own in parts.items()}
    agreement = {"most_inputs": None}
    asked = steps({"criteria": CRITERIA, "baseline": False, "agreement": agreement, "select": {"from": "pool"}})
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run")
        Plan.of(asked).run(Subject(net, classes=10, scores="logits"), data, run)
        return run["coverage.criteria_agreement"], run["coverage.next_inputs-pool"]


def row(net: str, measure: str, agreement: Finding, ranked: Finding) -> dict[str, object]:
    told = {
        "correlation": agreement.summary.get(f"{measure}_with_errors"),
        "auroc": agreement.summary.get(f"{measure}_by_input"),
        "apfd": ranked.summary.get(f"apfd_{measure}"),
    }
    columns: dict[str, object] = {"machine": machine("cpu"), "net": net, "measure": measure}
    for name, estimate in told.items():
        parts = (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
        shown = ["" if part is None else round(float(part), 3) for part in parts]
        columns |= dict(zip((name, f"{name}_low", f"{name}_high"), shown, strict=True))
    return columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", default=["ResN", "WideResN", "Vgg16Half"])
    parser.add_argument("--images", type=int, default=2500, help="to test and to rank; twice as many to train ranges")
    options, rows = parser.parse_args(), []
    for net in options.nets:
        agreement, ranked = examined(net, options.images)
        rows += [row(net, measure, agreement, ranked) for measure in MEASURES]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
