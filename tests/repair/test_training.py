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
from weakspot.repair import Batches, Predictions, Recipe, Repeated, VariedSource, compared, held_out, retrained
from weakspot.repair.training import default_loss, shuffled


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
    before, after = (examine(subject, digits.test(), [Predictions()])[0] for subject in (spoilt, better))
    change = compared(before, after)
    assert change.summary["verdict"].value == "better"
    assert change.summary["difference"].value == pytest.approx(
        after.summary["accuracy"].value - before.summary["accuracy"].value
    )
    assert change.summary["fixed"].value - change.summary["broken"].value == round(
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


class Noisy(nn.Sequential):
    """With dropout and batch norm: both draw or keep something besides the weights."""

    def __init__(self):
        super().__init__(
            nn.Flatten(), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 10)
        )


def noisy_subject():
    torch.manual_seed(0)
    return Subject(Noisy(), classes=digits.CLASSES, scores="logits")


class KilledError(Exception):
    pass


class StopsAfter:
    """A progress that breaks off after some samples, as Ctrl-C does."""

    def __init__(self, samples):
        self.left, self.begun = samples, []

    def begin(self, what, *, total, done=0):
        self.begun.append((what, total, done))

    def advance(self, samples):
        self.left -= samples
        if self.left < 0:
            raise KilledError

    def tell(self, message):
        pass

    def end(self):
        pass


@pytest.mark.parametrize("judged", [False, True])
def test_interrupted_and_continued_ends_with_the_same_weights(tmp_path, judged):
    subject = noisy_subject()
    rest, part = held_out(Subset(digits.train(), range(300)), 0.2)
    how = {"recipe": Recipe(epochs=5, learning_rate=0.05, batch_size=32), "validation": part if judged else None}
    whole = retrained(subject, [rest], **how).model.state_dict()
    stopped = StopsAfter(3 * 240 + 100)
    with pytest.raises(KilledError):
        retrained(subject, [rest], **how, checkpoints=tmp_path, progress=stopped)
    [kept] = tmp_path.iterdir()
    assert {path.suffix for path in kept.iterdir()} == {".safetensors", ".json"}
    going_on = StopsAfter(2 * 240)
    after = retrained(subject, [rest], **how, checkpoints=tmp_path, progress=going_on).model.state_dict()
    assert going_on.begun == [("retraining", 5 * 240, 3 * 240)]
    assert whole.keys() == after.keys()
    assert all(torch.equal(whole[name], after[name]) for name in whole)
    asked_again = StopsAfter(0)  # nothing is left to do
    assert torch.equal(
        retrained(subject, [rest], **how, checkpoints=tmp_path, progress=asked_again).model[1].weight, whole["1.weight"]
    )


