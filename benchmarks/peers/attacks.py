"""Attacks beside ART's (adversarial-robustness-toolbox): images per second, success and distortion, interleaved.

    python benchmarks/peers/attacks.py [--device cuda] [--images 64] [--few 8] [--threads 2] [--quick] [--only lenet]
    python benchmarks/peers/attacks.py --pick

Equal settings: the same net, images and budget. ART is measured as it comes, in its own batches (32 images; 1 for C&W
and JSMA), and with all images in one batch, as ours are. "passes alone" is what no attack by gradients can do without,
as plain torch: the same forward passes over the same batches, and the ways back to the inputs that ours goes. JSMA is
measured three times: as in its paper; on probabilities; and by ART's own rule, which looks at the wanted logit alone.
ART's C&W searches along every step where ours just takes it, so its learning rate means something else: it keeps its
own, and ours was picked on training images (`--pick` shows how). On the ResNet, C&W is measured with `--few` images and
JSMA with twice as many. Without ART only our side is measured. The LeNet needs mnist.npz in $WEAKSPOT_DATA and is left
out without it.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, ratio, write
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.attacks import bim, carlini_wagner, distortion, fgsm, jsma

MNIST = Path(os.environ.get("WEAKSPOT_DATA", "")) / "mnist.npz"
BOUNDS = (0.0, 1.0)
BARS = {"fgsm": 3, "bim": 3, "jsma": 20, "carlini_wagner": 20}
ROUNDS = {
    "LeNet-5": {"fgsm": 15, "bim": 5, "jsma": 3, "carlini_wagner": 1},
    "ResNet-32": {"fgsm": 5, "bim": 2, "jsma": 1, "carlini_wagner": 0},
}
"""How often everybody is timed, after one round to warm up; 0: once and not warmed up, as it takes minutes."""
EPSILON, STEP, ITERATIONS = {"LeNet-5": 0.2, "ResNet-32": 0.03}, 0.01, 10
PIXELS: dict[str, Any] = {"theta": 1.0, "gamma": 0.145, "bounds": BOUNDS}
FEW: dict[str, Any] = {"search_steps": 10, "iterations": 10, "initial_constant": 0.01}
"""ART's defaults: ten values of c from 0.01, ten steps for each."""
RATE, RESTART = {"LeNet-5": 0.2, "ResNet-32": 0.003}, False
"""Of our C&W: what `--pick` finds on training images, most successes first, then the smallest change."""

Attack = Callable[[Tensor, Tensor], Any]


def lenet(count: int, part: str = "test") -> tuple[nn.Module, Tensor, Tensor]:
    """The LeNet-5 of DeepImportance's authors, and MNIST images."""
    architectures()  # puts the folder of the definitions on the path
    from paper_lenets import PaperLeNet

    net = PaperLeNet(5)
    net.load_state_dict(load_file(SHARED / "models" / "PaperLeNet5-mnist.safetensors"))
    with np.load(MNIST) as stored:
        pixels, labels = stored[f"x_{part}"][:count], stored[f"y_{part}"][:count]
    return net, torch.from_numpy(pixels).view(-1, 1, 28, 28).float() / 255, torch.from_numpy(labels).long()


def resnet(count: int, part: str = "test") -> tuple[nn.Module, Tensor, Tensor]:
    """ResNet-32 and street-view house numbers."""
    models = architectures()
    net = models.load_half_precision(models.build("ResN", "svhn"), str(SHARED / "models" / "ResN-svhn.safetensors"))
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        pixels, labels = stored[f"x_{part}"][:count], stored[f"y_{part}"][:count]
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255).contiguous()
    return net, images, torch.from_numpy(labels).long()


NETS = {"lenet": ("LeNet-5", lenet), "resnet": ("ResNet-32", resnet)}


def next_class(labels: Tensor) -> Tensor:
    """The class that JSMA is to reach."""
    return (labels + 1) % 10


def ours(name: str, net: nn.Module) -> dict[str, dict[str, Attack]]:
    """What weakspot does, with the settings of the comparison."""
    epsilon = EPSILON[name]
    steps = {"epsilon": epsilon, "step": STEP, "iterations": ITERATIONS, "bounds": BOUNDS}
    few = {"learning_rate": RATE[name], "restart": RESTART, "bounds": BOUNDS, **FEW}

    def log_probabilities(x: Tensor) -> Tensor:
        return net(x).log_softmax(1)

    return {
        "fgsm": {"weakspot": lambda x, y: fgsm(net, x, y, epsilon=epsilon, bounds=BOUNDS)},
        "bim": {
            "weakspot": lambda x, y: bim(net, x, y, **steps),
            "weakspot, stopping early": lambda x, y: bim(net, x, y, stop_early=True, **steps),
        },
        "jsma": {
            "weakspot": lambda x, y: jsma(net, x, next_class(y), **PIXELS),
            "weakspot, on probabilities": lambda x, y: jsma(
                log_probabilities, x, next_class(y), others=False, **PIXELS
            ),
            "weakspot, by ART's rule": lambda x, y: jsma(net, x, next_class(y), others=False, **PIXELS),
        },
        "carlini_wagner": {
            "weakspot": lambda x, y: carlini_wagner(net, x, y, abort_early=False, **few),
            "weakspot, aborting early": lambda x, y: carlini_wagner(net, x, y, **few),
        },
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
        "jsma": SaliencyMapMethod(classifier, theta=PIXELS["theta"], gamma=PIXELS["gamma"], **how),
        "carlini_wagner": CarliniL2Method(classifier, **how),
    }

    def run(attack: Any, x: Tensor, y: Tensor) -> Tensor:
        wanted = next_class(y) if isinstance(attack, SaliencyMapMethod) else y
        return torch.from_numpy(attack.generate(x.cpu().numpy(), wanted.cpu().numpy())).to(x)

    return {task: lambda x, y, attack=attack: run(attack, x, y) for task, attack in attacks.items()}


