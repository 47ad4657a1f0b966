"""Changed copies found by a layer's values and by the perceptual hash, and images wrongly taken for copies.

    python benchmarks/data/feature_copies.py [--out FILE]

writes feature_copies.csv beside this script, or to --out. ResNet-32 on 2,500 SVHN test images (Netzer et al. 2011); of
300, one copy each of every kind is searched among all. Layers at half and four fifths of the depth, and the last one.
Last: what comparing by the hash costs per image, in milliseconds of a core.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.coverage.metrics_duplicates import image_keys, nearest_copies
from weakspot.coverage.metrics_feature_copies import feature_copies

SHARED = Path(os.environ.get("WEAKSPOT_SHARED", ""))
IMAGES, CHANGED, LIMIT = 2500, 300, 0.3
LAYERS = {"half": 0.5, "four fifths": 0.8, "last": 1.0}


def turned(images: Tensor) -> Tensor:
    """By 8 degrees."""
    cosine, sine = np.cos(np.deg2rad(8)), np.sin(np.deg2rad(8))
    matrix = torch.tensor([[cosine, -sine, 0], [sine, cosine, 0]], dtype=torch.float32).repeat(len(images), 1, 1)
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "darkened": lambda images: images * 0.6,
    "noisy": lambda images: (images + 0.05 * torch.randn(images.shape, generator=torch.manual_seed(0))).clamp(0, 1),
    "turned": turned,
    "cropped": lambda images: F.interpolate(images[:, :, 3:29, 3:29], 32, mode="bilinear", antialias=True),
    "shifted": lambda images: torch.roll(images, (3, -3), (2, 3)),
}


def network() -> nn.Module:
    """The trained network."""
    sys.path.insert(0, str(SHARED / "models"))
    from architectures import build, load_half_precision

    loaded: nn.Module = load_half_precision(build("ResN", "svhn"), SHARED / "models" / "ResN-svhn.safetensors")
    return loaded.eval()


def features(net: nn.Module, images: Tensor) -> dict[str, np.ndarray]:
    """The channel means of each layer."""
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    taken: dict[str, list[Tensor]] = {name: [] for name in LAYERS}
    hooks = [
        convolutions[min(int(len(convolutions) * depth), len(convolutions) - 1)].register_forward_hook(
            lambda module, inputs, output, name=name: taken[name].append(output.mean((2, 3)))
        )
        for name, depth in LAYERS.items()
    ]
    with torch.no_grad():
        for part in images.split(100):
            net(part)
    for hook in hooks:
        hook.remove()
    return {name: torch.cat(parts).double().numpy() for name, parts in taken.items()}


def milliseconds(side: int, count: int = 300) -> str:
    """Of one core, for what an image of this side is compared by."""
    images = torch.rand(count, 3, side, side, generator=torch.manual_seed(0))
    begun = time.process_time()
    image_keys(images)
    return f"{1000 * (time.process_time() - begun) / count:.2f}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    with np.load(SHARED / "data" / "svhn.npz") as svhn:
        images = torch.from_numpy(svhn["x_test"][:IMAGES]).permute(0, 3, 1, 2).float() / 255
    net, keys = network(), image_keys(images)
    known, own = features(net, images), nearest_copies(keys)
    changed = {name: change(images[:CHANGED]) for name, change in CHANGES.items()}
    rows: list[dict[str, object]] = [{"by": "hash", "wrongly": int((own.place >= 0).sum())}]
    for name, copies in changed.items():
        rows[0][name] = f"{(nearest_copies(image_keys(copies), keys).place == np.arange(CHANGED)).mean():.3f}"
    taken = {name: features(net, copies) for name, copies in changed.items()}
    for layer, values in known.items():
        wrongly = int((feature_copies(values, limit=LIMIT).place >= 0).sum())
        found = {name: feature_copies(taken[name][layer], values, limit=LIMIT).place for name in changed}
        shares = {name: f"{(place == np.arange(CHANGED)).mean():.3f}" for name, place in found.items()}
        rows.append({"by": layer, "wrongly": wrongly, **shares})
    rows += [{"by": f"keys of {side} x {side}", "milliseconds": milliseconds(side)} for side in (32, 224)]
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("by", "wrongly", *CHANGES, "milliseconds"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
