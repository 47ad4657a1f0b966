"""Which inputs does it get right only by luck? Weak digits, a detector that finds them, and a guard beside the model.

python examples/robustness.py
"""

import numpy as np

from weakspot import Plan, Run, Subject
from weakspot.data import digits
from weakspot.robustness.guard import Guard
from weakspot.robustness.room import steps

ASKED = {
    "neighbours": {"rotate": 15, "shift": 1},
    "looks": 24,
    "understand": True,
    "detector": {"sample": 400, "queries": 10, "epochs": 15},
}


def main() -> None:
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=digits.BOUNDS)
    run = Run.create("runs/robustness")
    Plan.of(steps(ASKED)).run(subject, {"train": digits.train(), "test": digits.test()}, run)

    accuracy = run["robustness.neighbour_accuracy"]
    for name, estimate in accuracy.summary.items():
        print(f"{name}: {estimate} ({estimate.about})")
    print("the five weakest that are right as they are:")
    lucky = [row for row in accuracy.table.to_pylist() if row["target"] == row["predicted"]]
    for row in lucky[:5]:
        print(f"  {row['id']}, a {row['target']}: right for {row['right']} of {row['looks_used']} looks")
    print(f"what hurts most: {run['robustness.variation_effects'].summary['hurts_most'].value}")

    print("detectors of weak inputs, and what costs nothing:")
    for row in run["robustness.detector_evaluation"].table.to_pylist():
        print(f"  {row['method']:12} F1 {row['f1']:.2f}, AUROC {row['auroc']:.2f}  ({row['about']})")

    with Guard.load(run, subject) as guard:
        judged = guard(digits.test().read(np.arange(5)).inputs)
    for answer, probability, weak in zip(judged.predicted, judged.probability, judged.weak, strict=True):
        print(f"a {answer}, weak with {probability:.0%}{': look twice' if weak else ''}")


if __name__ == "__main__":
    main()
