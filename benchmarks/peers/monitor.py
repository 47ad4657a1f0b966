"""What a run-time monitor adds to a model's own time, image by image: white box at batch 1, on trained networks.

    python benchmarks/peers/monitor.py [--device cuda] [--repeats 200]

Bar: less than 1 ms per image added to the bare forward pass in evaluation.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, write

from weakspot import Plan, Run, Step, Subject
from weakspot.core.source import limited
from weakspot.data.sources import ArraySource
from weakspot.robustness import RuntimeMonitor, WeakDetector

NETS = ("ResN", "WideResN", "Vgg16Half")
TRAINING = {"looks": 20, "queries": 8, "sample": 400, "epochs": 5}


def median_ms(seconds: list[float]) -> float:
    return 1000 * float(np.median(seconds))


def measured(name: str, device: str, repeats: int) -> dict[str, object]:
    models = architectures()
    path = str(SHARED / "models" / f"{name}-svhn.safetensors")
    net = models.load_half_precision(models.build(name, "svhn"), path).to(device)
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        source = ArraySource(stored["x_train"][:400], stored["y_train"][:400], channels="last")
    subject = Subject(net, classes=10, scores="logits", bounds=(0, 1))
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run")
        Plan.of([Step.of(WeakDetector, **TRAINING)]).run(subject, {"train": source}, run)
        monitor = RuntimeMonitor.load(run, subject, mode="white_box")
        image = limited(source, 1).read(np.arange(1)).inputs.to(device)

        def bare() -> None:
            with torch.no_grad():
                net(image).argmax(1).cpu()

        with monitor:
            seconds = interleaved({"bare": bare, "monitored": lambda: monitor(image)}, repeats, device)
    added = 1000 * float(np.median(np.subtract(seconds["monitored"], seconds["bare"])))
    return {
        "machine": machine(device),
        "net": name,
        "bare_ms": round(median_ms(seconds["bare"]), 3),
        "monitored_ms": round(median_ms(seconds["monitored"]), 3),
        "added_ms": round(added, 3),
        "bar_ms": 1.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    write(Path(__file__).with_suffix(".csv"), [measured(name, options.device, options.repeats) for name in NETS])


if __name__ == "__main__":
    main()
