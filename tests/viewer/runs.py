"""Runs to look at: a real one of a small examination, the same after retraining, and a large one that is made up."""

import shutil
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.run import Run
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
    return TestClient(app, base_url=ORIGIN, cookies={COOKIE: TOKEN}, headers=headers, **options)


def examine_small(folder: Path) -> Path:
    """A Run with Findings of every room but lesions: the demo's questions, asked of few of its images."""
    from weakspot.cli import work
    from weakspot.cli.demo import CONFIG

    ask = {**CONFIG.ask, "coverage": {"criteria": ["nc", "idc"]}}
    ask["robustness"] = {**ask["robustness"], "looks": 6}
    config = CONFIG.model_copy(update={"ask": ask})
    work.examine(config, folder.parent, folder, limit=100, silent=True)
    return folder


def retrain(run: Path, folder: Path) -> Path:
    """The same Run of another model that answers every second wrong image rightly and the first right one wrongly."""
    shutil.copytree(run, folder)
    made = Run.open(folder)
    manifest = made.manifest()
    made.describe(subject={**manifest["subject"], "fingerprint": "f" * 64}, data=manifest["data"])
    for finding in list(made):
        table = finding.table
        if finding.name == "causes.errors":
            wrong = np.array(table["wrong"].to_pylist())
            wrong[np.flatnonzero(wrong)[::2]] = False
            wrong[np.flatnonzero(~np.array(table["wrong"].to_pylist()))[0]] = True
            columns = {name: table[name].to_pylist() for name in table.column_names}
            table = table_of({**columns, "wrong": wrong})
        arrays = {name: np.array(array) for name, array in finding.arrays.items()}
        new = Finding(finding.name, finding.about, finding.summary, table, arrays, finding.media, finding.provenance)
        made.save(new.with_provenance(subject="f" * 64))
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
        run.save(Finding(name, about, summary, provenance=provenance, **parts))

    shades = (target[:, None, None, None] * 60 + np.arange(side, dtype=np.int64)[:, None, None]).astype(np.uint8)
    pixels = np.broadcast_to(shades, (samples, side, side, 3))
    save("data.pictures", "A small picture of every input.", table=table_of({"id": ids}), arrays={"pixels": pixels})
    shuffled = draw.permutation(samples)
    columns = {"wrong": wrong, "target": names[target], "answer": names[predicted]}
    columns |= {f"metadata.{name}": draw.random(samples) for name in ("light", "blur", "angle")}
    columns["metadata.camera"] = draw.choice(["front", "rear", "side"], samples)
    errors = {"id": ids[shuffled], **{name: column[shuffled] for name, column in columns.items()}}
    save("causes.errors", "Error-inducing images.", table=table_of(errors))
    accuracy = np.clip(draw.normal(0.8, 0.2, samples) - 0.4 * wrong, 0, 1).round(2)
    known = {"id": ids, "weak": accuracy < 0.75, "accuracy": accuracy, "target": names[target]}
    known |= {name: draw.random(samples) for name in ("low", "high", "diversity", "entropy", "consistency")}
    known |= {"looks_used": draw.integers(5, 50, samples), "predicted": names[predicted]}
    save("robustness.neighbour_accuracy", "Share of an input's variations answered rightly.", table=table_of(known))
    angle = target * np.pi / 2
    places = {"x": np.cos(angle) + draw.normal(0, 0.3, samples), "y": np.sin(angle) + draw.normal(0, 0.3, samples)}
    save(
        "robustness.weak_places",
        "Where weak inputs lie.",
        table=table_of({"id": ids, "weak": accuracy < 0.75, **places}),
    )
    return folder
