"""Is my test set adequate? Every coverage criterion on the embedded digits, and what it says of the errors found.

python examples/coverage.py [folder]
"""

import sys
from pathlib import Path

from weakspot import Plan, Run, Subject
from weakspot.coverage.room import steps
from weakspot.data import digits
from weakspot.report import write_report


def main(folder: Path) -> None:
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES, scores="logits")
    data = {"train": digits.train(), "test": digits.test()}
    run = Run.create(folder)
    plan = Plan.of(steps({"kmnc": {"sections": 100}, "confidence": True, "select": {"from": "test"}}))
    plan.run(subject, data, run)
    for name in ("neuron_coverage", "k_multisection", "top_neurons", "importance_driven_coverage"):
        told = run[f"coverage.{name}"].summary
        training = told.get("coverage_of_training", "not asked")
        print(f"{name}: {told['coverage']} covered (training: {training}), {told['unseen']} still to be reached")
    agreement, ranked = run["coverage.criteria_agreement"].summary, run["coverage.next_inputs"].summary
    for name in ("nc", "kmnc", "nbc", "tknc", "deep_gini"):
        print(f"{name}: correlation with errors {agreement[f'{name}_with_errors']}, APFD {ranked[f'apfd_{name}']}")
    print(f"report: {write_report(run, folder / 'report.html')}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/coverage"))
