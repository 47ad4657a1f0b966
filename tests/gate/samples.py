"""A Run with a number, a table and root causes, made by hand."""

import numpy as np

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.outputs import Outputs, count, flag, sample_id, share
from weakspot.core.run import Run
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy

MODEL, DATA = "a" * 64, "b" * 64
PROVENANCE = {"subject": MODEL, "data": DATA, "parameters": {"cutoff": 0.75, "looks": 20}, "samples": 10}


def neighbours(value=0.12, low=0.10, high=0.14, confidence=0.95, weak=None):
    weak = np.arange(10) < 2 if weak is None else np.asarray(weak)
    table = {"id": np.array([f"s{i}" for i in range(len(weak))]), "weak": weak, "accuracy": 1.0 - 0.5 * weak}
    summary = {
        "weak_share": Estimate(value, low, high, confidence, "share of the inputs that are weak"),
        "fragile": Estimate(3),
        "weakest_class": Estimate("cat"),
        "nothing": Estimate(None),
    }
    outputs = Outputs(
        summary={"weak_share": share("weak", better="lower", mean_of="weak"), "fragile": count("weak, yet correct")},
        columns={
            "id": sample_id(),
            "weak": flag("below the threshold", better="lower"),
            "accuracy": share("of its variations correct", better="higher"),
        },
    )
    rows = table_of(table)
    name = "robustness.neighbours"
    return Finding(name, "Weak.", summary=summary, table=rows, outputs=outputs, provenance=PROVENANCE)


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


def make_run(folder, *findings, fingerprint=MODEL, data=DATA):
    run = Run.create(folder)
    subject = {"model": "Net", "fingerprint": fingerprint, "task": "classification"}
    run.describe(subject=subject, data={"test": {"fingerprint": data, "samples": 10}})
    for finding in findings:
        run.save(finding)
    return run


def judged(tmp_path, run, *rules, baseline=None, top=""):
    path = tmp_path / "policy.yaml"
    path.write_text(f"{top}rules:\n" + "".join(f"- {{{rule}}}\n" for rule in rules))
    return judge(run, read_policy(path), baseline)
