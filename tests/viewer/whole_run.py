"""A Run with something for every page, made up: the same on every machine, so that layouts can be compared."""

import shutil
from pathlib import Path

import numpy as np

from tests.report.samples import HOSTILE
from weakspot.core.finding import Estimate, Finding, Picture, table_of
from weakspot.core.outputs import Outputs
from weakspot.core.run import Run
from weakspot.data.images import png
from weakspot.rooms import declared

CLASSES = ("circle", "square", "triangle", HOSTILE)
TEST, TRAIN, MODEL = "d" * 64, "e" * 64, "5" * 64
SIDE = 32
CLUSTERS = 3
FORMULA = "=1+1"
"""The id of the first sample: no spreadsheet may take it for a formula."""


def shape(kind: int, shade: int) -> np.ndarray:
    """A picture of a class, (SIDE, SIDE, 3)."""
    down, across = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    shapes = (
        np.hypot(down, across) < 11,
        np.maximum(abs(down), abs(across)) < 9,
        (down > 2 * abs(across) - 11) & (down < 9),
        abs(abs(down) - abs(across)) < 3,
    )
    colour = np.array([[200, 60, 40], [40, 120, 200], [60, 160, 60], [150, 90, 180]][kind]) * (0.5 + shade / 20)
    return np.where(shapes[kind][..., None], np.clip(colour, 0, 255), 235).astype(np.uint8)


def make_whole(folder: Path, samples: int = 200) -> Path:
    """Pictures, errors, neighbours, map, strips, pairs, clusters and holes of `samples` made-up images."""
    run, draw = Run.create(folder), np.random.default_rng(3)
    target = draw.integers(0, 4, samples)
    predicted = np.where(draw.random(samples) < 0.7, target, (target + 1) % 4)
    run.describe(
        subject={"model": "Shapes", "fingerprint": MODEL, "task": "classification", "classes": list(CLASSES)},
        data={"test": {"fingerprint": TEST, "samples": samples}, "train": {"fingerprint": TRAIN, "samples": 40}},
    )
    ids = np.array([FORMULA, *(f"shape-{number:04d}" for number in range(1, samples))])
    trained = np.array([f"train-{number:03d}" for number in range(40)])
    for finding in (
        pictures("test", ids, target), pictures("train", trained, np.arange(40) % 4),
        errors(ids, target, predicted, draw), neighbours(ids, target, predicted, draw), places(ids, target, draw),
        strips(ids, target), pairs(), causes(ids, target, predicted), slices(ids, target, predicted), holes(),
    ):  # fmt: skip
        run.save(finding)
    return folder


def made(name: str, about: str, *, data: str = TEST, **parts) -> Finding:
    """A Finding of this Run."""
    outputs = declared(name) or Outputs()
    return Finding(name, about, outputs=outputs, provenance={"data": data, "subject": MODEL}, **parts)


def pictures(split: str, ids: np.ndarray, target: np.ndarray) -> Finding:
    pixels = np.stack([shape(kind, number % 10) for number, kind in enumerate(target)])
    name = "data.pictures" if split == "test" else f"data.pictures-{split}"
    data = TEST if split == "test" else TRAIN
    return made(
        name, "A small picture of every input.", data=data, table=table_of({"id": ids}), arrays={"pixels": pixels}
    )


def errors(ids: np.ndarray, target: np.ndarray, predicted: np.ndarray, draw: np.random.Generator) -> Finding:
    names, wrong = np.array(CLASSES), target != predicted
    kind = np.where(wrong, np.char.add(np.char.add(names[target], " → "), names[predicted]), "")
    columns = {"id": ids, "correct": ~wrong, "kind": kind, "target": names[target], "prediction": names[predicted]}
    columns |= {
        "metadata.light": draw.random(len(ids)).round(3),
        "metadata.camera": draw.choice(["front", "rear"], len(ids)),
    }
    summary = {
        "errors": Estimate(int(wrong.sum()), about="error-inducing images"),
        "error_share": Estimate(float(wrong.mean()), 0.2, 0.4, 0.95, "share of the images predicted incorrectly"),
    }
    return made("causes.errors", "Error-inducing images.", summary=summary, table=table_of(columns))


