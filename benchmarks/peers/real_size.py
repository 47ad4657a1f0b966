"""Whole commands on networks and images of real size, against the bare passes that they ran.

    python benchmarks/peers/real_size.py [--rooms coverage robustness classes all] [--nets resnet50 ...]
                                         [--train 96] [--test 96] [--size 224] [--classes 100] [--device cuda]

Each cell is a process of its own. It runs `weakspot examine` with the default options of a room, once over a few inputs
so that everything is imported, then over all of them; then it runs the model alone on as many inputs as often as the
command did, in the same batches: forward, and forward and backward where relevance was asked for. Seconds of the
command include loading the model and the data, and writing the Findings; memory is the peak of the process, with model
and torch.

The networks come from torchvision where it is installed, else from timm. Their weights are random: batch norms are
fitted to the images, and the last layer is scaled so that predictions spread over the classes. Labels are the
predictions, a tenth of them changed. Bars: coverage at most 1.3 times its passes on two CPU cores, twice on a GPU.
"""

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from measuring import machine, read_rows, write_rows
from torch import Tensor, nn

import weakspot

HERE = Path(__file__).resolve().parent
NETS = {
    "mobilenet_v3": ("mobilenet_v3_large", "mobilenetv3_large_100"),
    "efficientnet": ("efficientnet_b0", "efficientnet_lite0"),
    "resnet50": ("resnet50", "resnet50"),
    "vit_b16": ("vit_b_16", "vit_base_patch16_224"),
    "convnext_t": ("convnext_tiny", "convnext_tiny"),
}
"""Names in torchvision and in timm."""
LIBRARY = "timm" if find_spec("torchvision") is None else "torchvision"
ROOMS: dict[str, dict[str, Any]] = {
    "coverage": {"coverage": {}},
    "classes": {"classes": {}},
    "robustness": {"robustness": {"neighbours": {"rotate": 10, "shift": 8}, "looks": 20}},
    "causes": {"causes": {}},
}
ROOMS["all"] = {name: options for room in tuple(ROOMS.values()) for name, options in room.items()}
CHANGED_LABELS = 0.1
WARM_UP = 8
PASSES: list[tuple[int, bool]] = []
"""The passes of the model in this process: how many inputs, and whether a backward pass was prepared."""


