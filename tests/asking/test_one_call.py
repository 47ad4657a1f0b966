"""One call from Python's objects to a Run: the same numbers as the command line's way gives."""

import logging

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import weakspot
from weakspot import Plan, Run, Subject
from weakspot.core.errors import ConfigError, DataError
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.registry import steps_for

ASKED = {"robustness": {"neighbours": {"rotate": 20}, "looks": 4}}


def test_it_gives_what_a_plan_gives(answers, pairs, tmp_path):
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits")
    plan = Plan.of(steps_for({**ASKED, "confidence": {}}))
    plan.run(subject, {"test": ArraySource(*pairs)}, run := Run.create(tmp_path / "plan"))
    assert {*run.names(), "performance.performance"} == {*answers.names()}  # asked besides: it costs no pass
    assert [answers[name].digest for name in run.names()] == [finding.digest for finding in run]


@pytest.mark.parametrize(
    "wrapped",
    [
        TensorDataset,
        lambda x, y: DataLoader(TensorDataset(x, y), batch_size=7),
        lambda x, y: (x.numpy(), y.numpy()),
        lambda x, y: list(zip(x, y.tolist(), strict=True)),
        lambda x, y: [{"image": image, "label": label} for image, label in zip(x, y.tolist(), strict=True)],
        lambda x, y: DataLoader([{"img": i, "labels": t} for i, t in zip(x, y.tolist(), strict=True)], batch_size=9),
        ArraySource,
    ],
)
def test_data_come_as_they_are(wrapped, answers, pairs):
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits")
    (found,) = weakspot.examine(subject, wrapped(*pairs), ["confidence"])
    assert found.summary == answers["coverage.confidence"].summary
    assert found.table.equals(answers["coverage.confidence"].table)


def test_paths_and_mappings_are_read_as_in_the_file(answers, pairs, tmp_path):
    inputs, targets = pairs
    np.savez(tmp_path / "digits.npz", x_test=inputs.numpy(), y_test=targets.numpy(), x=inputs.numpy())
    test, pool = str(tmp_path / "digits.npz"), {"path": str(tmp_path / "digits.npz"), "inputs": "x"}
    made = weakspot.ask(
        "weakspot.data.digits:model", test=test, pool=pool, scores="logits", class_names=10, confidence={},
        data={"moved": {"path": "test", "attack": "fgsm", "arguments": {"epsilon": 0.1}}}, bounds=(0, 1),
        run=tmp_path / "run",
    )  # fmt: skip
    assert made["coverage.confidence"].summary == answers["coverage.confidence"].summary
    assert made.manifest()["data"].keys() == {"test", "pool", "moved"}
    assert made.manifest()["data"]["moved"]["fingerprint"] != made.manifest()["data"]["test"]["fingerprint"]