def neighbours(ids: np.ndarray, target: np.ndarray, predicted: np.ndarray, draw: np.random.Generator) -> Finding:
    accuracy = np.clip(draw.normal(0.75, 0.2, len(ids)), 0, 1).round(2)
    columns = {"id": ids, "weak": accuracy < 0.75, "neighbour_accuracy": accuracy, "correct": target == predicted}
    columns |= {"target": target, "prediction": predicted}
    summary = {"weak_share": Estimate(0.5, 0.4, 0.6, 0.95, "share of the inputs that are weak")}
    return made(
        "robustness.neighbour_accuracy",
        "Share of correct predictions for variations.",
        summary=summary,
        table=table_of(columns),
    )


def places(ids: np.ndarray, target: np.ndarray, draw: np.random.Generator) -> Finding:
    angle = target * np.pi / 2
    x, y = np.cos(angle) + draw.normal(0, 0.2, len(ids)), np.sin(angle) + draw.normal(0, 0.2, len(ids))
    return made("robustness.weak_places", "Where weak inputs lie.", table=table_of({"id": ids, "x": x, "y": y}))


def sheet(kinds) -> bytes:
    return png(np.concatenate([shape(kind, number) for number, kind in enumerate(kinds)], axis=1))


def strips(ids: np.ndarray, target: np.ndarray) -> Finding:
    chosen = ids[3:7]
    media = {
        name: Picture(sheet([target[3 + n]] * 6), f"{name}: predicted as {HOSTILE}") for n, name in enumerate(chosen)
    }
    columns = {"id": chosen, "predictions": ["circle square"] * 4, "correct_looks": np.arange(1, 5)}
    return made(
        "robustness.weak_strips", "The weakest inputs beside their neighbours.", table=table_of(columns), media=media
    )


def pairs() -> Finding:
    names = [(first, second) for n, first in enumerate(CLASSES) for second in CLASSES[n + 1 :]]
    rate = np.linspace(0.4, 0, len(names))
    columns = {
        "first": [first for first, _ in names], "second": [second for _, second in names], "distance": 1 + rate,
        "confused": rate > 0.2, "certainty": 1 - rate, "average_bias": rate / 2, "biased": rate > 0.3,
        "worst_beside": ["square"] * len(names), "first_taken_for_second": rate,
        "second_taken_for_first": rate[::-1] / 4,
    }  # fmt: skip
    media = {
        f"{first} like {second}": Picture(sheet([0, 1, 2]), f"{first} like {second}.") for first, second in names[:2]
    }
    return made("classes.class_pairs", "Pairs of classes.", table=table_of(columns), media=media)


def causes(ids: np.ndarray, target: np.ndarray, predicted: np.ndarray) -> Finding:
    wrong = np.flatnonzero(target != predicted)
    wrong = wrong[np.argsort(ids[wrong])]
    cluster = np.arange(len(wrong)) % CLUSTERS + 1
    distance = np.arange(len(wrong)) / len(wrong)
    warm = np.exp(-((np.mgrid[:16, :16] - np.array([5, 9])[:, None, None]) ** 2).sum(0) / 12)
    first = [int(np.flatnonzero(cluster == number)[0]) for number in range(1, CLUSTERS + 1)]
    sizes = np.bincount(cluster)[1:]
    columns = {
        "cluster": np.arange(1, CLUSTERS + 1), "images": sizes, "share": sizes / len(wrong),
        "low": sizes / len(wrong) / 2,
        "high": np.minimum(1, sizes / len(wrong) * 2), "errors": [f"circle → {HOSTILE} (9)"] * CLUSTERS,
        "medoid": ids[wrong[first]], "spread": [0.5] * CLUSTERS, "stability": [0.9, 0.8, 0.4],
        "stable": [True, True, False], "nearest": [""] * CLUSTERS, "shared": ["light near 0.2", "", "camera rear"],
    }  # fmt: skip
    names = np.array(CLASSES)
    arrays = {
        "image_id": ids[wrong], "image_cluster": cluster, "image_distance": distance,
        "image_kind": np.char.add(np.char.add(names[target[wrong]], " → "), names[predicted[wrong]]),
        "thumbnails": np.stack([shape(target[place], place % 10) for place in wrong]),
        "heat_pictures": np.repeat(warm[None].astype(np.float32), len(wrong), 0),
    }  # fmt: skip
    summary = {"clusters": Estimate(CLUSTERS, about="root-cause clusters")}
    return made("causes.root_causes", "Clusters of errors.", summary=summary, table=table_of(columns), arrays=arrays)


