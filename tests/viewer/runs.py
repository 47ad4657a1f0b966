"""Runs to look at: a real one of a small examination, the same after retraining, and a large one that is made up."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.outputs import Outputs
from weakspot.core.run import Run
from weakspot.rooms import declared
from weakspot.viewer.app import create_app

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
COOKIE = "weakspot-8765"
TOKEN = "a-token-that-nobody-guesses"
CLASSES = tuple("right top left bottom".split())


def client_of(*runs, **options):
    """A browser that knows the token, on the viewer of these Runs."""
    app = create_app(list(runs), token=TOKEN, hosts=[HOST])
    headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    client = TestClient(app, base_url=ORIGIN, headers=headers, **options)
    return signed_in(client)


def signed_in(client):
    """The browser with the cookie that it gets for the token."""
    assert client.get("/", params={"token": TOKEN}, follow_redirects=False).status_code == 303
    return client


def examine_small(folder: Path) -> Path:
    """A Run with Findings of every room but lesions: the demo's questions, asked of few of its images."""
    from weakspot.cli import session
    from weakspot.cli.demo import CONFIG

    ask = {**CONFIG.ask, "coverage": {"criteria": ["nc", "idc"]}}
    ask["robustness"] = {**ask["robustness"], "looks": 6}
    config = CONFIG.model_copy(update={"ask": ask})
    session.examine(config, folder.parent, folder, limit=100, silent=True)
    return folder


def retrain(run: Path, folder: Path) -> Path:
    """The same Run of another model, which fixes every second error and breaks the first correct image."""
    shutil.copytree(run, folder)
    made = Run.open(folder)
    manifest = made.manifest()
    made.describe(subject={**manifest["subject"], "fingerprint": "f" * 64}, data=manifest["data"])
    errors = made["causes.errors"].table
    before = np.array(errors["correct"].to_pylist())
    changed = before.copy()
    changed[np.flatnonzero(~before)[::2]] = True
    changed[np.flatnonzero(before)[0]] = False
    now = dict(zip(errors["id"].to_pylist(), changed.tolist(), strict=True))
    for finding in list(made):
        table = finding.table
        if table is not None and {"id", "correct"} <= set(table.column_names):
            columns = {name: table[name].to_pylist() for name in table.column_names}
            table = table_of({**columns, "correct": [now[name] for name in columns["id"]]})
        arrays = {name: np.array(array) for name, array in finding.arrays.items()}
        made.save(replace(finding, table=table, arrays=arrays).with_provenance(subject="f" * 64))
    return folder


def make_big(folder: Path, samples: int = 100_000, *, side: int = 16, seed: int = 0) -> Path:
    """A Run of many samples: pictures, errors with metadata, neighbour accuracy, and places on a map."""
    run, draw = Run.create(folder), np.random.default_rng(seed)
    data, subject = "d" * 64, "5" * 64
    run.describe(
        subject={"model": "Made", "fingerprint": subject, "task": "classification", "classes": list(CLASSES)},
        data={"test": {"fingerprint": data, "samples": samples}},
        asked=["causes.errors", "robustness.neighbour_accuracy", "robustness.weak_places", "data.pictures"],
    )
    ids = np.array([f"{kind}/{number:06d}.png" for number, kind in enumerate(np.resize(["cat", "dog"], samples))])
    target, predicted = draw.integers(0, 4, (2, samples))
    target = np.where(draw.random(samples) < 0.9, predicted, target)
    wrong, names = target != predicted, np.array(CLASSES)
    provenance = {"data": data, "subject": subject, "samples": samples}

    def save(name, about, **parts):
        summary = {"inputs": Estimate(samples, about="samples examined")}
        outputs = declared(name) or Outputs()
        run.save(Finding(name, about, summary, outputs=outputs, provenance=provenance, **parts))

    shades = (target[:, None, None, None] * 60 + np.arange(side, dtype=np.int64)[:, None, None]).astype(np.uint8)
    pixels = np.broadcast_to(shades, (samples, side, side, 3))
    save("data.pictures", "A small picture of every input.", table=table_of({"id": ids}), arrays={"pixels": pixels})
    shuffled = draw.permutation(samples)
    columns = {"correct": ~wrong, "target": names[target], "prediction": names[predicted]}
    columns |= {f"metadata.{name}": draw.random(samples) for name in ("light", "blur", "angle")}
    columns["metadata.camera"] = draw.choice(["front", "rear", "side"], samples)
    errors = {"id": ids[shuffled], **{name: column[shuffled] for name, column in columns.items()}}
    save("causes.errors", "Error-inducing images.", table=table_of(errors))
    accuracy = np.clip(draw.normal(0.8, 0.2, samples) - 0.4 * wrong, 0, 1).round(2)
    known = {"id": ids, "weak": accuracy < 0.75, "neighbour_accuracy": accuracy, "target": names[target]}
    known |= {name: draw.random(samples) for name in ("low", "high", "concentration", "entropy", "consistency")}
    known |= {"looks_used": draw.integers(5, 50, samples), "prediction": names[predicted], "correct": ~wrong}
    save("robustness.neighbour_accuracy", "Share of correct predictions for variations.", table=table_of(known))
    angle = target * np.pi / 2
    places = {"x": np.cos(angle) + draw.normal(0, 0.3, samples), "y": np.sin(angle) + draw.normal(0, 0.3, samples)}
    save(
        "robustness.weak_places",
        "Where weak inputs lie.",
        table=table_of({"id": ids, "weak": accuracy < 0.75, **places}),
    )
    return folder
