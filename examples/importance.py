"""What does my test set lack? Combinations of what matters that it never reaches, and its most surprising images.

python examples/importance.py [folder]
"""

import sys
from pathlib import Path

import numpy as np

from weakspot import Plan, Run, Subject
from weakspot.coverage.room import steps
from weakspot.data import digits
from weakspot.report import write_report


def main(folder: Path) -> None:
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES, scores="logits")
    run = Run.create(folder)
    options = {"criteria": ["idc", "lsc", "dsc"], "idc": {"neurons": "auto"}, "agreement": False}
    Plan.of(steps(options)).run(subject, {"train": digits.train(), "test": digits.test()}, run)

    found = run["coverage.importance_driven_coverage"]
    print(f"{found.summary['neurons']} neurons, {found.summary['neurons'].about}")
    print(f"covered: {found.summary['coverage']}, training inputs: {found.summary['coverage_of_training']}")
    holes = zip(found.arrays["hole_training_inputs"], found.arrays["hole_nearest_id"], strict=True)
    for inputs, names in list(holes)[:3]:
        print(f"missing: a combination that {inputs} training inputs show, such as {', '.join(names)}")

    distance = run["coverage.distance_surprise_coverage"]
    surprise, names = distance.table["surprise"].to_numpy(), distance.table["id"].to_pylist()
    for row in np.argsort(-surprise)[:3]:
        print(f"surprising: {names[row]}, {surprise[row]:.2f} (above 1 it looks more like another class)")
    print(f"report: {write_report(run, folder / 'report.html')}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/importance"))
