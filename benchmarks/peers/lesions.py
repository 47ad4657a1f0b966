"""What cutting a case into lesions, building their graphs and training a lesion model cost.

    python benchmarks/peers/lesions.py [--repeats 10] [--lesions 300]

Bars: components and adjusted IoU of a 160 × 192 × 160 case with 150 lesions in under 0.5 s; graphs of 100 lesions of
500 voxels, dilation included, in at most 0.1 s and at least 50 times faster than a loop over voxels; training the
lesion model on a few hundred lesions in under 2 minutes on two cores. All bars but the ratio are times of this machine.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from measuring import interleaved, machine, write

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.references import lesions as reference

from weakspot.lesions.gcn import Learning, lesion_graphs, train_gcn
from weakspot.lesions.graphs import lesion_edges, lesion_nodes, node_features
from weakspot.lesions.metrics_components import adjusted_iou, lesion_components

SHAPE = (160, 192, 160)


def balls(count: int, voxels: int, *, seed: int = 0) -> np.ndarray:
    """So many round lesions of that many voxels in a volume, none touching another."""
    grid = np.stack(np.meshgrid(*(np.arange(-6, 7),) * 3, indexing="ij")).reshape(3, -1).T
    near = grid[np.argsort((grid**2).sum(1), kind="stable")[:voxels]]
    corners = np.stack(np.meshgrid(*(np.arange(9, side - 8, 18) for side in SHAPE), indexing="ij")).reshape(3, -1).T
    mask = np.zeros(SHAPE, dtype=bool)
    for centre in np.random.default_rng(seed).permutation(corners)[:count]:
        mask[tuple((centre + near).T)] = True
    return mask


def seconds_of(task, repeats: int) -> float:
    return statistics.median(interleaved({"task": task}, repeats)["task"])


def cutting(repeats: int) -> float:
    predicted = balls(150, 300)
    truth = np.roll(predicted, 2, axis=1)

    def cut() -> None:
        labels, count = lesion_components(predicted)
        assert count == 150
        adjusted_iou(labels, lesion_components(truth, smallest=1)[0])

    return seconds_of(cut, repeats)


def graphs(repeats: int) -> tuple[float, float]:
    """Seconds for 100 lesions, and how many times faster than the loop, which is timed on the first five of them."""
    mask = balls(100, 500)
    labels, count = lesion_components(mask)
    rng = np.random.default_rng(0)
    maps = [rng.random(SHAPE) for _ in range(4)]

    def ours() -> None:
        nodes = lesion_nodes(labels, count)
        lesion_edges(nodes)
        node_features(nodes, maps[0][None], mask, maps[1:])

    parts = [list(map(tuple, np.argwhere(labels == lesion).tolist())) for lesion in range(1, 6)]

    def loop() -> None:
        for part in parts:
            nodes, _ = reference.graph(part, SHAPE, 1)
            reference.graph_features(nodes, maps[:1], mask, maps[1:])

    seconds = interleaved({"ours": ours, "loop": loop}, repeats)
    times = statistics.median(20 * slow / fast for slow, fast in zip(seconds["loop"], seconds["ours"], strict=True))
    return statistics.median(seconds["ours"]), times


def training(lesions: int) -> tuple[float, int]:
    """Seconds to train one network with the paper's recipe on lesions of 20 to 500 voxels, and their nodes."""
    rng, found = np.random.default_rng(0), []
    for lesion in range(lesions):
        labels = np.zeros((16, 16, 16), dtype=np.int32)
        grid = np.stack(np.meshgrid(*(np.arange(16),) * 3, indexing="ij")) - 7.5
        labels[(grid**2).sum(0) <= rng.uniform(1.7, 4.9) ** 2] = 1
        nodes = lesion_nodes(labels, 1)
        features = rng.normal(size=(len(nodes.places), 5)) + (lesion % 3 == 0)
        found += lesion_graphs(nodes, features)
    begun = time.perf_counter()
    train_gcn(found, np.arange(lesions) % 3 == 0, "classification", Learning())
    return time.perf_counter() - begun, sum(len(graph.features) for graph in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--lesions", type=int, default=300)
    options = parser.parse_args()
    built, faster = graphs(options.repeats)
    trained, nodes = training(options.lesions)
    figures = [
        ("components and adjusted IoU, seconds", cutting(options.repeats), 0.5),
        ("graphs of 100 lesions, seconds", built, 0.1),
        ("graphs, times faster than a loop", faster, 50),
        (f"training on {options.lesions} lesions with {nodes} nodes, seconds", trained, 120),
    ]
    rows = [
        {"machine": machine("cpu"), "what": what, "value": round(value, 4), "bar": bar} for what, value, bar in figures
    ]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
