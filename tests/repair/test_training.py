"""Further training of a copy, and what it changed."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.repair import Answers, Recipe, compared, retrained
from weakspot.repair.training import shuffled


@pytest.fixture
def spoilt():
    """The digits net with its last layer forgotten."""
    net = copy.deepcopy(digits.model())
    with torch.no_grad():
        net.classifier.weight.mul_(0.01)
        net.classifier.bias.copy_(torch.linspace(-1, 1, 10))
    return Subject(net, classes=digits.CLASSES, scores="logits")


def test_retraining_mends_a_spoilt_model_and_leaves_it_untouched(spoilt):
    weights = {name: value.clone() for name, value in spoilt.model.state_dict().items()}
    better = retrained(spoilt, [digits.train()], recipe=Recipe(epochs=8, learning_rate=0.05))
    assert all(torch.equal(value, weights[name]) for name, value in spoilt.model.state_dict().items())
    assert better.model is not spoilt.model
    assert better.fingerprint() != spoilt.fingerprint()
    assert all(parameter.grad is None for parameter in better.model.parameters())
    before, after = (examine(subject, digits.test(), [Answers()])[0] for subject in (spoilt, better))
    change = compared(before, after)
    assert change.summary["verdict"].value == "better"
    assert change.summary["difference"].value == pytest.approx(
        after.summary["accuracy"].value - before.summary["accuracy"].value
    )
    assert change.summary["mended"].value - change.summary["broken"].value == round(
        599 * change.summary["difference"].value
    )


def test_the_same_seed_gives_the_same_weights(spoilt):
    train = Subset(digits.train(), range(200))
    made = [retrained(spoilt, [train], recipe=Recipe(epochs=1, seed=seed)).model.state_dict() for seed in (1, 1, 2)]
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    assert not all(torch.equal(made[0][name], made[2][name]) for name in made[0])


def test_the_global_generator_is_left_alone(spoilt):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    retrained(spoilt, [Subset(digits.train(), range(50))], recipe=Recipe(epochs=1))
    assert torch.equal(torch.rand(3), expected)


def test_every_sample_of_every_source_once():
    sources = [Subset(digits.train(), range(7)), Subset(digits.test(), range(4))]
    batches = list(shuffled(sources, 3, np.random.default_rng(0)))
    assert sorted(name for batch in batches for name in batch.ids) == sorted([*sources[0].ids, *sources[1].ids])
    assert [len(batch) for batch in batches] == [3, 3, 3, 2]
    for batch in batches:
        images = {name: image for source in sources for name, image in _samples(source)}
        assert all(torch.equal(image, images[name]) for name, image in zip(batch.ids, batch.inputs, strict=True))


def _samples(source):
    batch = source.read(np.arange(len(source.ids)))
    return zip(batch.ids, batch.inputs, strict=True)


@pytest.mark.parametrize(
    ("task", "targets"),
    [("multilabel", np.ones((6, 2), dtype=int)), ("regression", np.ones((6, 2), dtype=np.float32))],
)
def test_other_tasks_learn_too(task, targets):
    torch.manual_seed(0)
    subject = Subject(nn.Linear(3, 2), task=task, scores="logits" if task == "multilabel" else None)
    source = ArraySource(np.ones((6, 3), dtype=np.float32), targets)
    better = retrained(subject, [source], recipe=Recipe(epochs=200, learning_rate=0.1, weight_decay=0))
    outputs = better.model(torch.ones(1, 3))
    assert (outputs > 1).all() if task == "multilabel" else torch.allclose(outputs, torch.ones(1, 2), atol=0.05)


def test_messages(spoilt):
    with pytest.raises(SubjectError, match="a black box cannot be trained"):
        retrained(Subject(lambda x: x, fingerprint="x"), [digits.train()])
    with pytest.raises(SubjectError, match="scores='logits', or a loss="):
        retrained(Subject(digits.model()), [digits.train()])
    with pytest.raises(ConfigError, match="epochs and batch_size ≥ 1, got 0"):
        Recipe(epochs=0)
    answers = examine(spoilt, Subset(digits.test(), range(5)), [Answers()])[0]
    others = examine(spoilt, Subset(digits.test(), range(1, 6)), [Answers()])[0]
    with pytest.raises(DataError, match="not of the same inputs"):
        compared(answers, others)


def test_equal_models_show_no_difference(spoilt):
    answers = examine(spoilt, digits.test(), [Answers()])[0]
    change = compared(answers, answers)
    assert change.summary["verdict"].value == "no difference shown"
    assert change.summary["p_value"].value == 1.0
    assert change.table.num_rows == 0
