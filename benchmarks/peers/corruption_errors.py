"""Errors of trained nets under the fifteen common corruptions at five severities, on SVHN test images.

    python benchmarks/peers/corruption_errors.py [--images 200] [--device cuda] [--nets ResN Vgg16Half]

Severities of CIFAR-10-C, since the images are small. A row per net and corruption, the mean over severities with its
interval; `clean` is the error without corruption, `all` the mean over corruptions.
"""

import argparse
from pathlib import Path

import numpy as np
from measuring import SHARED, architectures, machine, write

from weakspot import Subject, examine
from weakspot.data.sources import ArraySource
from weakspot.robustness import CommonCorruptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--nets", nargs="+", default=["ResN", "Vgg16Half"])
    options = parser.parse_args()
    models, rows = architectures(), []
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        pixels, labels = stored["x_test"][: options.images], stored["y_test"][: options.images]
    source = ArraySource(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).astype(np.float32) / 255, labels)
    for name in options.nets:
        weights = SHARED / "models" / f"{name}-svhn.safetensors"
        net = models.load_half_precision(models.build(name, "svhn"), str(weights))
        subject = Subject(net, classes=10, scores="logits", bounds=(0, 1), device=options.device)
        summary = examine(subject, source, [CommonCorruptions()])[0].summary
        shown = {"clean": "clean_error", "all": "corruption_error"}
        shown |= {
            key.removeprefix("error_"): key for key in summary if key.startswith("error_") and key != "error_rise"
        }
        rows += [
            {
                "machine": machine(options.device),
                "net": name,
                "images": options.images,
                "corruption": label,
                "error": round(float(summary[key].value), 4),
                "low": round(float(summary[key].low), 4),
                "high": round(float(summary[key].high), 4),
            }
            for label, key in shown.items()
        ]
        write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
