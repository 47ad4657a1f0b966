"""Which detected lesions are real? The lesions of embedded toy volumes, from the most to the least uncertain.

python examples/lesions.py
"""

from weakspot import Execution, Subject, examine
from weakspot.data import phantom
from weakspot.lesions.uncertainty import LesionUncertainty


def main() -> None:
    subject = Subject(phantom.model(), task="segmentation", classes=phantom.CLASSES, scores="logits")
    finding = examine(subject, phantom.test(), [LesionUncertainty(samples=20)], execution=Execution(batch_size=4))[0]
    print(f"{finding.summary['lesions']} lesions in {finding.summary['volumes']} volumes; the most uncertain ones:")
    for row in finding.table.sort_by([("entropy", "descending")]).to_pylist()[:5]:
        print(f"  {row['id']}, lesion {row['lesion']}: {row['voxels']} voxels, entropy {row['entropy']:.3f}")


if __name__ == "__main__":
    main()
