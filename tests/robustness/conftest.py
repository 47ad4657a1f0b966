"""The stored predictions of nine networks, and a detector trained on the embedded digits."""

import numpy as np
import pytest
import torch

from weakspot import Plan, Run, Step, Subject
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.looks import Rotate, Shift
from weakspot.robustness.detector_probes import DetectorEvaluation, WeakDetector, WeakInputs
from weakspot.robustness.guard_probes import GuardedInputs, GuardEvaluation, PredictionGuard

NETS = [f"{net}-{data}" for data in ("svhn", "fashion_mnist", "cifar10") for net in ("ResN", "WideResN", "Vgg16Half")]
DETECTOR = {"variation": Rotate(20) & Shift(1), "looks": 20, "queries": 8, "sample": 300, "epochs": 10}


@pytest.fixture(scope="session")
def stored(shared):
    """The stored classes of a network's training and test images and their neighbours, by its name."""

    def read(net):
        with np.load(shared / f"models/neighbours/{net}-predicted.npz") as arrays:
            return arrays["train"].astype(np.int64), arrays["test"].astype(np.int64)

    return read


@pytest.fixture(scope="session")
def svhn_labels(shared):
    """The labels of the training and test images of street-view house numbers."""
    with np.load(shared / "data/svhn.npz") as arrays:
        return arrays["y_train"].astype(np.int64), arrays["y_test"].astype(np.int64)


@pytest.fixture(scope="session")
def subject():
    return Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=(0, 1))


@pytest.fixture(scope="session")
def detector_run(subject, tmp_path_factory):
    """A Run with a trained detector, its evaluation and the inputs it flags, over some of the digits."""
    run = Run.create(tmp_path_factory.mktemp("detector") / "run")
    trained = Step.of(WeakDetector, **DETECTOR)
    asked = [
        Step(DetectorEvaluation, {"training": {}, "looks": 20}, "test", {"detector": trained}),
        Step(WeakInputs, {"training": {}}, "test", {"detector": trained}),
    ]
    data = {"train": digits.train(), "test": limited(digits.test(), 200)}
    Plan.of(asked).run(subject, data, run)
    return run


@pytest.fixture(scope="session")
def shaky():
    """A model of the digits whose weights were disturbed, so that it makes some mistakes."""
    model = digits.model()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(3)
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * parameter.std() * 0.7)
    return Subject(model, classes=digits.CLASSES, scores="logits", bounds=(0, 1))


@pytest.fixture(scope="session")
def guard_data():
    """Digits for calibration, for judging, and without labels."""
    train, test = digits.train(), digits.test()
    return {"validation": limited(train, 700), "test": test, "pool": limited(test, 300)}


@pytest.fixture(scope="session")
def guard_run(shaky, guard_data, tmp_path_factory):
    """A Run with a guard, judged and used."""
    run = Run.create(tmp_path_factory.mktemp("guard") / "run")
    fitted = Step.of(PredictionGuard, aim="recall", value=0.8)
    asked = [
        Step(GuardEvaluation, {"training": {}}, "test", {"guard": fitted}),
        Step(GuardedInputs, {"training": {}}, "pool", {"guard": fitted}),
    ]
    Plan.of(asked).run(shaky, guard_data, run)
    return run
