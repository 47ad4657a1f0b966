"""Which inputs does it get right only by luck? Neighbour accuracy of the embedded digits.

python examples/robustness.py
"""

from weakspot import Subject, examine
from weakspot.data import digits
from weakspot.looks import Rotate, Shift
from weakspot.robustness.neighbours import NeighbourAccuracy


def main() -> None:
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES)
    probe = NeighbourAccuracy(variation=Rotate(20) & Shift(1), looks=50, cutoff=0.75)
    finding = examine(subject, digits.test(), [probe])[0]
    for name, estimate in finding.summary.items():
        print(f"{name}: {estimate} ({estimate.about})")
    print("the five weakest that are right as they are:")
    lucky = [row for row in finding.table.to_pylist() if row["target"] == row["predicted"]]
    for row in lucky[:5]:
        print(f"  {row['id']}, a {row['target']}: right for {row['right']} of {row['looks_used']} looks")


if __name__ == "__main__":
    main()
