"""Coverage by class, for DeepInspect's Figures 4 and 5, of a CIFAR-10 net in place of COCO's.

python benchmarks/papers/classes_coverage.py [--data FOLDER] [--net Vgg16Half-cifar10] [--images 2000]

writes classes_coverage.csv beside this script, which figures.py draws: quartiles of neuron coverage over the training
images of each class, and what the test images of each class cover of the ranges profiled on its training images.
"""

import argparse
import os
import sys
from pathlib import Path

from classes_examples import CLASSES

from classes import images_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, architectures, machine, write_rows

from weakspot import ExecutionOptions, Subject, examine
from weakspot.classes.coverage_probes import CRITERIA, ClassCoverage, ClassCriteria, ClassRanges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    parser.add_argument("--net", default="Vgg16Half-cifar10")
    parser.add_argument("--images", type=int, default=2_000)
    given = parser.parse_args()
    models, how = architectures(), ExecutionOptions(batch_size=256)
    path = str(SHARED / "models" / f"{given.net}.safetensors")
    net = models.load_half_precision(models.build(given.net.partition("-")[0], "cifar10"), path).eval()
    subject = Subject(net, classes=CLASSES, scores="logits")
    train, test = (images_of("cifar10", split, given.data, given.images) for split in ("train", "test"))
    coverage, ranges = examine(subject, train, [ClassCoverage(), ClassRanges()], execution=how)
    criteria = examine(subject, test, [ClassCriteria(ranges=ranges)], execution=how)[0]
    assert coverage.table is not None and criteria.table is not None
    known = {"net": given.net, "images": given.images, "machine": machine("cpu")}
    names = [name for name in coverage.table.column_names if name not in ("class", "images")]
    rows = []
    for one, other in zip(coverage.table.to_pylist(), criteria.table.to_pylist(), strict=True):
        figures = {name: round(float(one[name]), 4) for name in names}
        figures |= {name: round(float(other[name]), 4) for name in CRITERIA}
        rows.append({"class": one["class"], **figures, **known})
    write_rows(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
