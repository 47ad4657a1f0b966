"""Is my test set adequate? Neuron, k-multisection and importance-driven coverage of the embedded digits.

python examples/coverage.py [folder]
"""

import sys
from pathlib import Path

from weakspot import Plan, Run, Subject
from weakspot.coverage.room import steps
from weakspot.data import digits
from weakspot.report import write_report


def main(folder: Path) -> None:
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES)
    data = {"train": digits.train(), "test": digits.test()}
    run = Run.create(folder)
    plan = Plan.of(steps({"criteria": ["nc", "kmnc", "idc"], "kmnc": {"sections": 100}}))
    for finding in plan.run(subject, data, run):
        if "coverage" in finding.summary:
            unseen = finding.summary["unseen"]
            print(f"{finding.name}: {finding.summary['coverage']} covered, {unseen} still to be reached")
    print(f"report: {write_report(run, folder / 'report.html')}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/coverage"))
