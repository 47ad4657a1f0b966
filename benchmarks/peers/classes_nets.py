"""Does the distance between classes find what the confusion matrices of nine real networks show?

    python benchmarks/peers/classes_nets.py [DATA [IMAGES]]

DATA, by default $WEAKSPOT_DATA, is a folder with cifar10.npz and fashion-mnist.npz (x_test, y_test). The networks and
SVHN come from $WEAKSPOT_SHARED, by default a folder `shared` beside the checkout. Writes a CSV beside itself.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import SHARED, architectures, machine, write

from weakspot import Execution, Subject, examine
from weakspot.classes.probes import ClassPairs
from weakspot.data.sources import ArraySource

NETS = ("ResN", "WideResN", "Vgg16Half")
TAPS: dict[str, dict[str, Any]] = {
    "all outputs": {},
    "all activated": {"side": "activated"},
    "penultimate": {"layers": "penultimate"},
}
FIGURES = [
    *(
        f"{what}_{figure}"
        for what in ("confusion", "bias")
        for figure in ("true_positives", "false_positives", "recall")
    ),
    *(f"{what}_{figure}" for what in ("confusion", "bias") for figure in ("correlation", "gain")),
]


def test_data(name: str, folder: Path, images: int | None) -> ArraySource:
    path = SHARED / "data" / "svhn.npz" if name == "svhn" else folder / f"{name.replace('_', '-')}.npz"
    if not path.exists():
        sys.exit(f"needs {path}: name the folder with the public data, or set $WEAKSPOT_DATA")
    with np.load(path) as stored:
        inputs, targets = stored["x_test"][:images], stored["y_test"][:images]
    return ArraySource(inputs, targets, channels="last" if inputs.ndim == 4 else "none")


def rows(folder: Path, images: int | None) -> Iterator[dict[str, Any]]:
    models = architectures()
    for dataset in ("cifar10", "fashion_mnist", "svhn"):
        source = test_data(dataset, folder, images)
        for name in NETS:
            net = models.build(name, dataset)
            net = models.load_half_precision(net, str(SHARED / "models" / f"{name}-{dataset}.safetensors"))
            subject = Subject(net, classes=10, scores="logits")
            probes = [ClassPairs(thumbnail=0, **options) for options in TAPS.values()]
            findings = examine(subject, source, probes, execution=Execution(batch_size=128))
            for tap, finding in zip(TAPS, findings, strict=True):
                told = {figure: finding.summary[figure] for figure in FIGURES}
                yield {
                    "machine": machine("cpu"),
                    "net": name,
                    "data": dataset,
                    "images": len(source.ids),
                    "tap": tap,
                    **told,
                }


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WEAKSPOT_DATA", "data"))
    images = int(sys.argv[2]) if len(sys.argv) > 2 else None
    found = [{key: str(item) for key, item in row.items()} for row in rows(folder, images)]
    write(Path(__file__).with_suffix(".csv"), found)


if __name__ == "__main__":
    main()
