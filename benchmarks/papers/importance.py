"""Table 3 of DeepImportance, its own criterion: coverage of MNIST by the authors' LeNet-1, -4 and -5.

    python benchmarks/papers/importance.py [--seeds 3]   writes importance.csv beside this script

Needs `$WEAKSPOT_DATA/mnist.npz` and the authors' networks (`$WEAKSPOT_SHARED/models`). U_O is the whole test set, U_O+S
has the same images with Gaussian noise on 15 random pixels besides, U_O+DI with the same noise on the 15 most relevant;
mean and standard deviation over seeds. The subject layer is the penultimate, for LeNet-1 its 12 feature maps (pool2).

The paper does not say whether neurons are chosen, and inputs counted, over all classes or class by class, so both are
given (`classes`; "apart": neurons and test inputs by true class, clusters over all training inputs, mean of the
classes). Nor does it publish how many clusters each neuron got. Levels therefore differ from the published ones; what
can be compared is the order between sets: does noise on relevant pixels add more than on random ones? `paired` is the
mean over seeds of U_O+DI − U_O+S in points, `published_paired` the same of the published means.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, machine, write

from weakspot import Finding, Plan, Run, Step, Subject
from weakspot.attacks import Attacked, GaussianNoise, RelevantNoise, Together
from weakspot.core.source import Source
from weakspot.coverage.importance import ImportanceDrivenCoverage
from weakspot.data.sources import ArraySource

PUBLISHED = {
    (1, 6): (34.6, 38.0, 38.8), (1, 8): (14.1, 16.5, 17.5), (1, 10): (5.5, 6.6, 7.0), (1, 12): (2.1, 2.6, 2.9),
    (4, 6): (58.8, 64.2, 65.8), (4, 8): (26.9, 31.8, 32.9), (4, 10): (13.5, 16.9, 18.1), (4, 12): (4.5, 6.3, 6.9),
    (5, 6): (47.0, 51.1, 52.1), (5, 8): (28.0, 33.7, 34.5), (5, 10): (9.5, 12.2, 13.1), (5, 12): (4.4, 6.2, 6.8),
}  # fmt: skip
"""Percent, by network and number of neurons: U_O, U_O+S, U_O+DI."""
CLASSES: dict[str, dict[str, Any]] = {
    "together": {},
    "apart": {"per_class": True, "classes_by": "target"},
}
SHARE = 15 / 784


def network(version: int) -> Subject:
    sys.path.insert(0, str(SHARED / "models"))
    from paper_lenets import PaperLeNet
    from safetensors.torch import load_file

    net = PaperLeNet(version)
    net.load_state_dict(load_file(SHARED / "models" / f"PaperLeNet{version}-mnist.safetensors"))
    return Subject(net, task="classification", classes=10, scores="logits", bounds=(0, 1))


def mnist() -> dict[str, Source]:
    path = Path(os.environ["WEAKSPOT_DATA"]) / "mnist.npz"
    with np.load(path) as stored:
        return {
            split: ArraySource(stored[f"x_{split}"], stored[f"y_{split}"], channels="none")
            for split in ("train", "test")
        }


def sets(subject: Subject, test: Source, seeds: int) -> dict[str, Source]:
    found: dict[str, Source] = {"original": test}
    for seed in range(seeds):
        for name, noise in (("S", GaussianNoise(share=SHARE)), ("DI", RelevantNoise(share=SHARE))):
            changed = Attacked(test, subject, noise, seed=seed, batch_size=256)
            found[f"with_{name}_{seed}"] = Together({"original": test, "noise": changed})
    return found


def measured(version: int, data: Mapping[str, Source], seeds: int) -> dict[tuple[str, int, str], Finding]:
    """The Findings by classes together or apart, number of neurons, and set."""
    subject = network(version)
    splits = sets(subject, data["test"], seeds)
    layers = {"layers": "pool2"} if version == 1 else {}
    steps = {
        (classes, neurons, split): Step.of(
            ImportanceDrivenCoverage, split=split, neurons=neurons, thumbnail=0, holes=0, **layers, **options
        )
        for classes, options in CLASSES.items()
        for neurons in (6, 8, 10, 12)
        for split in splits
    }
    plan = Plan.of(list(steps.values()))
    with tempfile.TemporaryDirectory() as folder:
        findings = plan.run(subject, {"train": data["train"], **splits}, Run.create(Path(folder) / "run"))
    found = {step.key: finding for step, finding in zip(plan.steps, findings, strict=True)}
    return {key: found[step.key] for key, step in steps.items()}


def rows(version: int, found: Mapping[tuple[str, int, str], Finding], seeds: int) -> Iterator[dict[str, Any]]:
    for classes in CLASSES:
        for neurons in (6, 8, 10, 12):
            published = PUBLISHED[version, neurons]
            each = {
                name: [_percent(found[classes, neurons, f"with_{name}_{seed}"], "coverage") for seed in range(seeds)]
                for name in ("S", "DI")
            }
            plain = found[classes, neurons, "original"]
            yield {
                "network": f"LeNet-{version}",
                "classes": classes,
                "neurons": neurons,
                "combinations": plain.summary["targets"].value,
                "U_O": f"{_percent(plain, 'coverage'):.1f}",
                "as_many_training_inputs": f"{_percent(plain, 'coverage_of_training'):.1f}",
                "U_O+S": _spread(each["S"]),
                "U_O+DI": _spread(each["DI"]),
                "paired": f"{statistics.mean(d - s for d, s in zip(each['DI'], each['S'], strict=True)):+.2f}",
                "published_U_O": published[0],
                "published_U_O+S": published[1],
                "published_U_O+DI": published[2],
                "published_paired": f"{published[2] - published[1]:+.1f}",
                "machine": machine("cpu"),
            }


def _percent(finding: Finding, name: str) -> float:
    return 100 * float(finding.summary[name].value)  # type: ignore[arg-type]


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values) if len(values) > 1 else 0:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    data = mnist()
    told = [row for version in (1, 4, 5) for row in rows(version, measured(version, data, seeds), seeds)]
    write(Path(__file__).with_suffix(".csv"), told)


if __name__ == "__main__":
    main()
