"""How much relevance is left at the first convolution of deep networks, by the rules: does it hold, vanish or diverge?

    python benchmarks/peers/relevance_bounds.py

Three trained networks on house numbers come from $WEAKSPOT_SHARED; those of timm, with depthwise convolutions, SiLU or
hard swish and squeeze-and-excite, have random weights and batch statistics of random images.
Writes a CSV beside itself.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, machine, write
from torch import Tensor, nn

from weakspot.relevance import Composite, deep_importance, epsilon_plus, hudd, propagation
from weakspot.relevance.soundness import unsound_samples

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
RULES: dict[str, Composite] = {
    "hudd": hudd(),
    "epsilon_plus": epsilon_plus(),
    "deep_importance": deep_importance(),
    "epsilon_plus_redistributed": epsilon_plus(bias="redistributed"),
}
TRAINED = ("ResN", "WideResN", "Vgg16Half")
RANDOM = ("efficientnet_lite0", "efficientnet_b0", "mobilenetv2_050", "mobilenetv3_small_100")
IMAGES = 16


def trained() -> Iterator[tuple[str, nn.Module, Tensor]]:
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        images = torch.from_numpy(stored["x_test"][:IMAGES]).permute(0, 3, 1, 2).float() / 255
    for name in TRAINED:
        net = architectures().build(name, "svhn")
        weights = SHARED / "models" / f"{name}-svhn.safetensors"
        yield f"{name}-svhn", architectures().load_half_precision(net, weights), images


def untrained() -> Iterator[tuple[str, nn.Module, Tensor]]:
    from tests.models.test_others import EmptyTorchvision  # timm asks for torchvision, which its networks do not use

    sys.meta_path.append(EmptyTorchvision())
    warnings.simplefilter("ignore")
    import timm

    for name in RANDOM:
        torch.manual_seed(0)
        net = timm.create_model(name, pretrained=False, num_classes=10).train()
        with torch.no_grad():
            for _ in range(20):
                net(torch.rand(8, 3, 64, 64))
        yield name, net.eval(), torch.rand(IMAGES, 3, 64, 64)


def measured(net: nn.Module, images: Tensor, rules: Composite) -> dict[str, float | int]:
    layers = [f"{name}:input" for name, part in net.named_modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    with propagation(net, rules, layers=layers, conservation=False) as trace:
        outputs = net(trace.watch(images))
    found = trace.relevance(outputs, to_inputs=False)
    maps, begun = list(found.layers.values()), found.start.double().abs()
    sizes = torch.stack([values.double().flatten(1).abs().sum(1) / begun for values in maps])
    _, absorbed, diverged = unsound_samples(maps, found.start).tolist()
    left, largest = float(sizes[0].median()), float(sizes.amax(0).median())
    return {
        "left": float(f"{left:.3g}"),
        "largest": float(f"{largest:.3g}"),
        "absorbed": absorbed,
        "diverged": diverged,
    }


def main() -> None:
    rows = [
        {"net": name, "rules": rules, **measured(net, images, composite), "images": IMAGES, "machine": machine("cpu")}
        for name, net, images in (*trained(), *untrained())
        for rules, composite in RULES.items()
    ]
    write(Path(__file__).with_suffix(".csv"), rows)
    for row in rows:
        print(*(row[name] for name in ("net", "rules", "left", "largest", "absorbed", "diverged")))


if __name__ == "__main__":
    main()
