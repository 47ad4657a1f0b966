"""The networks of DeepImportance's tables with their data: the authors' LeNets, a CIFAR-10 ConvNet, a DAVE-2.

    python benchmarks/papers/importance_nets.py [--device cuda] [--weights FOLDER]

trains the ConvNet (a minute on a GPU), and writes importance_nets.csv, Table 1: parameters and performance of all
networks whose weights and data are there. Needs `$WEAKSPOT_DATA` (mnist.npz, cifar10.npz) and `$WEAKSPOT_SHARED`; the
steering net comes from steering_nets.py. Weights are in FOLDER, by default $WEAKSPOT_DATA/nets.

The ConvNet is of the kind that the paper took from Keras' examples (six convolutions, max-pooling, dropout, 952,234
parameters): its penultimate feature maps are 128, as there. It is trained for 30 epochs on the training images as they
are; nothing was chosen.
"""

import csv
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import steering_nets
from measuring import SHARED, machine

from weakspot import Subject, examine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import Source
from weakspot.coverage.trace_probes import LayerTraces
from weakspot.data.sources import ArraySource
from weakspot.robustness import SquaredError

PUBLISHED = {
    "LeNet-1": (7206, 98.33), "LeNet-4": (69362, 98.59), "LeNet-5": (107786, 98.96), "ConvNet": (952234, 77.68),
    "DAVE-2": (2116983, 0.096),
}  # fmt: skip
"""Table 1: parameters, and accuracy in percent or mean squared error."""
EPOCHS, BATCH, RATE = 30, 256, 1e-3


class ConvNet(nn.Module):
    """Three times two 3×3 convolutions with ReLU, max-pooling and dropout, then a dense layer and logits."""

    def __init__(self) -> None:
        super().__init__()
        width = 3
        for number, channels in enumerate((32, 32, 64, 64, 128, 128), start=1):
            self.add_module(f"conv{number}", nn.Conv2d(width, channels, 3, padding=1))
            self.add_module(f"relu{number}", nn.ReLU())
            if number % 2 == 0:
                self.add_module(f"pool{number // 2}", nn.MaxPool2d(2))
                self.add_module(f"dropout{number // 2}", nn.Dropout(0.25))
            width = channels
        self.flatten = nn.Flatten()
        self.dense, self.dense_relu, self.dense_dropout = nn.Linear(2048, 320), nn.ReLU(), nn.Dropout(0.5)
        self.logits = nn.Linear(320, 10)

    def forward(self, images: Tensor) -> Tensor:
        for module in self.children():
            images = module(images)
        return images


@dataclass(frozen=True)
class Case:
    """A network under test: its subject and data, the layer whose neurons count, and layers from shallow to deep."""

    name: str
    subject: Subject
    data: dict[str, Source]
    layer: str
    depth: dict[str, str] = field(default_factory=dict)
    depth_neurons: int = 6
    """How many important neurons Table 5 takes."""
    epsilon: float = 0.3
    """How far FGSM and BIM may go."""


def images(name: str, channels: Any) -> dict[str, Source]:
    path = Path(os.environ.get("WEAKSPOT_DATA", "data")) / f"{name}.npz"
    if not path.exists():
        sys.exit(f"needs {path}: set $WEAKSPOT_DATA to the folder with the public data")
    with np.load(path) as stored:
        return {
            split: ArraySource(stored[f"x_{split}"], stored[f"y_{split}"].astype(np.int64).ravel(), channels=channels)
            for split in ("train", "test")
        }


def lenet(version: int, device: str) -> Case:
    sys.path.insert(0, str(SHARED / "models"))
    from paper_lenets import PaperLeNet
    from safetensors.torch import load_file

    net = PaperLeNet(version)
    net.load_state_dict(load_file(SHARED / "models" / f"PaperLeNet{version}-mnist.safetensors"))
    dense = {f"FC{number}": f"fc_relu{number}" for number in range(1, {1: 0, 4: 1, 5: 2}[version] + 1)}
    depth = {"Conv1": "pool1", "Conv2": "pool2", **dense}
    return Case(
        f"LeNet-{version}",
        Subject(net, task="classification", classes=10, scores="logits", bounds=(0, 1), device=device),
        images("mnist", "none"),
        layer=list(depth.values())[-1],
        depth=depth,
        depth_neurons=6 if version == 5 else 4,
    )


