"""Which detected lesions are real? A lesion model learns from validation cases and judges the test cases.

python examples/lesions.py
"""

import tempfile
from pathlib import Path

from weakspot import ExecutionOptions, Run, Subject
from weakspot.core.plan import Plan
from weakspot.core.source import Subset
from weakspot.data import phantom
from weakspot.registry import steps_for


def main() -> None:
    subject = Subject(phantom.model(), task="segmentation", classes=phantom.CLASSES, scores="logits")
    data = {"validation": phantom.ToyVolumes("validation", 40), "test": Subset(phantom.test(), range(12))}
    steps = steps_for({"lesions": {"fit": "validation", "looks": 8, "epochs": 10, "folds": 2}})
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run")
        Plan.of(steps).run(subject, data, run, execution=ExecutionOptions(batch_size=4))
        scored = run["lesions.scores"]
    print(f"{scored.summary['lesions']} lesions; area under the accuracy-confidence curve {scored.summary['area']}")
    print(f"calibrated: {scored.summary['calibrated'].about}; those most probably false:")
    for row in scored.table.sort_by("rank").to_pylist()[:5]:
        place = ", ".join(f"{row[axis]:.0f}" for axis in "zyx")
        print(f"  {row['case']}, lesion {row['lesion']} at ({place}): {row['false_positive_probability']:.2f}")


if __name__ == "__main__":
    main()
