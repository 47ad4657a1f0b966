"""Logits and features of the nine shared classifiers on test images, and on inputs that are none; kept in a folder.

    python benchmarks/peers/net_outputs.py [--data DATA] [--cache FOLDER] [--device cuda] [--nets ResN-svhn …]

DATA, by default $WEAKSPOT_DATA, holds cifar10.npz and fashion-mnist.npz. The benchmarks of the guard, of accuracy from
few labels and of diverse selection read what is kept here.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures

NETS = [f"{net}-{data}" for data in ("cifar10", "fashion_mnist", "svhn") for net in ("ResN", "WideResN", "Vgg16Half")]
STRANGE = 500
"""Inputs of each kind that is none of the data."""
_AT_ONCE = 250


def parser(about: str | None) -> argparse.ArgumentParser:
    """The arguments that all these benchmarks take."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    made.add_argument("--cache", type=Path, default=Path("net_outputs"))
    made.add_argument("--device", default="cpu")
    made.add_argument("--nets", nargs="+", choices=NETS, default=NETS)
    return made


def pixels(data: str, folder: Path, split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """Images and labels as they are stored."""
    path = SHARED / "data" / "svhn.npz" if data == "svhn" else folder / f"{data.replace('_', '-')}.npz"
    if not path.exists():
        sys.exit(f"needs {path}: name the folder with the public data, or set $WEAKSPOT_DATA")
    with np.load(path) as stored:
        return stored[f"x_{split}"], stored[f"y_{split}"].astype(np.int64).ravel()


def tensor(images: np.ndarray) -> torch.Tensor:
    """Inputs of the nets: float, from 0 to 1, channels first."""
    scaled = torch.from_numpy(images).float() / 255
    return scaled[:, None] if scaled.ndim == 3 else scaled.permute(0, 3, 1, 2).contiguous()


def strange_inputs(data: str, folder: Path) -> dict[str, torch.Tensor]:
    """What a guard must not call fine: black, white, noise, and images of another data set."""
    images, _ = pixels(data, folder)
    shape = tensor(images[:1]).shape[1:]
    rng = np.random.default_rng(0)
    noise = torch.from_numpy(rng.random((STRANGE, *shape), dtype=np.float32))
    other = {"cifar10": "svhn", "svhn": "cifar10", "fashion_mnist": "mnist"}[data]
    return {
        "black": torch.zeros(1, *shape),
        "white": torch.ones(1, *shape),
        "noise": noise,
        other: tensor(pixels(other, folder)[0][:STRANGE]),
    }


def network(net: str, device: str) -> torch.nn.Module:
    """A trained net, in evaluation mode."""
    models, (name, data) = architectures(), net.split("-")
    path = str(SHARED / "models" / f"{net}.safetensors")
    loaded: torch.nn.Module = models.load_half_precision(models.build(name, data), path).to(device).eval()
    return loaded


def answered(model: torch.nn.Module, inputs: torch.Tensor, device: str) -> dict[str, np.ndarray]:
    """Logits, and features: the input of the last linear layer."""
    taken: list[np.ndarray] = []
    hook = model.classifier.register_forward_pre_hook(lambda module, args: taken.append(args[0].float().cpu().numpy()))
    with torch.inference_mode():
        logits = [model(part.to(device)).float().cpu().numpy() for part in inputs.split(_AT_ONCE)]
    hook.remove()
    return {"logits": np.concatenate(logits), "features": np.concatenate(taken)}


def outputs(net: str, options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Everything of one net: `test_logits`, `test_features`, `labels`, and the same of strange inputs."""
    path, data = options.cache / f"{net}.npz", net.split("-")[1]
    if not path.exists():
        options.cache.mkdir(parents=True, exist_ok=True)
        model = network(net, options.device)
        images, labels = pixels(data, options.data)
        asked = {"test": tensor(images), **strange_inputs(data, options.data)}
        found = {
            f"{name}_{what}": values
            for name, inputs in asked.items()
            for what, values in answered(model, inputs, options.device).items()
        }
        np.savez(path, labels=labels, **found)
    with np.load(path) as stored:
        return dict(stored)


def every(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """All nets that were asked for."""
    for net in options.nets:
        yield net, outputs(net, options)


if __name__ == "__main__":
    for name, kept in every(parser(__doc__).parse_args()):
        print(name, f"{(kept['test_logits'].argmax(1) == kept['labels']).mean():.4f}", flush=True)
