"""Error examples of DeepInspect's Figures 8 and 9, on CIFAR-10: the nearest pairs of classes, and images mistaken.

python benchmarks/papers/classes_examples.py [--data FOLDER] [--net Vgg16Half-cifar10]

writes classes_examples.csv beside this script, the reported pairs with their true confusion in both directions, and
docs/images/papers-classes-examples.png: of the five nearest pairs the first test images that the net takes for the
other.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from classes import images_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from classes_study import answers
from measuring import SHARED, architectures, machine, write_rows

from weakspot import ExecutionOptions, Subject, examine
from weakspot.classes.probes import ClassPairs

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "papers-classes-examples.png"
SHOWN, EACH, SIDE, GAP, WORDS = 5, 5, 64, 6, 190


def drawn(pairs: list[tuple[int, int]], pixels: np.ndarray, truth: np.ndarray, said: np.ndarray) -> Image.Image:
    """A row for each pair: images of the first class taken for the second, then the reverse."""
    picture = Image.new("RGB", (WORDS + (2 * EACH + 1) * (SIDE + GAP), SHOWN * (SIDE + GAP)), "white")
    draw = ImageDraw.Draw(picture)
    for line, (first, second) in enumerate(pairs[:SHOWN]):
        top = line * (SIDE + GAP)
        for side, (own, other) in enumerate(((first, second), (second, first))):
            draw.text(
                (4, top + 12 + 22 * side), f"{CLASSES[own]} taken for {CLASSES[other]}", fill="black", font_size=13
            )
            mistaken = np.flatnonzero((truth == own) & (said == other))[:EACH]
            for place, image in enumerate(mistaken):
                left = WORDS + (side * (EACH + 1) + place) * (SIDE + GAP)
                picture.paste(Image.fromarray(pixels[image]).resize((SIDE, SIDE)), (left, top))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    parser.add_argument("--net", default="Vgg16Half-cifar10")
    given = parser.parse_args()
    models, architecture = architectures(), given.net.partition("-")[0]
    path = str(SHARED / "models" / f"{given.net}.safetensors")
    net = models.load_half_precision(models.build(architecture, "cifar10"), path).eval()
    subject, test = Subject(net, classes=CLASSES, scores="logits"), images_of("cifar10", "test", given.data, 10_000)
    probe = ClassPairs(thumbnail=0, pictures=0, replicates=0)
    finding = examine(subject, test, [probe], execution=ExecutionOptions(batch_size=256))[0]
    assert finding.table is not None
    outputs, truth = answers(subject, test)
    said, true = outputs.argmax(1).numpy(), truth.numpy()
    nearest = sorted(finding.table.to_pylist(), key=lambda row: row["distance"])
    reported = [row for row in nearest if row["confused"]]
    pairs = [(CLASSES.index(row["first"]), CLASSES.index(row["second"])) for row in reported]
    told = [
        {
            "net": given.net,
            "first": CLASSES[a],
            "second": CLASSES[b],
            "first_taken_for_second": int(((true == a) & (said == b)).sum()),
            "second_taken_for_first": int(((true == b) & (said == a)).sum()),
            "truly_confused": row["truly_confused"],
            "machine": machine("cpu"),
        }
        for (a, b), row in zip(pairs, reported, strict=True)
    ]
    write_rows(Path(__file__).with_suffix(".csv"), told)
    with np.load(given.data / "cifar10.npz") as stored:
        drawn(pairs, stored["x_test"], true, said).quantize(256).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