def convnet(device: str, folder: Path) -> Case:
    from safetensors.torch import load_file

    path = folder / "convnet.safetensors"
    if not path.exists():
        sys.exit(f"needs {path}: run benchmarks/papers/importance_nets.py first")
    net = ConvNet()
    net.load_state_dict({name: value.float() for name, value in load_file(path).items()})
    return Case(
        "ConvNet",
        Subject(net, task="classification", classes=10, scores="logits", bounds=(0, 1), device=device),
        images("cifar10", "last"),
        layer="pool3",
        depth={"Conv2": "pool1", "Conv4": "pool2", "Conv6": "pool3", "FC1": "dense_relu"},
        epsilon=8 / 255,
    )


def dave2(device: str, folder: Path) -> Case:
    """The first of the five trained DAVE-2; labels are smoothed as in its training."""
    net, width = steering_nets.loaded("dave2", folder)
    drive = steering_nets.drive()
    labels = drive.labels(width)
    data: dict[str, Source] = {
        split: ArraySource(drive.frames[drive.part == split], labels[drive.part == split], channels="last")
        for split in ("train", "test")
    }
    depth = {"Conv1": "stages.0.relu", "Conv3": "stages.2.relu", "Conv5": "stages.4.relu", "FC1": "dense.1"}
    return Case(
        "DAVE-2",
        Subject(net, task="regression", bounds=(0, 1), device=device),
        data,
        layer="dense.3",
        depth={**depth, "FC2": "dense.3"},
    )


def case(name: str, device: str, folder: Path) -> Case:
    """By its name in the tables."""
    if name.startswith("LeNet-"):
        return lenet(int(name[-1]), device)
    return convnet(device, folder) if name == "ConvNet" else dave2(device, folder)


def trained(device: str) -> ConvNet:
    """Adam down a cosine on the CIFAR-10 training images; the last weights count."""
    with np.load(Path(os.environ["WEAKSPOT_DATA"]) / "cifar10.npz") as stored:
        pixels = torch.from_numpy(stored["x_train"]).permute(0, 3, 1, 2).contiguous().to(device)
        labels = torch.from_numpy(stored["y_train"].astype(np.int64).ravel()).to(device)
    torch.manual_seed(0)
    net = ConvNet().to(device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-4)
    steps = EPOCHS * (len(pixels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(pixels), device=device)
        for own in order[: len(order) // BATCH * BATCH].split(BATCH):
            with torch.autocast(device.partition(":")[0], torch.bfloat16):
                loss = F.cross_entropy(net(pixels[own].float() / 255).float(), labels[own])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    return net.eval()


def performance(subject: Subject, source: Source) -> float:
    """Accuracy in percent, or the mean squared error."""
    how = ExecutionOptions(batch_size=1000)
    if subject.task == "regression":
        found = examine(subject, source, [SquaredError()], execution=how)[0]
        return float(found.summary["mean_squared_error"].value)  # type: ignore[arg-type]
    table = examine(subject, source, [LayerTraces()], execution=how)[0].table
    assert table is not None
    return 100 * float((table["predicted"].to_numpy() == table["target"].to_numpy()).mean())


def main() -> None:
    parser = steering_nets.argument_parser(__doc__, __file__)
    parser.add_argument("--nets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    options = parser.parse_args()
    path = options.weights / "convnet.safetensors"
    if "ConvNet" in options.nets and not path.exists():
        from safetensors.torch import save_file

        options.weights.mkdir(parents=True, exist_ok=True)
        state = trained(options.device).state_dict()
        save_file({name: value.half().cpu().contiguous() for name, value in state.items()}, path)
    rows = []
    for name in options.nets:
        one = case(name, options.device, options.weights)
        parameters = sum(each.numel() for each in one.subject.model.parameters())  # type: ignore[union-attr]
        rows.append(
            {
                "network": name,
                "parameters": parameters,
                "performance": round(performance(one.subject, one.data["test"]), 4),
                "published_parameters": PUBLISHED[name][0],
                "published_performance": PUBLISHED[name][1],
                "machine": machine(options.device),
            }
        )
        print(rows[-1], flush=True)
    with options.results.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
