"""The networks, images and files of the benchmark of whole commands: made once, used by every room."""

import argparse
import importlib
import json
import sys
import warnings
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from measuring import architectures
from PIL import Image
from torch import Tensor, nn

NETS = {
    "mobilenet_v3": ("mobilenet_v3_large", "mobilenetv3_large_100"),
    "efficientnet": ("efficientnet_b0", "efficientnet_lite0"),
    "resnet50": ("resnet50", "resnet50"),
    "vit_b16": ("vit_b_16", "vit_base_patch16_224"),
    "convnext_t": ("convnext_tiny", "convnext_tiny"),
}
"""Names in torchvision and in timm."""
SMALL = {"resnet32": "ResN"}
"""Networks of the shared models, for images of 32²."""
LIBRARY = "timm" if find_spec("torchvision") is None else "torchvision"
PREPROCESS = {"scale": 1, "mean": 0.5, "std": 0.25}
FITTED = 64
"""Images that batch norms are fitted to."""
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
        if name in SMALL:
            small: nn.Module = architectures().build(SMALL[name], classes=classes)
            return small
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
        first = inputs[0] if inputs else None
        if isinstance(first, Tensor) and first.device.type != "meta" and type(first) is Tensor:
            PASSES.append((len(first), torch.is_grad_enabled()))

    net.register_forward_pre_hook(note)
    return net


def prepared(images: Tensor) -> Tensor:
    """Bytes as the network is given them."""
    return (images.float() / 255 - PREPROCESS["mean"]) / PREPROCESS["std"]


def fitted_state(name: str, images: np.ndarray, options: argparse.Namespace) -> tuple[dict[str, Tensor], np.ndarray]:
    """Weights whose batch norms fit the images and whose predictions spread over the classes, and these predictions."""
    net = plain_net(name, options.classes).to(options.device)
    generator = torch.Generator().manual_seed(1)
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        norm.weight.data.copy_(torch.empty(norm.num_features).uniform_(0.5, 1.5, generator=generator))
        norm.bias.data.copy_(torch.empty(norm.num_features).normal_(0.0, 0.2, generator=generator))

    def logits_of(some: np.ndarray) -> Tensor:
        outputs: Tensor = net(prepared(torch.from_numpy(some).to(options.device)))
        return outputs

    with torch.no_grad():
        if norms:
            net.train()
            logits_of(images[:FITTED])
        net.eval()
        head = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
        head.weight.copy_(torch.empty(head.weight.shape).normal_(0.0, 0.05, generator=generator))
        logits = torch.cat([logits_of(images[i : i + 32]) for i in range(0, len(images), 32)])
        scale = 4 / logits.std(0).clamp_min(1e-12)
        head.bias.copy_((head.bias - logits.mean(0)) * scale)
        head.weight.mul_(scale[:, None])
        predictions = ((logits - logits.mean(0)) * scale).argmax(1)
    return {key: value.cpu() for key, value in net.state_dict().items()}, predictions.cpu().numpy()


def random_images(count: int, size: int) -> np.ndarray:
    """Coarse random patterns with noise, bytes, (images, 3, size, size)."""
    generator = np.random.default_rng(0)
    cell = -(-size // 8)
    coarse = generator.integers(0, 200, (count, 3, 8, 8), dtype=np.uint8)
    images = coarse.repeat(cell, axis=2).repeat(cell, axis=3)[:, :, :size, :size]
    noise = generator.integers(0, 56, (min(count, 256), 3, size, size), dtype=np.uint8)
    for start in range(0, count, len(noise)):
        images[start : start + len(noise)] += noise[: count - start]
    return images


def write_images(folder: Path, options: argparse.Namespace) -> None:
    """The arrays of both splits, and the same as JPEG files where they are asked for."""
    if not (folder / "train.npy").exists():
        images = random_images(options.train + options.test, options.size)
        np.save(folder / "train.npy", images[: options.train])
        np.save(folder / "test.npy", images[options.train :])
    for split in ("train", "test") if options.data == "jpeg" else ():
        if (folder / split).exists():
            continue
        (folder / split).mkdir()
        for number, image in enumerate(np.load(folder / f"{split}.npy", mmap_mode="r")):
            Image.fromarray(image.transpose(1, 2, 0)).save(folder / split / f"{number:06d}.jpg", quality=90)


def write_case(folder: Path, options: argparse.Namespace) -> None:
    """The model, the labels and a `weakspot.yaml` that asks one room with its default options."""
    write_images(folder, options)
    splits = {split: np.load(folder / f"{split}.npy", mmap_mode="r") for split in ("train", "test")}
    if not (folder / f"{options.net}.pt").exists():
        state, predictions = fitted_state(options.net, np.concatenate(list(splits.values())), options)
        torch.save(state, folder / f"{options.net}.pt")
        generator = np.random.default_rng(2)
        moved = generator.integers(1, options.classes, len(predictions))
        labels = (predictions + moved * (generator.random(len(predictions)) < options.changed)) % options.classes
        parts = {"train": labels[: options.train], "test": labels[options.train :]}
        for split, part in parts.items():
            np.save(folder / f"{options.net}_{split}.npy", part)
            lines = [f"{split}/{number:06d}.jpg,{label}\n" for number, label in enumerate(part)]
            (folder / f"{options.net}_{split}.csv").write_text("path,label\n" + "".join(lines))
    made = f"real_size_case.counted_net({options.net!r}, {options.classes})"
    code = f"import real_size_case\n\n\ndef net():\n    return {made}\n"
    (folder / f"{options.net}_net.py").write_text(code)
    (folder / "weakspot.yaml").write_text(json.dumps(config(options)))


def config(options: argparse.Namespace) -> dict[str, Any]:
    """What is asked, with default options throughout."""
    net, data = options.net, {}
    for split in ("train", "test"):
        arrays = {"path": f"{split}.npy", "targets": f"{net}_{split}.npy"}
        files = {"path": f"{net}_{split}.csv", "targets": "label", "path_column": "path"}
        data[split] = files if options.data == "jpeg" else arrays
    return {
        "subject": {
            "model": f"{net}_net:net", "weights": f"{net}.pt", "classes": options.classes, "scores": "logits",
            "preprocess": PREPROCESS, "device": options.device,
        },
        "data": data,
        "ask": options.ask,
    }  # fmt: skip
