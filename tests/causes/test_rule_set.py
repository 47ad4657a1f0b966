"""Images to label by the rules of causes, in proportion to the errors that each explains; and controls."""

import numpy as np
import pytest
import torch

from weakspot import Plan, Run, Subject, examine
from weakspot.causes import ErrorSlices, RuleSet
from weakspot.causes.labelling import export_labels, import_labels
from weakspot.causes.room import steps
from weakspot.core.errors import ConfigError
from weakspot.data import eye_net
from weakspot.data.sources import ArraySource, WithMetadata

COUNT, CLASSES = 900, ("left", "right", "both")


def predicts(images):
    """Right but in the dark, where it is also less sure."""
    seen = images[:, 0, 0, :3] * 4
    dark = images.mean((1, 2, 3)) < 0.25
    return torch.where(dark[:, None], 0.5 * seen.roll(-1, 1), seen)


def source(seed, *, labelled=True, dark=0.2):
    rng = np.random.default_rng(seed)
    labels, light = rng.integers(0, 3, COUNT), np.where(rng.random(COUNT) < dark, 0.2, 0.8)
    images = rng.random((COUNT, 1, 8, 8), dtype=np.float32) * light[:, None, None, None].astype(np.float32)
    images[:, 0, 0, :3] = 0
    images[np.arange(COUNT), 0, 0, labels] = 1
    ids = [f"s{seed}-{number:04d}" for number in range(COUNT)]
    data = ArraySource(images, labels if labelled else None, ids=ids)
    return WithMetadata(data, {"id": ids, "fog": np.where(rng.random(COUNT) < 0.1, "yes", "no").tolist()})


@pytest.fixture(scope="module")
def subject():
    return Subject(predicts, classes=CLASSES, scores="logits", fingerprint="corners 2")


@pytest.fixture(scope="module")
def slices(subject):
    return examine(subject, source(0), [ErrorSlices()])[0]


def chosen(subject, slices, pool=None, **options):
    return examine(subject, pool or source(5, labelled=False), [RuleSet(slices=slices, **options)])[0]


def dark_ids(data):
    batch = data.read(np.arange(COUNT))
    return {name for name, dark in zip(batch.ids, (batch.inputs.mean((1, 2, 3)) < 0.25).tolist(), strict=True) if dark}


def test_the_rule_of_the_cause_chooses_unlabelled_images(subject, slices, tmp_path):
    assert slices.table["rule"][0].as_py().startswith("dark (brightness < ")
    found = chosen(subject, slices, budget=40)
    rows = found.table.to_pylist()
    assert len(rows) == 40 and {row["cluster"] for row in rows} == {1}
    dark = dark_ids(source(5))
    assert sum(row["id"] in dark for row in rows) >= 39
    assert abs(found.summary["held"].value - len(dark)) <= 4 and found.arrays["chosen_by"] == "rules"
    assert found.outputs.problems(found) == []
    export_labels(found, tmp_path / "labels.csv")
    run = Run.create(tmp_path / "run")
    run.save(found)
    assert import_labels(run, tmp_path / "labels.csv").summary["missing"].value == 40


def test_within_a_cause_the_least_confident_can_be_chosen(subject, slices):
    found = chosen(subject, slices, budget=30, within="least confident")
    sure = dict(zip(found.arrays["image_id"].tolist(), found.arrays["image_distance"].tolist(), strict=True))
    held = [name for name, cause in zip(found.arrays["image_id"], found.arrays["image_cluster"], strict=True) if cause]
    assert set(found.table["id"].to_pylist()) == set(sorted(held, key=lambda name: (sure[name], name))[:30])


def test_controls_choose_from_the_whole_unlabelled_pool(subject, slices):
    least = chosen(subject, slices, by="least confident", budget=50)
    with torch.no_grad():
        batch = source(5).read(np.arange(COUNT))
        sure = predicts(batch.inputs).softmax(1).amax(1)
    assert set(least.table["id"].to_pylist()) <= dark_ids(source(5))
    assert least.table["distance"].to_numpy().max() <= np.sort(sure.numpy())[50] + 1e-6
    one, two = (chosen(subject, slices, by="random", budget=50, seed=seed) for seed in (0, 1))
    assert one.table["id"].to_pylist() != two.table["id"].to_pylist()
    assert 0.05 < np.mean([name in dark_ids(source(5)) for name in one.table["id"].to_pylist()]) < 0.4


def test_a_rule_that_cannot_be_asked_is_counted_and_none_chooses_none(subject, slices):
    rng = np.random.default_rng(0)
    data, wrong = source(0, dark=0.0), rng.random(COUNT) < 0.2
    batch = data.read(np.arange(COUNT))
    labels = np.where(wrong, (batch.targets.numpy() + 1) % 3, batch.targets.numpy())
    crew = np.where(wrong | (rng.random(COUNT) < 0.1), "new", "old").tolist()
    noted = ArraySource(batch.inputs.numpy(), labels, ids=list(data.ids))
    noted = WithMetadata(noted, {"id": list(data.ids), "crew": crew})
    of_crew = examine(subject, noted, [ErrorSlices(sources=("traits",), measures=False)])[0]
    assert of_crew.table["rule"][0].as_py() == "crew = new"
    found = chosen(subject, of_crew)
    assert found.summary["rules_not_asked"].value >= 1 and found.summary["held"].value == 0
    assert found.summary["unsafe"].value == 0
    none = examine(subject, source(3, dark=0.0), [ErrorSlices()])[0]
    assert none.summary["confirmed"].value == 0 and chosen(subject, none).summary["unsafe"].value == 0


def test_regions_of_a_network_choose_too_and_the_room_asks(tmp_path):
    net = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    asked = steps({"slices": {"measures": False}, "select": {"by": "rules", "budget": 60}, "replicates": 0})
    assert [step.probe.__name__ for step in asked] == ["Errors", "ErrorSlices", "RootCauses", "RuleSet"]
    data = {"test": eye_net.test(), "pool": eye_net.pool()}
    found = Plan.of(asked).run(net, data, Run.create(tmp_path / "run"))
    if found[1].summary["confirmed"].value:
        assert found[3].summary["unsafe"].value == min(60, found[3].summary["held"].value) > 0
    with pytest.raises(ConfigError, match="needs the rules: leave slices: false out"):
        steps({"slices": False, "select": {"by": "rules"}})
    with pytest.raises(ConfigError, match="by"):
        steps({"select": {"by": "heat"}})
