"""What retraining on the unsafe set brings, against HUDD's two baselines (RQ2), with the embedded gaze detector.

python benchmarks/papers/causes_retraining.py   writes causes_retraining.csv beside this script

The detector was trained on usual eyes; the test set mixes them with drooping, tilted and dark ones. Root causes are
found in the test set, B images are chosen from an improvement set of the same mixture, labelled (the simulator knows),
and trained on together with the training set: balanced by bootstrap; as many random images; those of these that fail.
Every model is also judged by a second, larger test set that played no part in choosing.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine, write

from weakspot import Finding, Run, Subject
from weakspot.causes.room import steps
from weakspot.core.plan import Plan
from weakspot.core.source import Source
from weakspot.data import eye_net
from weakspot.data.sources import ArraySource
from weakspot.repair import Labelled, Recipe, RetrainingData, proved

METHODS = ("random images", "failing images", "training set alone")


def in_memory(source: Source) -> ArraySource:
    """Drawn once: a training reads every image many times."""
    batch = source.read(np.arange(len(source.ids)))
    metadata = dict(batch.metadata or {})
    return ArraySource(batch.inputs.numpy(), batch.known_targets.numpy(), ids=source.ids, metadata=metadata)


def chosen(
    subject: Subject, data: dict[str, Source], budget: int, folder: str, **options: Any
) -> tuple[Finding, Finding]:
    """Root causes of the test set, and the unsafe set of the improvement set."""
    asked = steps({**options, "select": {"budget": budget}})
    _, causes, unsafe = Plan.of(asked).run(subject, data, Run.create(folder))
    return causes, unsafe


def retraining_data(data: dict[str, Source], causes: Finding, unsafe: Finding, test: str) -> RetrainingData:
    """The unsafe set labelled with the truth, and the test images' clusters."""
    pool = data["improvement"]
    clusters = dict(zip(unsafe.table["id"].to_pylist(), unsafe.table["cluster"].to_pylist(), strict=True))
    places = [place for place, name in enumerate(pool.ids) if name in clusters]
    truth = pool.read(np.array(places)).known_targets.tolist()
    labels = {pool.ids[place]: target for place, target in zip(places, truth, strict=True)}
    members = zip(causes.arrays["image_id"].tolist(), causes.arrays["image_cluster"].tolist(), strict=True)
    own = dict(members) if test == "test" else {}
    return RetrainingData(Labelled(pool, labels), clusters, data[test], data["train"], pool, own)


def rows_of(finding: Finding, **known: Any) -> list[dict[str, Any]]:
    """One row per method: accuracy before and after, and the difference of the unsafe set to it."""
    told, rows = finding.summary, []
    for method in dict.fromkeys(finding.table["method"].to_pylist()):
        key = method.replace(" ", "_")
        after = told["after" if method == "unsafe set" else f"after_{key}"]
        over = told["difference" if method == "unsafe set" else f"over_{key}"]
        verdict = told["verdict" if method == "unsafe set" else f"verdict_{key}"]
        rows.append(
            {
                **known,
                "method": method,
                "repeats": told["repeats"].value,
                "before": round(told["before"].value, 4),
                "after": round(after.value, 4),
                "unsafe_set_less": "before" if method == "unsafe set" else method,
                "difference": round(over.value, 4),
                "low": round(over.low, 4),
                "high": round(over.high, 4),
                "verdict": verdict.value,
                "machine": machine("cpu"),
            }
        )
    return rows


def main() -> None:
    import tempfile

    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits", bounds=(0, 1))
    sources = {"train": eye_net.train(), "test": eye_net.test(), "improvement": eye_net.improvement()}
    data: dict[str, Source] = {name: in_memory(source) for name, source in sources.items()}
    data["fresh test"] = in_memory(eye_net.mixture(1500, 500, seed=9, name="-fresh"))
    rows = []
    for budget in (100, 235):
        with tempfile.TemporaryDirectory() as folder:
            causes, unsafe = chosen(subject, data, budget, folder)
            for test in ("test", "fresh test"):
                made = proved(
                    subject,
                    retraining_data(data, causes, unsafe, test),
                    recipe=Recipe(),
                    repeats=3,
                    methods=METHODS,
                    validation=0.0,
                    checkpoints=Path(folder) / "trainings",  # the second test set finds the same models trained
                )
                rows += rows_of(made.finding, case="eyes", budget=unsafe.table.num_rows, test=test)
    write(Path(__file__).with_name("causes_retraining.csv"), rows)


if __name__ == "__main__":
    main()