class _Permissive(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _EmptyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Permissive(name, (), {"__module__": self.__name__})


class _EmptyTorchvision:
    """timm imports torchvision, which these networks do not use: where it is missing, empty modules stand in for it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == "torchvision" else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def plain_net(name: str, classes: int) -> nn.Module:
    """The network with random weights."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if LIBRARY == "torchvision":
            made: nn.Module = getattr(importlib.import_module("torchvision.models"), NETS[name][0])(num_classes=classes)
            return made
        finder = _EmptyTorchvision()
        sys.meta_path.append(finder)  # type: ignore[arg-type]
        try:
            made = importlib.import_module("timm").create_model(NETS[name][1], num_classes=classes, pretrained=False)
        finally:
            sys.meta_path.remove(finder)  # type: ignore[arg-type]
        return made


def counted_net(name: str, classes: int) -> nn.Module:
    """The same; its passes are noted in `PASSES`."""
    net = plain_net(name, classes)

    def note(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if inputs and isinstance(inputs[0], Tensor) and inputs[0].device.type != "meta":
            PASSES.append((len(inputs[0]), torch.is_grad_enabled()))

    net.register_forward_pre_hook(note)
    return net


def fitted_state(name: str, images: Tensor, classes: int) -> tuple[dict[str, Tensor], np.ndarray]:
    """Weights whose batch norms fit the images and whose predictions spread over the classes, and these predictions."""
    net = plain_net(name, classes)
    generator = torch.Generator().manual_seed(1)
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
        nn.init.normal_(norm.bias, 0.0, 0.2, generator=generator)
    with torch.no_grad():
        if norms:
            net.train()
            for batch in images[:64].split(32):
                net(batch)
        net.eval()
        logits = torch.cat([net(batch) for batch in images.split(32)])
        head = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
        scale = 4 / logits.std(0).clamp_min(1e-12)
        head.bias.copy_((head.bias - logits.mean(0)) * scale)
        head.weight.mul_(scale[:, None])
        predictions = ((logits - logits.mean(0)) * scale).argmax(1)
    return net.state_dict(), predictions.numpy()


def random_images(count: int, size: int) -> np.ndarray:
    """Coarse random patterns with noise, bytes, (images, 3, size, size)."""
    generator = np.random.default_rng(0)
    cell = -(-size // 8)
    coarse = generator.integers(0, 200, (count, 3, 8, 8), dtype=np.uint8)
    images = coarse.repeat(cell, axis=2).repeat(cell, axis=3)[:, :, :size, :size]
    return images + generator.integers(0, 56, images.shape, dtype=np.uint8)


def write_case(folder: Path, options: argparse.Namespace) -> np.ndarray:
    """The model, the data and a `weakspot.yaml` that asks one room with its default options."""
    images = random_images(options.train + options.test, options.size)
    state, predictions = fitted_state(options.net, torch.from_numpy(images).float() / 255 * 4 - 2, options.classes)
    torch.save(state, folder / "net.pt")
    generator = np.random.default_rng(2)
    moved = generator.integers(1, options.classes, len(images)) * (generator.random(len(images)) < CHANGED_LABELS)
    labels = (predictions + moved) % options.classes
    for split, part in {"train": slice(options.train), "test": slice(options.train, None)}.items():
        np.save(folder / f"{split}.npy", images[part])
        np.save(folder / f"{split}_labels.npy", labels[part])
    (folder / "nets.py").write_text(
        f"import real_size\n\n\ndef net():\n    return real_size.counted_net({options.net!r}, {options.classes})\n"
    )
    config = {
        "subject": {
            "model": "nets:net", "weights": "net.pt", "classes": options.classes, "scores": "logits",
            "preprocess": {"scale": 1, "mean": 0.5, "std": 0.25}, "device": options.device,
        },
        "data": {split: {"path": f"{split}.npy", "targets": f"{split}_labels.npy"} for split in ("train", "test")},
        "ask": ROOMS[options.room],
    }  # fmt: skip
    (folder / "weakspot.yaml").write_text(json.dumps(config))
    return images


def cell(options: argparse.Namespace) -> dict[str, Any]:
    """One command, measured in this process."""
    from weakspot.cli.main import app

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = write_case(folder, options)

        def command(run: str, *more: str) -> None:
            asked = ["examine", str(folder / "weakspot.yaml"), "--run", str(folder / run), "--quiet", *more]
            app(asked, standalone_mode=False)

        command("warm-up", "--limit", str(WARM_UP))
        PASSES.clear()
        wall, cpu = _seconds(lambda: command("run"), options.device)
        passes = list(PASSES)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        net = plain_net(options.net, options.classes).eval()
        net.load_state_dict(torch.load(folder / "net.pt", weights_only=True))
        bare, bare_cpu = _seconds(lambda: run_bare(net.to(options.device), images, passes), options.device)
    return {
        "passes_forward": sum(count for count, grad in passes if not grad),
        "passes_backward": sum(count for count, grad in passes if grad),
        "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "peak_gb": round(peak, 2),
        "bare_s": round(bare, 2), "bare_cpu_s": round(bare_cpu, 2), "ratio": round(wall / bare, 2),
        "ratio_cpu": round(cpu / bare_cpu, 2),
    }  # fmt: skip


def run_bare(net: nn.Module, images: np.ndarray, passes: list[tuple[int, bool]]) -> None:
    """The model alone, over as many inputs in the same batches, from memory."""
    device = next(net.parameters()).device
    net.requires_grad_(False)
    for number, (count, backward) in enumerate(passes):
        places = (np.arange(count) + number * count) % len(images)
        batch = (torch.from_numpy(images[places]).to(device).float() / 255 - 0.5) / 0.25
        with torch.set_grad_enabled(backward):
            outputs = net(batch.requires_grad_(backward))
            if backward:
                outputs.amax(1).sum().backward()


def _seconds(task: Callable[[], None], device: str) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(net: str, room: str, options: argparse.Namespace) -> dict[str, Any]:
    """The row of one cell, from a process of its own."""
    arguments = [f"--{name}={getattr(options, name)}" for name in ("train", "test", "size", "classes", "device")]
    code = "import real_size; real_size.main()"
    command = [sys.executable, "-c", code, "--cell", "--nets", net, "--rooms", room, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    if options.threads:
        environment["OMP_NUM_THREADS"] = str(options.threads)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def commit() -> str:
    """The commit of the source that is measured; with a plus where it was changed since."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(git, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=["mobilenet_v3", "efficientnet", "resnet50"])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=["coverage"])
    parser.add_argument("--train", type=int, default=96)
    parser.add_argument("--test", type=int, default=96)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cell", action="store_true", help="measure one cell in this process")
    options = parser.parse_args()
    if options.cell:
        options.net, options.room = options.nets[0], options.rooms[0]
        row = cell(options)
        print(json.dumps({"machine": machine(options.device), **row}))
        return
    keys = ("machine", "room", "net", "train", "test", "size", "classes")
    path = HERE / "real_size.csv"
    for room in options.rooms:
        for net in options.nets:
            row = measured(net, room, options)
            sizes = {name: getattr(options, name) for name in ("train", "test", "size", "classes")}
            row = {
                "machine": row.pop("machine"), "weakspot": weakspot.__version__, "commit": commit(),
                "library": LIBRARY, "room": room, "net": net, **sizes, **row,
            }  # fmt: skip
            print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
            same = [str(row[key]) for key in keys]
            kept = [old for old in read_rows(path) if [old[key] for key in keys] != same]
            write_rows(path, [*kept, row], columns=list(row))


if __name__ == "__main__":
    main()