def slices(ids: np.ndarray, target: np.ndarray, predicted: np.ndarray) -> Finding:
    """Two rules: one confirmed, that holds for the first half of the images, and a suspicion for the others."""
    wrong, rule = target != predicted, np.where(np.arange(len(ids)) < len(ids) // 2, 1, 2)
    shown = [[", ".join(ids[(rule == number) & there][:3]) for number in (1, 2)] for there in (wrong, ~wrong)]
    held = [int((rule == number).sum()) for number in (1, 2)]
    columns = {
        "slice": [1, 2], "status": ["confirmed", "suspicion"], "confirmed": [True, False],
        "kind": ["trait", "features"],
        "rule": ["dark (light < 0.2)", HOSTILE], "summary": ["dark: 60 % wrong", "another"], "images": held,
        "errors": [int((wrong & (rule == number)).sum()) for number in (1, 2)], "explained": [20.4, 3.1],
        "error_rate": [0.6, 0.4], "low": [0.5, 0.2], "high": [0.7, 0.6], "elsewhere": [0.1, 0.3],
        "elsewhere_low": [0.05, 0.2], "elsewhere_high": [0.2, 0.4], "p_value": [0.001, 0.2],
        "confused": ["circle → square (9)", ""], "contrast": ["darker (light median 0.1 against 0.6)", ""],
        "incorrect_examples": shown[0], "correct_examples": shown[1], "conditions": ["[]", "[]"],
    }  # fmt: skip
    arrays = {
        "image_id": ids, "image_slice": rule, "doubtful_id": ids[wrong][:2],
        "doubtful_kind": np.array(["circle → square"] * 2),
    }  # fmt: skip
    summary = {"confirmed": Estimate(1), "first": Estimate("dark (light < 0.2): 60 % wrong"), "errors": Estimate(50)}
    return made("causes.error_slices", "Rules for errors.", summary=summary, table=table_of(columns), arrays=arrays)


def holes() -> Finding:
    nearest = np.array([[f"train-{3 * hole + n:03d}" for n in range(3)] for hole in range(5)])
    arrays = {
        "hole_combination": np.arange(15).reshape(5, 3) % 2, "hole_group": np.zeros(5, np.int64),
        "hole_training_inputs": np.array([9, 4, 2, 1, 1]), "hole_nearest_id": nearest,
        "hole_nearest_distance": np.arange(15).reshape(5, 3) / 10,
    }  # fmt: skip
    media = {"hole 1": Picture(sheet([0, 1]), "No test input covers the combination 0-1-0.")}
    summary = {"coverage": Estimate(0.5, about="share of the combinations that at least one input reaches")}
    return made(
        "coverage.importance_driven_coverage", "Combinations of clusters.", summary=summary, arrays=arrays, media=media
    )


def damage(run: Path, folder: Path) -> Path:
    """The same Run with root causes whose table is cut off."""
    shutil.copytree(run, folder)
    table = folder / "findings" / "causes.root_causes" / "table.parquet"
    table.write_bytes(table.read_bytes()[:100])
    return folder
