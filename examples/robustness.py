"""Which inputs are predicted correctly only by luck? Weak digits, a detector, a run-time monitor, and a guard.

python examples/robustness.py
"""

import numpy as np
import torch

from weakspot import Plan, Run, Subject
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.robustness import RuntimeMonitor, guarded_model
from weakspot.robustness.guard_runtime import VERDICTS
from weakspot.robustness.room import steps

ASKED = {
    "neighbours": {"rotate": 15, "shift": 1},
    "looks": 24,
    "analysis": True,
    "detector": {"sample": 400, "queries": 10, "epochs": 15},
    "guard": {"false_alarms": 0.05},
}


def main() -> None:
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=digits.BOUNDS)
    run = Run.create("runs/robustness")
    held_out = digits.test()
    validation, test = (Subset.named(held_out, list(held_out.ids)[first::2]) for first in (0, 1))
    data = {"train": digits.train(), "validation": validation, "test": test}
    Plan.of(steps(ASKED)).run(subject, data, run)

    accuracy = run["robustness.neighbour_accuracy"]
    for name, estimate in accuracy.summary.items():
        print(f"{name}: {estimate} ({estimate.about})")
    print("the five weakest that are predicted correctly as they are:")
    correct = [row for row in accuracy.table.to_pylist() if row["correct"]]
    for row in correct[:5]:
        print(f"  {row['id']}, a {row['target']}: {row['correct_looks']} of {row['looks_used']} looks are correct")
    print(f"what hurts most: {run['robustness.variation_effects'].summary['hurts_most'].value}")

    print("detectors of weak inputs, and baselines:")
    for row in run["robustness.detector_evaluation"].table.to_pylist():
        print(f"  {row['method']:12} F1 {row['f1']:.2f}, AUROC {row['auroc']:.2f}  ({row['about']})")

    guard = run["robustness.guard_evaluation"].summary
    print(f"a guard's AUROC for incorrect predictions: {guard['auroc']}; of confidence: {guard['max_softmax_auroc']}")
    black = guarded_model(run, subject)(torch.zeros(1, 1, 8, 8))
    print(f"an image that is all black is {VERDICTS[int(black.verdict)]}")

    with RuntimeMonitor.load(run, subject) as monitor:
        result = monitor(digits.test().read(np.arange(5)).inputs)
    for prediction, probability, flagged in zip(*result, strict=True):
        print(f"a {prediction}, weak with a probability of {probability:.0%}{': flagged' if flagged else ''}")


if __name__ == "__main__":
    main()
