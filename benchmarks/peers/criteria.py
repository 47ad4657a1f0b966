"""Coverage criteria side by side with dnn-tip: the same activations, the same numbers, seconds in alternation.

    python benchmarks/peers/criteria.py [--images 1024] [--repeats 5]

Every neuron of a trained WideResNet-28-2 (channel means of 28 convolutions and a linear layer) over street-view house
numbers, in batches of 128. NAC is given the scaled activations that neuron coverage is defined on; dnn-tip itself takes
any. One thread each: numpy's comparisons have no more. Both sides end with the number of inputs that reach each target;
for dnn-tip that is the sum of its profiles. `all` is one pass for all five criteria: here k-multisection, boundary and
strong activation come from one histogram. `greedy` ranks the inputs by additional neuron coverage (dnn-tip: cam).
Bar: 20 times dnn-tip's throughput.
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from dnn_tip.neuron_coverage import KMNC, NAC, NBC, SNAC, TKNC
from dnn_tip.prioritizers import cam
from measuring import SHARED, architectures, interleaved, machine, write

from weakspot import Finding, Probe, Rows, Subject, Tap, examine
from weakspot.core.observation import Observation
from weakspot.core.sections import section_numbers
from weakspot.coverage.metrics_ranking import greedy_order
from weakspot.coverage.metrics_top_neurons import leading
from weakspot.coverage.neuron_probes import add_to_histogram
from weakspot.coverage.reached_targets import Bits
from weakspot.data.sources import ArraySource

SECTIONS, TOP, THRESHOLD, BATCH, BAR = 1000, 3, 0.5, 128, 20


class Activations(Probe):
    """Every neuron's mean, and the scaled mean (Pei et al. 2017)."""

    kept = Rows()

    @property
    def tap(self) -> Tap:
        return Tap("all", scaled=True)

    def observe(self, seen: Observation) -> None:
        channels = seen.channels(self.tap)
        self.kept.append(seen.ids, mean=channels.mean, scaled=channels.scaled)

    def finish(self) -> Finding:
        rows = self.kept.read()
        widths = np.array(self.setting.layout(self.tap).widths)
        return self.finding(arrays={"mean": rows["mean"].copy(), "scaled": rows["scaled"].copy(), "widths": widths})


def activations(train: int, images: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Means of training inputs; means and scaled means of test inputs; the layers' widths."""
    nets = architectures()
    net = nets.load_half_precision(nets.build("WideResN", "svhn"), str(SHARED / "models" / "WideResN-svhn.safetensors"))
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        parts = stored["x_train"][:train], stored["x_test"][:images]
    trained, tested = (examine(Subject(net), ArraySource(x, channels="last"), [Activations()])[0].arrays for x in parts)
    return trained["mean"], tested["mean"], tested["scaled"], tested["widths"].tolist()


def batches(values: np.ndarray) -> list[np.ndarray]:
    return [values[start : start + BATCH] for start in range(0, len(values), BATCH)]


class Peer:
    """dnn-tip, fed batch by batch; what it returns is added up."""

    def __init__(self, train: np.ndarray, widths: Sequence[int]):
        self.cuts = np.cumsum(widths)[:-1]
        low, high = self._layers(train.min(0)[None]), self._layers(train.max(0)[None])
        none = [np.zeros_like(part) for part in low]
        self.methods = {
            "nac": NAC(THRESHOLD),
            "kmnc": KMNC(low, high, SECTIONS),
            "nbc": NBC(low, high, none, 0),
            "snac": SNAC(high, none, 0),
            "tknc": TKNC(TOP),
        }

    def _layers(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.cuts, axis=1)

    def counts(self, name: str, values: np.ndarray) -> np.ndarray:
        return np.sum([self.methods[name](self._layers(batch))[1].sum(0) for batch in batches(values)], axis=0)


class Ours:
    """The functions that the probes call, fed batch by batch."""

    def __init__(self, train: np.ndarray, widths: Sequence[int]):
        self.low, self.high = torch.from_numpy(train.min(0)), torch.from_numpy(train.max(0))
        self.widths = list(widths)

    def active(self, values: np.ndarray) -> np.ndarray:
        return sum((torch.from_numpy(batch) > THRESHOLD).sum(0) for batch in batches(values)).numpy()

    def histogram(self, values: np.ndarray) -> np.ndarray:
        cells = torch.zeros(len(self.low), SECTIONS + 2, dtype=torch.int64)
        for batch in batches(values):
            add_to_histogram(cells, section_numbers(torch.from_numpy(batch), self.low, self.high, SECTIONS))
        return cells.numpy()

    def leaders(self, values: np.ndarray) -> np.ndarray:
        return sum(leading(torch.from_numpy(b), self.widths, TOP).sum(0) for b in batches(values)).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    train, mean, scaled, widths = activations(1000, options.images)
    torch.set_num_threads(1)
    peer, ours = Peer(train, widths), Ours(train, widths)
    profiles = peer.methods["nac"](peer._layers(scaled))
    packed = Bits.of(profiles[1])
    tasks: dict[str, Callable[[], object]] = {
        "peer nac": lambda: peer.counts("nac", scaled),
        "ours nac": lambda: ours.active(scaled),
        **{f"peer {name}": (lambda name=name: peer.counts(name, mean)) for name in ("kmnc", "nbc", "snac", "tknc")},
        "ours kmnc": lambda: ours.histogram(mean),
        "ours tknc": lambda: ours.leaders(mean),
        "peer greedy": lambda: list(cam(profiles[0], profiles[1].copy())),
        "ours greedy": lambda: greedy_order(packed),
    }
    seconds = interleaved(tasks, options.repeats)
    seconds["ours nbc"] = seconds["ours snac"] = seconds["ours kmnc"]
    for who, names in (("peer", ("nac", "kmnc", "nbc", "snac", "tknc")), ("ours", ("nac", "kmnc", "tknc"))):
        seconds[f"{who} all"] = [sum(parts) for parts in zip(*(seconds[f"{who} {n}"] for n in names), strict=True)]
    agree = agreement(peer, ours, mean, scaled)
    rows = [row(name, seconds, options.images, len(ours.low), agree) for name in (*agree, "greedy", "all")]
    write(Path(__file__).with_suffix(".csv"), rows)


def agreement(peer: Peer, ours: Ours, mean: np.ndarray, scaled: np.ndarray) -> dict[str, float]:
    """Share of the targets whose counts are equal; float32 at the very border of a section may fall on either side."""
    cells = ours.histogram(mean)
    own = {
        "nac": ours.active(scaled),
        "kmnc": cells[:, 1:-1],
        "nbc": cells[:, [0, -1]],
        "snac": cells[:, -1],
        "tknc": ours.leaders(mean),
    }
    return {
        name: float((peer.counts(name, scaled if name == "nac" else mean) == counts).mean())
        for name, counts in own.items()
    }


def row(name: str, seconds: dict[str, list[float]], images: int, neurons: int, agree: dict[str, float]) -> dict:
    ratios = [theirs / own for theirs, own in zip(seconds[f"peer {name}"], seconds[f"ours {name}"], strict=True)]
    return {
        "machine": machine("cpu"),
        "criterion": name,
        "images": images,
        "neurons": neurons,
        "dnn_tip_s": round(statistics.median(seconds[f"peer {name}"]), 4),
        "weakspot_s": round(statistics.median(seconds[f"ours {name}"]), 4),
        "times_faster": round(statistics.median(ratios), 2),
        "bar": BAR if name == "all" else "",
        "equal_counts": round(agree[name], 6) if name in agree else "",
    }


if __name__ == "__main__":
    main()