def test_the_same_call_goes_on_in_the_same_folder_and_another_model_has_another(pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = weakspot.ask(digits.model(), test=pairs, scores="logits", confidence={})
    written = (first.folder / "findings/coverage.confidence/finding.json").stat().st_mtime_ns
    again = weakspot.ask(digits.model(), test=pairs, scores="logits", confidence={})
    assert again.folder == first.folder and first.folder.parent.name == "runs"
    assert (again.folder / "findings/coverage.confidence/finding.json").stat().st_mtime_ns == written
    other = digits.model()
    nn.init.zeros_(other.get_parameter(next(name for name, _ in other.named_parameters())))
    assert weakspot.ask(other, test=pairs, scores="logits", confidence={}).folder != first.folder
    assert weakspot.ask(digits.model(), test=pairs, scores="logits", confidence={}, limit=10).folder != first.folder


def test_a_black_box_with_its_name(pairs, tmp_path):
    net = digits.model().eval()

    def box(inputs):
        with torch.no_grad():
            return net(inputs).numpy()

    asked = {"test": pairs, "scores": "logits", "confidence": {}}
    made = weakspot.ask(box, **asked, fingerprint="box 1", run=tmp_path / "run")
    assert made["coverage.confidence"].table.num_rows == 60
    with pytest.raises(ConfigError, match="give the subject fingerprint="):
        weakspot.ask(box, **asked, run=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_names_of_a_folder_of_images_are_put_into_the_order_of_the_model(tmp_path):
    from PIL import Image

    for name, grey in (("bright", 250), ("dark", 5)):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.fromarray(np.full((4, 4, 3), grey, np.uint8)).save(tmp_path / "images" / name / "0.png")

    class Net(nn.Module):
        class config:
            id2label = {0: "dark", 1: "bright"}  # noqa: RUF012

        def __init__(self):
            super().__init__()
            self.head = nn.Linear(48, 2)
            with torch.no_grad():
                self.head.weight.copy_(torch.tensor([[-1.0], [1.0]]))
                self.head.bias.copy_(torch.tensor([24.0, -24.0]))

        def forward(self, x):
            return self.head(x.flatten(1))

    made = weakspot.ask(Net(), test=tmp_path / "images", causes={"slices": False}, scores="logits", run=tmp_path / "r")
    assert made["causes.errors"].summary["errors"].value == 0
    assert made.manifest()["subject"]["classes"] == ["dark", "bright"]


def test_what_happens_is_logged_under_one_name(pairs, tmp_path, caplog):
    loader = DataLoader(TensorDataset(*pairs), batch_size=8, shuffle=True)
    with caplog.at_level(logging.INFO, "weakspot"):
        weakspot.ask(digits.model(), test=loader, scores="logits", confidence={}, run=tmp_path / "run")
    assert {record.name for record in caplog.records} == {"weakspot"}
    said = {(record.levelname, record.getMessage()) for record in caplog.records}
    assert ("WARNING", "test: the loader shuffles; samples are read in the order of its data set") in said
    assert ("INFO", "test: 2 questions: 60 samples") in said


def test_a_bar_is_drawn_where_one_is_wanted(pairs, tmp_path, capfd):
    weakspot.ask(digits.model(), test=pairs, scores="logits", confidence={}, run=tmp_path / "run", progress=True)
    assert "60/60" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing is asked: name a question with its options, such as robustness="),
        ({"robustnes": {}}, "nothing is called 'robustnes': did you mean 'robustness'"),
        ({"robustness": {"lookz": 1}}, "lookz"),
        ({"confidence": {}, "test": None}, "no data are given: give at least test="),
        ({"confidence": {}, "test": 3}, "test is a int: expected a torch Dataset or DataLoader"),
        ({"confidence": {}, "test": ("a", "b")}, r"test is a tuple of \['str', 'str'\]: expected"),
        ({"confidence": {}, "test": [{"a": 1, "b": 2}]}, "samples are mappings with 'a', 'b', and which of these"),
        ({"confidence": {}, "test": "nowhere"}, "nowhere"),
        (
            {"confidence": {}, "classes": ["a", "b"]},
            r"expected a question's options .*the names of the classes are class_names",
        ),
        ({"confidence": {}, "data": {"a b": "x"}}, "'a b' is no name for a split"),
        ({"confidence": {}, "test": {"paht": "x"}}, "data.test.paht is not known: did you mean 'path'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(given, message, pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, DataError), match=message):
        weakspot.ask(digits.model(), **{"test": pairs, **given})
    assert not list(tmp_path.iterdir())


def test_a_shape_that_the_model_cannot_take_is_told_with_the_error_of_torch(pairs, tmp_path):
    inputs, targets = pairs
    with pytest.raises(RuntimeError, match="to have 1 channels") as caught:
        weakspot.ask(digits.model(), test=(inputs.movedim(1, 3), targets), causes={}, run=tmp_path / "run")
    assert "samples have the shape (8, 8, 1), and channels come first" in caught.value.__notes__[0]


def test_options_of_a_subject_belong_to_it(pairs):
    with pytest.raises(ConfigError, match="the model is a Subject already: say classes, scores where you make it"):
        weakspot.ask(Subject(digits.model()), test=pairs, class_names=10, scores="logits", confidence={})
