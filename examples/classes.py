"""Which classes does a network mix up, or treat unequally? On the embedded digits: python examples/classes.py"""

from weakspot import Subject, examine
from weakspot.classes import pair_confusion, pair_values
from weakspot.classes.group_probes import GroupFairness
from weakspot.classes.probes import ClassPairs
from weakspot.data import digits
from weakspot.statistics import spearman


def main() -> None:
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=digits.BOUNDS)
    pairs, groups = examine(subject, digits.test(), [ClassPairs(), GroupFairness()])

    print("Nearest pairs of digits, found without labels:")
    for row in pairs.table.slice(0, 5).to_pylist():
        certainty = f"reported with certainty {row['certainty']:.2f}" if row["confused"] else "not reported"
        print(f"  {row['first']} and {row['second']}: distance {row['distance']:.2f}, {certainty}", end="; ")
        rank, shared = row["soft_confusion_rank"], row["soft_confusion"]
        print(f"place {rank} by the outputs alone, which give {shared:.1%} to each other")

    distance, truth = pair_values(pairs.arrays["distance"]), pair_values(pair_confusion(pairs.arrays["confusion"]))
    print(f"Spearman's correlation of distance and true confusion: {spearman(distance, truth):.2f}")
    for name, told in (("distance", "confusion_gain"), ("outputs alone", "outputs_confusion_gain")):
        print(f"Gain over a random order of the pairs, by {name}: {pairs.summary[told].value:.0%}")

    print("Accuracy by digit:")
    for name, estimate in groups.summary.items():
        print(f"  {name}: {estimate} ({estimate.about})")


if __name__ == "__main__":
    main()
