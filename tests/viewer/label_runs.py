"""Runs with images to label, made without a model."""

import numpy as np

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.run import Run

CLASSES = ("cat", "dog", "<b>owl</b>")


def unsafe_finding(images=12, clusters=3, *, task="classification", classes=CLASSES, outputs=None, size=16):
    """An unsafe set whose pictures differ; the model predicts the first class for every image."""
    rng = np.random.default_rng(1)
    cluster = np.sort(np.arange(images) % clusters) + 1
    numeric = task in ("regression", "keypoints")
    outputs = len(classes) if outputs is None else outputs
    guess = " ".join(["0.5"] * outputs) if numeric else classes[0]
    table = {
        "id": [f"image {number:03d}" for number in range(images)],
        "cluster": cluster,
        "distance": np.linspace(0, 1, images),
        "prediction": [guess] * images,
    }
    base = rng.integers(0, 255, (clusters, size, size, 3))
    noise = rng.integers(-60, 60, (images, size, size, 3))
    arrays = {
        "task": np.array(task),
        "classes": np.array(() if numeric else classes, dtype=np.str_),
        "outputs": np.array(outputs),
        "thumbnails": np.clip(base[cluster - 1] + noise, 0, 255).astype(np.uint8),
    }
    told = {"unsafe": Estimate(images, about="images to label")}
    return Finding(name="causes.unsafe", about="Images to label.", summary=told, table=table_of(table), arrays=arrays)


def label_run(folder, **options):
    """A Run with an unsafe set and nothing else."""
    run = Run.create(folder)
    run.save(unsafe_finding(**options))
    return run


def plan_finding(name="classes.label_plan", size=8):
    """A plan of 30 labels, as `LabelPlan` makes it of 90 inputs in two strata; the model predicts the first class."""
    table = {
        "id": [f"frame {number:02d}" for number in range(30)],
        "prediction": [CLASSES[0]] * 30,
        "confidence": np.full(30, 0.9),
        "stratum": np.arange(30) % 2,
        "probability": np.full(30, 1 / 3),
    }
    arrays = {
        "task": np.array("classification"),
        "classes": np.array(CLASSES, dtype=np.str_),
        "outputs": np.array(len(CLASSES)),
        "thumbnails": np.arange(30 * size * size * 3, dtype=np.uint8).reshape(30, size, size, 3),
        "stratum_inputs": np.array([45, 45]),
        "stratum_labels": np.array([15, 15]),
    }
    summary = {"to_label": Estimate(30), "average_confidence": Estimate(0.9), "inputs": Estimate(90)}
    return Finding(name=name, about="Few labels.", summary=summary, table=table_of(table), arrays=arrays)
