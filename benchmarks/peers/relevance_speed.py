"""ε-plus relevance of a batch against a forward+backward pass, zennit and captum, interleaved in one run.

Usage: python benchmarks/peers/relevance_speed.py [--device cuda] [--images 64] [--repeats 10] [--threads 2]
"""

import argparse
import statistics
from contextlib import ExitStack
from pathlib import Path

import torch
from measuring import interleaved, machine, ratio, write
from relevance_peers import captum_epsilon_plus, images, network, zennit_epsilon_plus

from weakspot.relevance import epsilon_plus, relevance

BAR = {"weakspot": "≤ 2.5, below zennit and captum"}


def measure(name: str, device: str, count: int, repeats: int) -> list[dict[str, object]]:
    net, some = network(name, device), images(min(count, 512), device)[0]
    batch = some.repeat(-(-count // len(some)), 1, 1, 1)[:count]
    peer_nets = {peer: network(name, device) for peer in ("zennit", "captum")}  # so that their hooks disturb no one

    def train() -> None:
        net(batch).max(1).values.sum().backward()
        net.zero_grad()

    def gradient() -> None:
        leaf = batch.clone().requires_grad_()
        torch.autograd.grad(net(leaf).max(1).values.sum(), leaf)

    composite = epsilon_plus()
    tasks = {
        "forward+backward": train,
        "forward+backward (input only)": gradient,
        "weakspot": lambda: relevance(net, batch, method=composite),
        "weakspot, no books": lambda: relevance(net, batch, method=composite, conservation=False),
    }
    notes = dict.fromkeys(tasks, "")
    with ExitStack() as stack:
        for peer, make in (("zennit", zennit_epsilon_plus), ("captum", captum_epsilon_plus)):
            try:
                attribute = stack.enter_context(make(peer_nets[peer]))
                attribute(batch)
                tasks[peer] = lambda attribute=attribute: attribute(batch)
                notes[peer] = ""
            except Exception as error:
                notes[peer] = f"fails: {type(error).__name__}: {error}"[:100]
        seconds = interleaved(tasks, repeats, device)
    rows = []
    for task, note in notes.items():
        timed = task in seconds
        rows.append(
            {
                "machine": f"{machine(device)}, {count} images",
                "net": name,
                "task": task,
                "milliseconds": round(1000 * statistics.median(seconds[task]), 1) if timed else "",
                "times_forward_backward": round(ratio(seconds, task, "forward+backward"), 2) if timed else "",
                "times_input_gradient": round(ratio(seconds, task, "forward+backward (input only)"), 2)
                if timed
                else "",
                "bar": BAR.get(task, ""),
                "note": note,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    nets = ("ResN", "Vgg16Half")
    rows = [row for net in nets for row in measure(net, options.device, options.images, options.repeats)]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
