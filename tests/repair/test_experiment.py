"""Before and after, against baselines of the same labelling budget."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Finding, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.repair import ExperimentDesign, Labelled, Predictions, Recipe, RetrainingData, run_experiment
from weakspot.repair.effects import repeated_effect
from weakspot.repair.experiment import _new_samples

SHORT = Recipe(epochs=4, learning_rate=0.003, batch_size=32)


@pytest.fixture(scope="module")
def forgetful():
    """The digits net, which forgot what a 3 and what an 8 is."""
    net = copy.deepcopy(digits.model())
    with torch.no_grad():
        net.classifier.bias[[3, 8]] -= 8
    return Subject(net, classes=digits.CLASSES, scores="logits")


@pytest.fixture(scope="module")
def data(forgetful):
    """Thirty 3 and ten 8 were labelled; the wrong test images are in a cluster for each."""
    train, test = digits.train(), Subset(digits.test(), range(200))
    targets = train.read(np.arange(1198)).targets.numpy()
    chosen = {3: np.flatnonzero(targets == 3)[:30], 8: np.flatnonzero(targets == 8)[:10]}
    labels = {train.ids[row]: number for number, rows in chosen.items() for row in rows}
    answers = examine(forgetful, test, [Predictions()])[0].table.to_pylist()
    causes = {row["id"]: {3: 1, 8: 2}.get(row["target"], 0) for row in answers if not row["correct"]}
    return RetrainingData(
        unsafe=Labelled(train, labels),
        clusters={name: {3: 1, 8: 2}[number] for name, number in labels.items()},
        test=test,
        train=Subset(train, range(100)),
        pool=train,
        causes=causes,
    )


@pytest.fixture(scope="module")
def proof(forgetful, data):
    return run_experiment(forgetful, data, ExperimentDesign(2, validation=0.0, balance=True), recipe=SHORT)


def test_what_the_finding_says_follows_from_its_scores(proof, data):
    finding = proof.finding
    assert finding.name == "causes.retraining"
    before, after = finding.arrays["before"], finding.arrays["after-unsafe_set"]
    assert after.shape == (2, 200)
    assert finding.summary["difference"].value == pytest.approx(after.mean() - before.mean())
    assert finding.summary["verdict"].value == "better"
    random = finding.arrays["after-random_images"]
    over = repeated_effect(random, after)
    told = finding.summary["over_random_images"]
    assert (told.value, told.low, told.high) == (over.difference, over.low, over.high)
    assert finding.summary["verdict_random_images"].value == over.verdict
    assert finding.summary["added"].value.startswith("unsafe set 60, random images 40, failing images ")


def test_the_table_has_every_method_repeat_and_cluster(proof, data):
    rows = proof.finding.table.to_pylist()
    methods = ("unsafe set", "random images", "failing images")
    parts = ("all", "correct before", "alone", "cluster 1", "cluster 2")
    present = [part for part in parts if part != "alone" or 0 in data.causes.values()]
    assert {(row["method"], row["repeat"], row["part"]) for row in rows} == {
        (method, repeat, part) for method in methods for repeat in ("all", "1", "2") for part in present
    }
    ids = proof.finding.arrays["id"].tolist()
    scores = proof.finding.arrays["after-failing_images"]
    members = [place for place, name in enumerate(ids) if data.causes.get(name) == 1]
    [row] = [r for r in rows if (r["method"], r["repeat"], r["part"]) == ("failing images", "2", "cluster 1")]
    assert row["images"] == len(members)
    assert row["before"] == 0
    assert row["after"] == pytest.approx(scores[1, members].mean())
    assert row["fixed"] == scores[1, members].sum()


def test_the_model_that_is_given_back_is_that_of_the_first_repeat(proof, data, forgetful):
    answers = examine(proof.subject, data.test, [Predictions()])[0]
    right = dict(zip(answers.table["id"].to_pylist(), answers.table["correct"].to_pylist(), strict=True))
    first = proof.finding.arrays["after-unsafe_set"][0]
    assert [right[name] for name in proof.finding.arrays["id"].tolist()] == first.tolist()
    assert proof.subject.fingerprint() != forgetful.fingerprint()


def test_the_finding_is_kept_without_torch_objects(proof, tmp_path):
    proof.finding.save(tmp_path / "it")
    assert Finding.load(tmp_path / "it").digest == proof.finding.digest


def test_the_baselines_spend_the_same_budget(forgetful, data):
    for seed in (0, 1):
        random, _ = _new_samples(forgetful, data, "random images", 0.0, seed, balance=True)
        failing, _ = _new_samples(forgetful, data, "failing images", 0.0, seed, balance=True)
        assert len(random.ids) == len(data.unsafe.ids)
        wrong = [
            row["id"] for row in examine(forgetful, random, [Predictions()])[0].table.to_pylist() if not row["correct"]
        ]
        assert sorted(failing.ids) == sorted(wrong)
    unsafe, judged = _new_samples(forgetful, data, "unsafe set", 0.25, 0, balance=True)
    assert len(judged.ids) == 10
    assert not set(judged.ids) & set(unsafe.origins)


def test_repeated_random_images_weigh_as_much_as_the_balanced_unsafe_set(forgetful, data):
    for validation in (0.0, 0.25):
        random, _ = _new_samples(forgetful, data, "random images", validation, 3, balance=True)
        repeated, judged = _new_samples(forgetful, data, "random images repeated", validation, 3, balance=True)
        unsafe, _ = _new_samples(forgetful, data, "unsafe set", validation, 3, balance=True)
        assert len(repeated.ids) == len(unsafe.ids)
        assert set(repeated.origins) == set(random.ids)
        assert judged is None or not set(judged.ids) & set(repeated.origins)


def test_nothing_is_drawn_again_unless_it_is_asked_for(forgetful, data):
    assert ExperimentDesign().balance is False
    for method in ("unsafe set", "random images repeated", "least confident images repeated"):
        new, _ = _new_samples(forgetful, data, method, 0.0, 3, balance=False)
        assert len(new.ids) == len(set(new.ids)) == len(data.unsafe.ids)


def test_the_least_confident_images_are_those_of_the_pool_with_the_smallest_probability(forgetful, data):
    chosen, _ = _new_samples(forgetful, data, "least confident images", 0.0, 0, balance=True)
    batch = data.pool.read(np.arange(len(data.pool.ids)))
    with torch.no_grad():
        sure = forgetful.model.eval()(batch.inputs).softmax(1).amax(1)
    least = {batch.ids[place] for place in sure.argsort(stable=True)[:40].tolist()}
    assert len(chosen.ids) == len(data.unsafe.ids) and len(set(chosen.ids) & least) >= 39
    repeated, _ = _new_samples(forgetful, data, "least confident images repeated", 0.0, 0, balance=True)
    unsafe, _ = _new_samples(forgetful, data, "unsafe set", 0.0, 0, balance=True)
    assert len(repeated.ids) == len(unsafe.ids) and set(repeated.origins) == set(chosen.ids)


def test_least_confident_images_need_probabilities(forgetful, data):
    unsaid = Subject(forgetful.model, classes=forgetful.classes)
    with pytest.raises(ConfigError, match="least confident images need probabilities"):
        _new_samples(unsaid, data, "least confident images", 0.0, 0, balance=True)


def test_no_baselines_without_a_pool(forgetful, data):
    alone = RetrainingData(data.unsafe, data.clusters, data.test)
    made = run_experiment(forgetful, alone, ExperimentDesign(1, validation=0.0), recipe=Recipe(epochs=1)).finding
    assert made.summary["baselines"].value == "none"
    assert set(made.table["method"].to_pylist()) == {"unsafe set"}
    assert "say nothing of how trainings differ" in made.summary["repeats"].about
    with pytest.raises(DataError, match=r"drawn from a pool .* at least as many as the unsafe set has \(40\)"):
        run_experiment(forgetful, alone, ExperimentDesign(methods=["random images"]))
    with pytest.raises(DataError, match="are trained on and judged by"):
        run_experiment(forgetful, RetrainingData(data.unsafe, data.clusters, data.unsafe))
    with pytest.raises(ConfigError, match="no method 'luck'"):
        run_experiment(forgetful, alone, ExperimentDesign(methods=["luck"]))


def test_numbers_are_judged_by_their_error():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(120, 3)).astype(np.float32)
    targets = inputs.sum(1, keepdims=True)
    parts = [
        ArraySource(inputs[a:b], targets[a:b], ids=[f"{n:03d}" for n in range(a, b)]) for a, b in ((0, 60), (60, 120))
    ]
    subject = Subject(nn.Linear(3, 1), task="regression")
    labelled = Labelled(parts[0], {name: float(targets[int(name), 0]) for name in parts[0].ids[:20]})
    data = RetrainingData(
        labelled, dict.fromkeys(parts[0].ids, 1), parts[1], pool=parts[0], causes={parts[1].ids[0]: 1}, threshold=0.5
    )
    recipe = Recipe(epochs=20, learning_rate=0.05, batch_size=8)
    made = run_experiment(subject, data, ExperimentDesign(2), recipe=recipe).finding
    assert made.summary["verdict"].value == "better"
    assert made.summary["difference"].high < 0
    assert "fixed" not in made.table.column_names
    with pytest.raises(ConfigError, match="give a threshold"):
        run_experiment(subject, RetrainingData(labelled, data.clusters, parts[1], pool=parts[0]), recipe=recipe)
