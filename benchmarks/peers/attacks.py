"""Attacks beside ART's (adversarial-robustness-toolbox): images per second, success and distortion, interleaved.

    python benchmarks/peers/attacks.py [--device cuda] [--images 64] [--few 8] [--repeats 1] [--threads 2]

Equal settings: the same net, images and budget. ART is measured as it comes, in its own batches (32 images; 1 for C&W
and JSMA), and with all images in one batch, as ours are. ART's C&W searches along every step where ours just takes it,
so its learning rate means something else. Slow attacks on the ResNet are measured with `--few` images. Without ART only
our side is measured. The LeNet needs mnist.npz in $WEAKSPOT_DATA and is left out without it.
"""

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, ratio, write
from safetensors.torch import load_file
from torch import Tensor, nn

from weakspot.attacks import bim, carlini_wagner, distortion, fgsm, jsma

MNIST = Path(os.environ.get("WEAKSPOT_DATA", "")) / "mnist.npz"
BOUNDS = (0.0, 1.0)
BARS = {"fgsm": 3, "bim": 3, "jsma": 20, "carlini_wagner": 20}
SLOW = ("jsma", "carlini_wagner")
EPSILON, STEP, ITERATIONS = {"LeNet-5": 0.2, "ResNet-32": 0.03}, 0.01, 10
RATE = {"LeNet-5": 0.3, "ResNet-32": 0.01}
"""Of Adam in tanh space, picked from a handful tried on these very images (the changes that the two nets need differ
tenfold), as was `restart=False`, not in the paper; ART keeps its default, which its search along the step corrects.
"""

Attack = Callable[[Tensor, Tensor], Tensor]


def lenet(count: int) -> tuple[nn.Module, Tensor, Tensor]:
    """The LeNet-5 of DeepImportance's authors, and MNIST test images."""
    architectures()  # puts the folder of the definitions on the path
    from paper_lenets import PaperLeNet

    net = PaperLeNet(5)
    net.load_state_dict(load_file(SHARED / "models" / "PaperLeNet5-mnist.safetensors"))
    with np.load(MNIST) as stored:
        pixels, labels = stored["x_test"][:count], stored["y_test"][:count]
    return net, torch.from_numpy(pixels).view(-1, 1, 28, 28).float() / 255, torch.from_numpy(labels).long()


def resnet(count: int) -> tuple[nn.Module, Tensor, Tensor]:
    """ResNet-32 and street-view house numbers."""
    models = architectures()
    net = models.load_half_precision(models.build("ResN", "svhn"), str(SHARED / "models" / "ResN-svhn.safetensors"))
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        pixels, labels = stored["x_test"][:count], stored["y_test"][:count]
    return (
        net,
        torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).contiguous(),
        torch.from_numpy(labels).long(),
    )


def ours(name: str, net: nn.Module) -> dict[str, Attack]:
    """What weakspot does, with the settings of the comparison; the last is C&W as it is by default."""
    epsilon = EPSILON[name]
    steps = {"epsilon": epsilon, "step": STEP, "iterations": ITERATIONS, "bounds": BOUNDS}
    few = {"search_steps": 10, "iterations": 10, "initial_constant": 0.01, "learning_rate": RATE[name]}
    return {
        "fgsm": lambda x, y: fgsm(net, x, y, epsilon=epsilon, bounds=BOUNDS),
        "bim": lambda x, y: bim(net, x, y, **steps),
        "bim, stopping early": lambda x, y: bim(net, x, y, stop_early=True, **steps),
        "jsma": lambda x, y: jsma(net, x, (y + 1) % 10, theta=1.0, gamma=0.145, bounds=BOUNDS),
        "carlini_wagner": lambda x, y: carlini_wagner(
            net, x, y, bounds=BOUNDS, restart=False, abort_early=False, **few
        ),
        "carlini_wagner, default": lambda x, y: carlini_wagner(net, x, y, bounds=BOUNDS),
    }