def test_another_training_does_not_go_on_with_what_was_kept(tmp_path):
    subject, train = noisy_subject(), Subset(digits.train(), range(64))
    for seed in (0, 1):
        retrained(subject, [train], recipe=Recipe(epochs=1, seed=seed), checkpoints=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def validation_loss(subject, source):
    batch = source.read(np.arange(len(source.ids)))
    with torch.no_grad(), subject.borrowed() as forward:
        return float(default_loss(subject)(forward(batch.inputs), batch.targets))


def test_early_stop_keeps_the_best_weights():
    """On labels that are noise, what is learnt of them hurts on others: the loss falls, then rises."""
    subject = noisy_subject()
    source = Subset(digits.train(), range(120))
    rng = np.random.default_rng(0)
    batch = source.read(np.arange(120))
    noise = ArraySource(batch.inputs.numpy(), rng.integers(0, 10, 120), ids=source.ids)
    rest, part = held_out(noise, 0.4)
    recipe = Recipe(epochs=30, learning_rate=0.2, patience=2, batch_size=24, weight_decay=0)
    told = StopsAfter(10**9)
    better = retrained(subject, [rest], recipe=recipe, validation=part, progress=told)
    losses = [
        validation_loss(retrained(subject, [rest], recipe=Recipe(**{**vars(recipe), "epochs": epochs})), part)
        for epochs in range(1, 8)
    ]
    best = int(np.argmin(losses))
    assert best < 5
    assert validation_loss(better, part) == pytest.approx(losses[best], rel=1e-5)
    assert 10**9 - told.left == (best + 1 + 2) * len(rest.ids)  # two more epochs, then no more


class Shifted:
    """A variation that changes every pixel."""

    def images(self, inputs, ids, number):
        return inputs + number


def test_what_is_judged_by_must_not_be_trained_on():
    subject, source = noisy_subject(), Subset(digits.train(), range(20))
    rest, part = held_out(source, 0.5)
    for training in (source, Repeated(source, [0, 0, *range(20)]), VariedSource(source, Shifted())):
        with pytest.raises(DataError, match="and others are trained on and judged by: hold them out"):
            retrained(subject, [training], validation=part)
    retrained(subject, [rest, VariedSource(rest, Shifted(), copies=1)], validation=part, recipe=Recipe(epochs=1))


def test_splits_may_number_their_samples_alike():
    batches = [source.read(np.arange(20)) for source in (digits.train(), digits.test())]
    train, validation = (ArraySource(batch.inputs.numpy(), batch.targets.numpy()) for batch in batches)
    assert train.ids == validation.ids
    retrained(noisy_subject(), [train], validation=validation, recipe=Recipe(epochs=1))


def test_a_training_function_of_ones_own():
    subject, source = noisy_subject(), Subset(digits.train(), range(50))
    rest, part = held_out(source, 0.2)
    seen = []

    def train(model, batches, *, validation, recipe):
        assert isinstance(batches, Batches)
        for _ in range(recipe.epochs):
            drawn = [(inputs, targets) for inputs, targets in batches]
            assert len(drawn) == len(batches) == 3
            seen.append([value for inputs, _ in drawn for value in inputs.sum((1, 2, 3)).tolist()])
        assert sum(len(targets) for _, targets in validation) == 10
        with torch.no_grad():
            model[1].bias.fill_(3.0)

    better = retrained(subject, [rest], recipe=Recipe(epochs=2, batch_size=16), validation=part, train=train)
    assert (better.model[1].bias == 3).all()
    assert not (subject.model[1].bias == 3).any()
    assert seen[0] != seen[1]
    assert sorted(seen[0]) == sorted(seen[1])
    with pytest.raises(SubjectError, match="returned a str: expected the trained model, or nothing"):
        retrained(subject, [rest], train=lambda *given, **more: "done")
    with pytest.raises(SubjectError, match="returned one with other weights"):
        retrained(subject, [rest], train=lambda *given, **more: nn.Linear(2, 2))


def test_a_training_function_is_given_what_the_model_is_given():
    net = noisy_subject().model
    subject = Subject(net, scores="logits", preprocess=lambda inputs: 2 * inputs)
    source = Subset(digits.train(), range(8))
    given = []
    retrained(subject, [source], train=lambda model, batches, **more: given.extend(batches))
    assert given[0][0].sum() == pytest.approx(2 * float(source.read(np.arange(8)).inputs.sum()))


def test_one_sample_is_never_left_alone_in_a_batch():
    """Batch norm cannot learn from one."""
    batches = shuffled([Subset(digits.train(), range(9))], 4, np.random.default_rng(0))
    assert [len(batch) for batch in batches] == [4, 5]
    retrained(noisy_subject(), [Subset(digits.train(), range(9))], recipe=Recipe(epochs=1, batch_size=4))


def test_a_training_that_diverges_is_stopped(spoilt):
    with pytest.raises(SubjectError, match=r"the loss is (inf|nan) in epoch \d+: .* lower the learning rate"):
        retrained(spoilt, [Subset(digits.train(), range(200))], recipe=Recipe(epochs=20, learning_rate=1e6))
    frozen = copy.deepcopy(spoilt.model).requires_grad_(False)
    with pytest.raises(SubjectError, match="no parameter of the model can be trained"):
        retrained(spoilt.with_model(frozen), [digits.train()])


def test_messages(spoilt):
    with pytest.raises(SubjectError, match="a black box cannot be trained"):
        retrained(Subject(lambda x: x, fingerprint="x"), [digits.train()])
    with pytest.raises(SubjectError, match="scores='logits', or a loss="):
        retrained(Subject(digits.model()), [digits.train()])
    with pytest.raises(ConfigError, match="epochs and batch_size ≥ 1, got 0"):
        Recipe(epochs=0)
    with pytest.raises(ConfigError, match="learning_rate > 0, got 3 and 0"):
        Recipe(learning_rate=0)
    answers = examine(spoilt, Subset(digits.test(), range(5)), [Predictions()])[0]
    others = examine(spoilt, Subset(digits.test(), range(1, 6)), [Predictions()])[0]
    with pytest.raises(DataError, match="not of the same inputs"):
        compared(answers, others)


def test_equal_models_show_no_difference(spoilt):
    answers = examine(spoilt, digits.test(), [Predictions()])[0]
    change = compared(answers, answers)
    assert change.summary["verdict"].value == "no difference shown"
    assert change.summary["p_value"].value == 1.0
    assert change.table.num_rows == 0
