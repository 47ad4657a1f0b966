"""A Run with a number, a table and root causes, made by hand."""

import numpy as np

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.run import Run

MODEL, DATA = "a" * 64, "b" * 64
PROVENANCE = {"subject": MODEL, "data": DATA, "parameters": {"cutoff": 0.75, "looks": 20}, "samples": 10}


def neighbours(value=0.12, low=0.10, high=0.14, confidence=0.95, weak=None):
    weak = np.arange(10) < 2 if weak is None else np.asarray(weak)
    table = {"id": np.array([f"s{i}" for i in range(len(weak))]), "weak": weak, "accuracy": 1.0 - 0.5 * weak}
    summary = {
        "weak_share": Estimate(value, low, high, confidence, "share of the inputs that are weak"),
        "lucky": Estimate(3),
        "weakest_class": Estimate("cat"),
        "nothing": Estimate(None),
    }
    return Finding("robustness.neighbours", "Weak.", summary=summary, table=table_of(table), provenance=PROVENANCE)


def pairs(bias=(0.1, 0.3, float("nan"))):
    table = {
        "first": np.array(["cat", "<script>", "cow"]),
        "second": np.array(["dog", "a|b", "hen"]),
        "average_bias": np.array(bias),
        "confused": np.array([True, True, False]),
    }
    return Finding("classes.pairs", summary={"pairs": Estimate(3)}, table=table_of(table), provenance=PROVENANCE)


def causes(clusters, data=DATA):
    """`clusters`: the ids of the images of each; the last image is alone."""
    ids = [name for cluster in clusters for name in cluster] + ["alone"]
    numbers = [number for number, cluster in enumerate(clusters, start=1) for _ in cluster] + [0]
    return Finding(
        "causes.root_causes",
        summary={"clusters": Estimate(len(clusters))},
        table=table_of({"cluster": np.arange(1, len(clusters) + 1), "images": np.array(list(map(len, clusters)))}),
        arrays={"image_id": np.array(ids), "image_cluster": np.array(numbers)},
        provenance={**PROVENANCE, "data": data},
    )


def coverage():
    return Finding("coverage.neurons", summary={"coverage": Estimate(0.8)}, provenance=PROVENANCE)


def make_run(folder, *findings, fingerprint=MODEL):
    run = Run.create(folder)
    subject = {"model": "Net", "fingerprint": fingerprint, "task": "classification"}
    run.describe(subject=subject, data={"test": {"fingerprint": DATA, "samples": 10}})
    for finding in findings:
        run.save(finding)
    return run
