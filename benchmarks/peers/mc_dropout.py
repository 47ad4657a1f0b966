"""What stateless dropout masks cost: T looks at one volume beside the same passes with torch's own dropout on.

    python benchmarks/peers/mc_dropout.py [--device cuda] [--repeats 10]

Bar: at most 1.1 times, on the trained 3-D U-Net with channel dropout. Element-wise dropout is reported without a bar.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, ratio, write

from weakspot.core.subject import Subject
from weakspot.looks import McDropout


def elementwise() -> torch.nn.Module:
    """A small net whose dropout draws a number per voxel."""
    conv = torch.nn.Conv3d
    return torch.nn.Sequential(
        conv(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Dropout(0.2),
        conv(16, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Dropout(0.2), conv(16, 2, 1),
    )  # fmt: skip


def measure(
    net: torch.nn.Module, volume: torch.Tensor, passes: int, options: argparse.Namespace
) -> dict[str, list[float]]:
    subject, look = Subject(net), McDropout()

    def stateless() -> None:
        with torch.no_grad():
            for number in range(1, passes + 1):
                look.outputs(subject.forward, volume, ("patient",), number)

    def torchs_own() -> None:
        dropouts = [module for module in net.modules() if "Dropout" in type(module).__name__]
        for module in dropouts:
            module.train()
        with torch.no_grad():
            for _ in range(passes):
                net(volume)
        for module in dropouts:
            module.eval()

    return interleaved({"torch": torchs_own, "stateless": stateless}, options.repeats, options.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args()
    models = architectures()
    unet = models.McDropoutUNet()
    weights = SHARED / "models" / "McDropoutUNet-lgg_fold0.safetensors"
    if weights.exists():
        models.load_half_precision(unet, str(weights))
    volume = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 1, 24, 128, 128)).astype(np.float32))
    rows = []
    for name, net, bar in (("McDropoutUNet", unet, 1.1), ("element-wise dropout", elementwise(), "")):
        seconds = measure(net.to(options.device).eval(), volume.to(options.device), options.passes, options)
        rows.append(
            {
                "machine": machine(options.device),
                "net": name,
                "ratio_to_torch": round(ratio(seconds, "stateless", "torch"), 3),
                "bar": bar,
                "seconds_per_pass": round(float(np.median(seconds["stateless"])) / options.passes, 4),
            }
        )
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