def arts(name: str, net: nn.Module, shape: tuple[int, ...], device: str, batch: int | None) -> dict[str, Attack]:
    """What ART does, in batches of a size or of its own choice; nothing where it is not installed."""
    try:
        from art.attacks.evasion import BasicIterativeMethod, CarliniL2Method, FastGradientMethod, SaliencyMapMethod
        from art.estimators.classification import PyTorchClassifier
    except ImportError:
        print("adversarial-robustness-toolbox is not installed: only weakspot is measured")
        return {}
    kind = "gpu" if device.startswith("cuda") else "cpu"
    classifier = PyTorchClassifier(net, nn.CrossEntropyLoss(), shape, 10, clip_values=BOUNDS, device_type=kind)
    size = {} if batch is None else {"batch_size": batch}
    how: dict[str, Any] = {"verbose": False, **size}
    attacks = {
        "fgsm": FastGradientMethod(classifier, eps=EPSILON[name], **size),
        "bim": BasicIterativeMethod(classifier, eps=EPSILON[name], eps_step=STEP, max_iter=ITERATIONS, **how),
        "jsma": SaliencyMapMethod(classifier, theta=1.0, gamma=0.145, **how),
        "carlini_wagner": CarliniL2Method(classifier, **how),  # 10 values of c, 10 steps for each
    }

    def run(attack: Any, x: Tensor, y: Tensor) -> Tensor:
        wanted = (y + 1) % 10 if isinstance(attack, SaliencyMapMethod) else y
        return torch.from_numpy(attack.generate(x.cpu().numpy(), wanted.cpu().numpy())).to(x)

    return {task: lambda x, y, attack=attack: run(attack, x, y) for task, attack in attacks.items()}


def measure(
    name: str, net: nn.Module, images: Tensor, labels: Tensor, options: argparse.Namespace
) -> list[dict[str, Any]]:
    net, images, labels = net.to(options.device).eval(), images.to(options.device), labels.to(options.device)
    shape, where = tuple(images.shape[1:]), {"machine": machine(options.device), "net": name}
    own, equal = (arts(name, net, shape, options.device, batch) for batch in (None, options.images))
    rows = []
    for task, attack in ours(name, net).items():
        kind = task.partition(",")[0]  # the default C&W has a budget of its own, so no peer
        count = options.few if kind in SLOW and name == "ResNet-32" else options.images
        peers = {"art": own[kind], "art, one batch": equal[kind]} if own and "default" not in task else {}
        repeats = options.repeats if kind in SLOW else max(options.repeats, 5)
        found = compare(
            net, task, {"weakspot": attack, **peers}, images[:count], labels[:count], repeats, options.device
        )
        rows += [{**where, **row} for row in found]
    return rows


def compare(
    net: nn.Module, task: str, runs: dict[str, Attack], x: Tensor, y: Tensor, repeats: int, device: str
) -> list[dict[str, Any]]:
    """One row for each who attacks."""
    made: dict[str, Tensor] = {}

    def timed(who: str) -> None:
        made[who] = runs[who](x, y)

    seconds = interleaved({who: partial(timed, who) for who in runs}, repeats, device)
    peers = [who for who in runs if who != "weakspot"]
    return [
        {
            "attack": task,
            "who": who,
            "images": len(x),
            "images_per_second": round(len(x) / statistics.median(seconds[who]), 2),
            "times_art": round(ratio(seconds, "art", who), 2) if peers else "",
            "times_art_one_batch": round(ratio(seconds, "art, one batch", who), 2) if peers else "",
            "bar": BARS.get(task, "") if who == "weakspot" else "",
            **judged(net, x, y, made[who], task),
        }
        for who in runs
    ]


def judged(net: nn.Module, x: Tensor, y: Tensor, changed: Tensor, task: str) -> dict[str, Any]:
    """Success (for JSMA: the wanted class is reached), and mean distortion of the successes."""
    with torch.no_grad():
        answered, before = net(changed).argmax(1), net(x).argmax(1)
    success = answered == (y + 1) % 10 if task == "jsma" else answered != y
    turned = success & (before == y)
    means = {key: round(float(values[turned].mean()), 4) for key, values in distortion(x, changed).items()}
    return {"success": round(float(success.float().mean()), 4), **means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--few", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("lenet", "resnet"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    nets = {"lenet": ("LeNet-5", lenet), "resnet": ("ResNet-32", resnet)}
    chosen = [options.only] if options.only else list(nets)
    if "lenet" in chosen and not MNIST.exists():
        print("the LeNet is left out: mnist.npz is not in $WEAKSPOT_DATA")
        chosen.remove("lenet")
    rows = [row for key in chosen for row in measure(nets[key][0], *nets[key][1](options.images), options)]
    if rows:
        write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