def passes_alone(task: str, net: nn.Module, attack: Attack, x: Tensor, y: Tensor) -> Attack:
    """The passes that our attack makes over these images, and nothing else: forward, and back to the inputs."""
    sizes: list[int] = []
    hook = net.register_forward_hook(lambda module, given, outputs: sizes.append(len(outputs)))
    attack(x, y)
    hook.remove()
    ways_back = 2 if task == "jsma" else 1

    def passes(x: Tensor, y: Tensor) -> None:
        for size in sizes:
            leaf = x[:size].clone().requires_grad_()
            loss = F.cross_entropy(net(leaf), y[:size], reduction="sum")
            for left in reversed(range(ways_back)):
                torch.autograd.grad(loss, leaf, retain_graph=left > 0)

    return passes


def measure(
    name: str, net: nn.Module, images: Tensor, labels: Tensor, options: argparse.Namespace
) -> list[dict[str, Any]]:
    net, images, labels = net.to(options.device).eval(), images.to(options.device), labels.to(options.device)
    shape, where = tuple(images.shape[1:]), {"machine": machine(options.device), "net": name}
    own, equal = (arts(name, net, shape, options.device, batch) for batch in (None, options.images))
    rows = []
    for task, attacks in ours(name, net).items():
        less = {"jsma": 2 * options.few, "carlini_wagner": options.few} if name == "ResNet-32" else {}
        count = less.get(task, options.images)
        x, y = images[:count], labels[:count]
        runs = {**attacks, "passes alone": passes_alone(task, net, attacks["weakspot"], x, y)}
        if own:
            runs |= {"art": own[task], "art, one batch": equal[task]}
        rounds = 0 if options.quick and task in ("jsma", "carlini_wagner") else ROUNDS[name][task]
        found = compare(net, task, runs, x, y, rounds, options.device)
        rows += [{**where, **row} for row in found]
    return rows


def compare(
    net: nn.Module, task: str, runs: dict[str, Attack], x: Tensor, y: Tensor, rounds: int, device: str
) -> list[dict[str, Any]]:
    """One row for each who attacks."""
    made: dict[str, Any] = {}

    def timed(who: str) -> None:
        made[who] = runs[who](x, y)

    tasks = {who: partial(timed, who) for who in runs}
    seconds = interleaved(tasks, rounds, device) if rounds else once(tasks, device)
    return [
        {
            "attack": task,
            "who": who,
            "images": len(x),
            "images_per_second": round(len(x) / statistics.median(seconds[who]), 2),
            "times_art": round(ratio(seconds, "art", who), 2) if "art" in runs else "",
            "times_art_one_batch": round(ratio(seconds, "art, one batch", who), 2) if "art" in runs else "",
            "bar": BARS[task] if who.startswith("weakspot") else "",
            **judged(net, x, y, made[who], task),
        }
        for who in runs
    ]


def once(tasks: Mapping[str, Callable[[], None]], device: str) -> dict[str, list[float]]:
    """Seconds of each task, not warmed up."""
    seconds = {}
    for name, task in tasks.items():
        begun = time.perf_counter()
        task()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        seconds[name] = [time.perf_counter() - begun]
    return seconds


def judged(net: nn.Module, x: Tensor, y: Tensor, changed: Tensor | None, task: str) -> dict[str, Any]:
    """Success (for JSMA: the wanted class is reached), and mean distortion of the successes."""
    if changed is None:
        return dict.fromkeys(("success", "l0", "l2", "linf"), "")
    with torch.no_grad():
        answered, before = net(changed).argmax(1), net(x).argmax(1)
    success = answered == next_class(y) if task == "jsma" else answered != y
    turned = success & (before == y)
    means = {key: round(float(values[turned].mean()), 4) for key, values in distortion(x, changed).items()}
    return {"success": round(float(success.float().mean()), 4), **means}


def pick(name: str, net: nn.Module, x: Tensor, y: Tensor, rates: Sequence[float]) -> None:
    """Success and mean distance of our C&W on training images, by learning rate and restart."""
    net.eval()
    for rate, restart in product(rates, (True, False)):
        made = carlini_wagner(net, x, y, bounds=BOUNDS, learning_rate=rate, restart=restart, abort_early=False, **FEW)
        found = judged(net, x, y, made, "carlini_wagner")
        print(f"{name}: rate {rate}, restart {restart}: success {found['success']:.3f}, L2 {found['l2']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--few", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="time JSMA and C&W once, without a round to warm up")
    parser.add_argument("--only", choices=tuple(NETS))
    parser.add_argument("--pick", action="store_true", help="show what the learning rates of C&W were picked from")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    chosen = [options.only] if options.only else list(NETS)
    if "lenet" in chosen and not MNIST.exists():
        print("the LeNet is left out: mnist.npz is not in $WEAKSPOT_DATA")
        chosen.remove("lenet")
    if options.pick:
        for key in chosen:
            rates = (0.03, 0.1, 0.2, 0.3, 0.5) if key == "lenet" else (0.001, 0.003, 0.01, 0.03, 0.1)
            pick(NETS[key][0], *NETS[key][1](64 if key == "lenet" else 16, "train"), rates)
        return
    rows = [row for key in chosen for row in measure(NETS[key][0], *NETS[key][1](options.images), options)]
    if rows:
        write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
