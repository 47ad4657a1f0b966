"""What one large case costs: 512 × 512 × 192 voxels, the softmax of five folds on disk, 100 lesions; and a fit.

    python benchmarks/peers/lesions_large.py [--folder /tmp/large] [--write]

Bars, on two cores: a case in 10 s and 2.5 GB; a fit of 500 lesions by all methods but the networks in 10 s. Times
are of the processor (user and system), which a busy machine changes little, and of the clock.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import machine, write

SHAPE, FOLDS, LESIONS = (192, 512, 512), 5, 100


def make(folder: Path) -> None:
    """Stored samples: certain outside of the head, doubtful around round lesions, noise in between."""
    rng = np.random.default_rng(0)
    near = np.stack(np.meshgrid(*(np.arange(-7, 8),) * 3, indexing="ij"))
    bump = np.exp(-(near**2).sum(0) / 18)
    centres = np.stack([rng.integers(20, side - 20, LESIONS) for side in SHAPE], 1)
    for fold in range(FOLDS):
        (folder / f"fold_{fold}").mkdir(parents=True)
        lesion = np.zeros(SHAPE, np.float32)
        lesion[40:150, 120:400, 120:400] = rng.random((110, 280, 280), np.float32) * 0.02
        for z, y, x in centres:
            box = np.s_[z - 7 : z + 8, y - 7 : y + 8, x - 7 : x + 8]
            lesion[box] = np.maximum(lesion[box], bump * rng.uniform(0.7, 1))
        softmax = np.stack([1 - lesion, lesion]).astype(np.float16)
        np.savez_compressed(folder / f"fold_{fold}" / "case.npz", probabilities=softmax)
    image = rng.integers(0, 1000, SHAPE, dtype=np.int16)
    np.save(folder / "image.npy", image)


def one_case(folder: Path) -> dict[str, float]:
    """Seconds, processor seconds and the largest memory of sampling the case, in this process."""
    import torch

    from weakspot import ExecutionOptions, examine
    from weakspot.data.sources import ArraySource
    from weakspot.lesions import Lesions
    from weakspot.looks import Members, StoredSamples

    torch.set_num_threads(2)
    image = np.load(folder / "image.npy", mmap_mode="r")[None, None]
    source = ArraySource(image, ids=["case"])
    subject = StoredSamples([folder / f"fold_{fold}" for fold in range(FOLDS)]).subject(names=["other", "lesion"])
    begun, used = time.perf_counter(), time.process_time()
    (finding,) = examine(
        subject, source, [Lesions(look=Members(), looks=FOLDS)], execution=ExecutionOptions(batch_size=1)
    )
    assert finding.summary["lesions"].value > 50, finding.summary["lesions"]
    return {
        "seconds": time.perf_counter() - begun,
        "processor seconds": time.process_time() - used,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def fitted() -> dict[str, float]:
    """Seconds for all methods but the networks on 500 lesions of 190 voxels, cross-validation included."""
    from weakspot.lesions.gcn import Learning
    from weakspot.lesions.graphs import LesionNodes
    from weakspot.lesions.lesion_model import held_out_scores
    from weakspot.lesions.lesion_set import LesionSet
    from weakspot.lesions.location import LOCATION
    from weakspot.lesions.methods import METHODS, NETWORKS, TRAINED, train

    rng, count, nodes = np.random.default_rng(0), 500, 190
    wrong = rng.random(count) < 0.4
    names = ("entropy", "variance", "pcs", "mutual_information", "entropy_logsum", "variance_logsum", "pcs_logsum")
    columns = {name: rng.random(count) + 0.3 * wrong for name in (*names, "structural", *LOCATION)}
    columns |= {"voxels": rng.integers(3, 300, count), "true_positive": ~wrong, "adjusted_iou": rng.random(count)}
    starts = np.arange(count + 1) * nodes
    features = rng.random((count * nodes, 6), np.float32)
    lesions = LesionSet(
        np.array([f"p{n % 40}" for n in range(count)]),
        columns,
        LesionNodes(np.zeros((count * nodes, 3), np.int32), starts),
        features,
    )
    begun, used = time.perf_counter(), time.process_time()
    for name in METHODS:
        if name not in NETWORKS:
            held_out_scores(lesions, lesions.case, name, Learning(), folds=5)
            if name in TRAINED:
                train(name, lesions, np.arange(count), Learning())
    return {"seconds": time.perf_counter() - begun, "processor seconds": time.process_time() - used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--alone", choices=["case", "fit"])
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(one_case(options.folder) if options.alone == "case" else fitted()))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        if not (folder / "image.npy").exists():
            make(folder)
        rows, where = [], machine("cpu")
        for task, bars in (("case", {"processor seconds": 10, "gigabytes": 2.5}), ("fit", {"processor seconds": 10})):
            command = [sys.executable, __file__, "--folder", str(folder), "--alone", task]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows += [
                {
                    "machine": where,
                    "what": f"{task}, {name}",
                    "value": round(value, 2),
                    "bar": bars.get(name, ""),
                }
                for name, value in told.items()
            ]
    for row in rows:
        print(row)
    if options.write:
        write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
