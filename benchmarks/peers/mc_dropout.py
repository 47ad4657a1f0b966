"""What stateless dropout masks cost: T looks at one volume beside the same passes with torch's own dropout on.

    python benchmarks/peers/mc_dropout.py [--device cuda] [--repeats 3] [--passes 20]

Bars, on the trained 3-D U-Net with channel dropout: at most 1.1 times as long; and, on a CPU, the peak memory of T
looks with their running sums at most 1.2 times that of one pass with torch's dropout and four float32 maps.
Element-wise dropout is reported without a bar.
"""

import argparse
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, ratio, write

from weakspot.core.subject import Subject
from weakspot.lesions.metrics import RunningSamples
from weakspot.looks import McDropout

SHAPE = (1, 1, 24, 128, 128)


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


def trained_unet() -> torch.nn.Module:
    models = architectures()
    unet = models.McDropoutUNet().eval()
    weights = SHARED / "models" / "McDropoutUNet-lgg_fold0.safetensors"
    return models.load_half_precision(unet, str(weights)) if weights.exists() else unet


def grown(passes: int) -> int:
    """Bytes that this process grows by at most: for one pass of torch's own, or for so many looks with their sums."""
    net, volume = trained_unet(), torch.zeros(SHAPE)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    with torch.no_grad():
        if passes == 0:
            net.sample_dropout()(volume)
        else:
            subject, look, running = Subject(net), McDropout(), RunningSamples((1,))
            for number in range(1, passes + 1):
                running.add(look.outputs(subject.forward, volume, ("patient",), number).softmax(1))
            running.maps()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


def memory_ratio(passes: int, repeats: int = 5) -> float:
    """The growth of T looks over that of one pass and four maps, each the median of several processes."""

    def own(count: int) -> float:
        asked = [sys.executable, __file__, "--grown", str(count)]
        grew = [subprocess.run(asked, check=True, capture_output=True, text=True).stdout for _ in range(repeats)]
        return float(np.median(list(map(int, grew))))

    return own(passes) / (own(0) + 4 * 4 * int(np.prod(SHAPE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--grown", type=int, help="print the memory of so many looks, 0 for torch's own pass, and end")
    options = parser.parse_args()
    if options.grown is not None:
        print(grown(options.grown))
        return
    volume = torch.from_numpy(np.random.default_rng(0).normal(size=SHAPE).astype(np.float32))
    rows = []
    for name, net, bar in (("McDropoutUNet", trained_unet(), 1.1), ("element-wise dropout", elementwise(), "")):
        seconds = measure(net.to(options.device).eval(), volume.to(options.device), options.passes, options)
        rows.append(
            {
                "machine": machine(options.device),
                "net": name,
                "ratio_to_torch": round(ratio(seconds, "stateless", "torch"), 3),
                "bar": bar,
                "memory_ratio": round(memory_ratio(min(4, options.passes)), 3)
                if bar and options.device == "cpu"
                else "",
                "seconds_per_pass": round(float(np.median(seconds["stateless"])) / options.passes, 4),
            }
        )
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
