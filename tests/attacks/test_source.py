"""Attacked sets as data: made once, the same however they are made, and the model and the original as they were."""

import subprocess
import sys
import time
from dataclasses import FrozenInstanceError
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import everything
from weakspot.attacks import (
    ATTACKS,
    Attacked,
    Bim,
    CarliniWagner,
    Fgsm,
    GaussianNoise,
    Jsma,
    RelevantNoise,
    Together,
    attack_batch,
    jsma,
)
from weakspot.attacks.outcome import Outcome
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, DataError, RunError, SubjectError
from weakspot.core.source import Subset
from weakspot.core.subject import Subject
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.laws.benches import bench
from weakspot.repair.probes import Predictions

QUICK = [
    GaussianNoise(),
    RelevantNoise(),
    Fgsm(epsilon=0.1),
    Bim(epsilon=0.1, iterations=3),
    Jsma(gamma=0.2),
    CarliniWagner(search_steps=3, iterations=10, learning_rate=0.2),
]
EXACT = [
    GaussianNoise(sigma=1.0, share=0.3),
    Jsma(theta=1.0, gamma=0.4),
    Jsma(theta=-2.0, gamma=0.2, toward=None),
    Fgsm(epsilon=0.5, toward="random"),
    Bim(epsilon=1.0, step=0.5, iterations=2),
]


def named(attack):
    return type(attack).__name__


def whole(source):
    batch = source.read(np.arange(len(source.ids)))
    return batch.inputs.numpy(), batch.metadata


@pytest.mark.parametrize("attack", EXACT, ids=named)
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_the_set_is_the_same_to_the_last_bit_for_any_batch_size(attack, batch_size):
    """On whole-number weights and inputs, in double precision, so that sums do not round."""
    subject, data = exact_bench()
    expected, did = whole(Attacked(data, subject, attack, seed=5, batch_size=10))
    inputs, found = whole(Attacked(data, subject, attack, seed=5, batch_size=batch_size, part_size=9))
    assert (inputs == expected).all()
    assert all((found[name] == column).all() for name, column in did.items())
    assert (inputs != data.read(np.arange(len(data.ids))).inputs.numpy()).any()


def exact_bench():
    made = bench("classification")
    return made.subject, made.data["test"]


@pytest.mark.parametrize("attack", QUICK, ids=named)
def test_the_set_does_not_depend_on_batches_or_order(attack, digit_subject, some_digits):
    expected, _ = whole(Attacked(some_digits, digit_subject, attack, batch_size=37))
    order = np.random.default_rng(1).permutation(37)
    shuffled = Attacked(Subset(some_digits, order), digit_subject, attack, batch_size=5, part_size=8)
    inputs, _ = whole(shuffled)
    close = np.isclose(inputs, expected[order], atol=1e-4).all(axis=(1, 2, 3))
    assert close.mean() >= 0.97  # a sample on the edge of a step may fall either way


@pytest.mark.parametrize("attack", [GaussianNoise(), RelevantNoise(), Fgsm(epsilon=0.03)], ids=named)
def test_the_set_of_a_real_net_does_not_depend_on_batches(attack, svhn_net, svhn):
    subject = Subject(svhn_net, classes=10, scores="logits", bounds=(0, 1))
    data = ArraySource(svhn[0][:12], svhn[1][:12], channels="last")
    one, other = (whole(Attacked(data, subject, attack, batch_size=size)) for size in (12, 5))
    assert np.isclose(one[0], other[0], atol=1e-5).mean() > 0.999
    assert (one[1]["attack_success"] == other[1]["attack_success"]).mean() > 0.9


@pytest.mark.parametrize("attack", QUICK, ids=named)
def test_bounds_hold_and_the_outcome_says_what_was_done(attack, digit_subject, some_digits):
    original = some_digits.read(np.arange(37))
    made = Attacked(some_digits, digit_subject, attack)
    inputs, did = whole(made)
    assert inputs.min() >= 0 and inputs.max() <= 1 and inputs.dtype == np.float32
    difference = (inputs.astype(float) - original.inputs.numpy()).reshape(37, -1)
    np.testing.assert_allclose(did["attack_l2"], np.linalg.norm(difference, axis=1))
    np.testing.assert_allclose(did["attack_linf"], np.abs(difference).max(1))
    assert (did["attack_l0"] == (difference != 0).sum(1)).all()
    answered = digit_subject.model(torch.from_numpy(inputs)).argmax(1).numpy()
    if getattr(attack, "toward", None) is None:
        assert (did["attack_success"] == (answered != original.targets.numpy())).all()
    assert made.ids == some_digits.ids
    assert torch.equal(made.read(np.arange(37)).targets, original.targets)


def test_success_is_counted_against_what_was_wrong_before(digit_subject, some_digits):
    made = Attacked(some_digits, digit_subject, Fgsm(epsilon=0.05))
    columns, summary = made.outcome.columns, made.outcome.summary()
    assert summary["success"].value == columns["success"].mean()
    assert summary["success"].low < summary["success"].value < summary["success"].high
    turned = columns["success"] & ~columns["before"]
    assert summary["turned"].value == pytest.approx(turned.sum() / (~columns["before"]).sum())
    assert summary["l2"].value == pytest.approx(columns["l2"][turned].mean())
    finding = made.outcome.finding("attack_fgsm")
    assert finding.table.column_names == ["id", "before", "success", "l0", "l2", "linf"]
    assert finding.table.column("id").to_pylist() == list(some_digits.ids)


@pytest.mark.parametrize(("count", "known"), [(1, False), (4, False), (5, True)])
def test_the_distortion_of_few_samples_has_no_interval(count, known):
    values = np.linspace(1, 2, count)
    names = ("l0", "l2", "linf", "loss_before", "loss_after")
    told = Outcome([f"s{n}" for n in range(count)], dict.fromkeys(names, values)).summary()["l2"]
    assert told.value == pytest.approx(values.mean())
    assert (told.low is not None and told.low < told.high) == known
    assert ("no interval: it takes 5 samples" in told.about) == (not known)


def test_noise_lies_on_two_percent_of_the_pixels_and_relevance_chooses_them():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 18 * 18, 2)).eval()
    subject = Subject(net, scores="logits", bounds=(0, 1))
    data = ArraySource(np.full((6, 3, 20, 20), 0.5, dtype=np.float32), np.zeros(6, dtype=int))
    for attack in (GaussianNoise(), RelevantNoise()):
        inputs, did = whole(Attacked(data, subject, attack))
        assert ((inputs != 0.5).any(axis=1).sum(axis=(1, 2)) == 8).all()  # 2 % of 400
        assert (did["attack_l0"] == 24).all()
    spread = whole(Attacked(data, subject, GaussianNoise(sigma=0.1, share=1.0)))[0] - 0.5
    assert spread.std() == pytest.approx(0.1, rel=0.03) and abs(spread.mean()) < 0.01


def test_relevant_noise_meets_what_decides():
    """Only one corner of the image counts, so all the noise goes there."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))
    weight = torch.zeros(2, 8, 8)
    weight[1, :2, :2] = 1.0
    net[1].weight = nn.Parameter(weight.flatten(1))
    data = ArraySource(np.full((3, 1, 8, 8), 0.5, dtype=np.float32), np.ones(3, dtype=int))
    inputs, _ = whole(Attacked(data, Subject(net, bounds=(0, 1)), RelevantNoise(share=4 / 64)))
    changed = (inputs != 0.5)[:, 0]
    assert changed[:, :2, :2].all() and changed.sum() == 12


def test_chance_is_that_of_seed_and_id_alone(digit_subject, some_digits):
    first, again, other = (
        whole(Attacked(some_digits, digit_subject, GaussianNoise(), seed=seed))[0] for seed in (0, 0, 1)
    )
    assert (first == again).all() and (first != other).any()
    renamed = ArraySource(some_digits.read(np.arange(37)).inputs.numpy(), np.zeros(37, int))
    assert (whole(Attacked(renamed, digit_subject, GaussianNoise()))[0] != first).any()


@pytest.mark.parametrize("attack", QUICK, ids=named)
def test_the_model_comes_back_as_it_was(attack, digit_net, some_digits):
    digit_net.train()
    before = everything(digit_net)
    subject = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))
    attack_batch(subject, attack, some_digits.read(np.arange(5)))
    assert everything(digit_net) == before
    digit_net.eval()


def test_no_gradient_reaches_the_parameters(digit_net, some_digits):
    subject = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))
    digit_net.zero_grad(set_to_none=True)
    digit_net[0].weight.grad = torch.ones_like(digit_net[0].weight)
    attack_batch(subject, Bim(epsilon=0.1), some_digits.read(np.arange(5)))
    assert (digit_net[0].weight.grad == 1).all()
    assert all(parameter.grad is None for parameter in list(digit_net.parameters())[1:])
    digit_net[0].weight.grad = None


def test_it_works_where_gradients_are_off(digit_subject, some_digits):
    expected = whole(Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1)))[0]
    with torch.no_grad():
        assert (whole(Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1)))[0] == expected).all()
    with torch.inference_mode():
        assert (whole(Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1)))[0] == expected).all()


def test_any_examination_takes_it(digit_subject, some_digits):
    made = Attacked(some_digits, digit_subject, Fgsm(epsilon=0.2))
    (finding,) = examine(digit_subject, made, [Predictions()])
    wrong = 1 - np.mean(finding.table.column("correct").to_numpy(zero_copy_only=False))
    assert wrong == pytest.approx(made.outcome.columns["success"].mean())


def test_preprocessing_is_part_of_what_is_attacked(digit_net, some_digits):
    """Inputs in 0 … 255 that the subject scales: the same attack, in the inputs' own units."""
    plain = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))
    batch = some_digits.read(np.arange(37))
    large = ArraySource(batch.inputs.numpy() * 256, batch.targets.numpy(), ids=batch.ids)
    scaled = Subject(digit_net, classes=10, scores="logits", bounds=(0, 256), preprocess=lambda x: x / 256)
    expected = whole(Attacked(some_digits, plain, Fgsm(epsilon=0.125)))[0]
    np.testing.assert_allclose(whole(Attacked(large, scaled, Fgsm(epsilon=32)))[0] / 256, expected, atol=1e-6)


def test_probabilities_are_attacked_through_their_logarithm(digit_net, some_digits):
    logits = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))
    softmax = Subject(nn.Sequential(digit_net, nn.Softmax(1)), classes=10, scores="probabilities", bounds=(0, 1))
    for attack in (Fgsm(epsilon=0.05), CarliniWagner(search_steps=2, iterations=10, learning_rate=0.2)):
        expected, found = (whole(Attacked(some_digits, subject, attack))[0] for subject in (logits, softmax))
        assert np.isclose(found, expected, atol=1e-3).mean() > 0.95
    for on in ("logits", "one_logit"):
        with pytest.raises(ConfigError, match="on='probabilities'"):
            Attacked(some_digits, softmax, Jsma(on=on))
    likely = Jsma(on="probabilities", gamma=0.2)
    expected, found = (whole(Attacked(some_digits, subject, likely))[0] for subject in (logits, softmax))
    assert np.isclose(found, expected, atol=1e-3).mean() > 0.95


def test_a_subject_is_attacked_in_the_ways_it_runs(digit_net, digit_subject, some_digits):
    quick = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1), precision="bf16")
    exact, rough = (Attacked(some_digits, subject, Bim(epsilon=0.1)) for subject in (digit_subject, quick))
    assert 0.9 < np.isclose(whole(rough)[0], whole(exact)[0], atol=1e-4).mean() < 1
    with quick.borrowed(), torch.no_grad():
        answers = quick.quick(compiled=False)(torch.from_numpy(whole(rough)[0])).argmax(1)
    targets = some_digits.read(np.arange(37)).targets
    assert (rough.outcome.columns["success"] == (answers != targets).numpy()).all()
    noisy = [whole(Attacked(some_digits, subject, RelevantNoise()))[0] for subject in (digit_subject, quick)]
    assert (noisy[0] == noisy[1]).all()  # relevance is always that of float32


def test_jsma_goes_by_the_slopes_that_it_is_asked_for(digit_net, digit_subject, some_digits):
    batch = some_digits.read(np.arange(37))
    wanted = torch.full_like(batch.targets, 3)
    made = {}
    for on, forward in {
        "logits": digit_net,
        "probabilities": lambda x: digit_net(x).log_softmax(1),
        "one_logit": digit_net,
    }.items():
        made[on] = whole(Attacked(some_digits, digit_subject, Jsma(on=on, toward=3)))[0]
        how = {"theta": 1.0, "gamma": 0.145, "bounds": (0, 1), "others": on == "logits"}
        assert (made[on] == jsma(forward, batch.inputs, wanted, **how).numpy()).all()
    assert not any(np.array_equal(made[a], made[b]) for a, b in combinations(made, 2))


@pytest.mark.parametrize("task", ["multilabel", "regression", "keypoints", "segmentation"])
def test_the_sign_methods_raise_the_loss_of_every_task(task):
    made = bench(task)
    source = made.data["test"]
    for attack in (Fgsm(epsilon=0.5), Bim(epsilon=0.5, iterations=2)):
        columns = Attacked(source, made.subject, attack).outcome.columns
        if task == "multilabel":
            assert columns["success"].mean() >= columns["before"].mean()
        else:
            assert columns["loss_after"].mean() > columns["loss_before"].mean()
            assert {"loss before", "loss after", "l2"} <= set(Attacked(source, made.subject, attack).outcome.summary())


@pytest.mark.parametrize("toward", [3, "random", "least_likely", "runner_up"])
def test_an_aim_is_reached(toward, digit_subject, some_digits):
    attack = CarliniWagner(toward=toward, search_steps=2, initial_constant=10.0, learning_rate=0.1)
    made = Attacked(Subset(some_digits, range(12)), digit_subject, attack)
    assert made.outcome.columns["success"].mean() > 0.8
    if toward == 3:
        answered = digit_subject.model(torch.from_numpy(whole(made)[0])).argmax(1).numpy()
        assert (made.outcome.columns["success"] == (answered == 3)).all()


def test_without_targets_the_models_own_answers_are_left(digit_subject, some_digits):
    bare = ArraySource(some_digits.read(np.arange(37)).inputs.numpy())
    with pytest.raises(ConfigError, match="against='prediction'"):
        Attacked(bare, digit_subject, Fgsm(epsilon=0.1)).read(np.arange(1))
    columns = Attacked(bare, digit_subject, Fgsm(epsilon=0.1), against="prediction").outcome.columns
    assert not columns["before"].any() and columns["success"].any()


# what is kept


def test_a_folder_is_made_once_and_found_again(tmp_path, digit_net, some_digits):
    calls = []

    def counted(model, inputs):
        calls.append(len(inputs))
        return model(inputs)

    def made():
        subject = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1), forward=counted)
        return Attacked(some_digits, subject, Fgsm(epsilon=0.1), folder=tmp_path, part_size=10)

    inputs, did = whole(made())
    calls.clear()
    again, same = whole(made())
    assert sum(calls) <= 1  # the sample that shows how many classes there are
    assert (again == inputs).all() and all((same[name] == column).all() for name, column in did.items())
    assert len(list(tmp_path.iterdir())) == 1
    other = Attacked(some_digits, made()._subject, Fgsm(epsilon=0.2), folder=tmp_path)
    assert (whole(other)[0] != inputs).any() and len(list(tmp_path.iterdir())) == 2


def test_an_interrupted_set_goes_on_where_it_stopped(tmp_path, digit_subject, some_digits):
    class Stops:
        def __init__(self, after):
            self.left, self.begun = after, None

        def begin(self, what, *, total, done=0):
            self.begun = (what, total, done)

        def advance(self, samples):
            self.left -= samples
            if self.left <= 0:
                raise KeyboardInterrupt

        def tell(self, message):
            pass

        def end(self):
            pass

    how = {"folder": tmp_path, "part_size": 5, "batch_size": 5}
    with pytest.raises(KeyboardInterrupt):
        Attacked(some_digits, digit_subject, Bim(epsilon=0.1), progress=Stops(18), **how).read(np.arange(1))
    watched = Stops(10**6)
    made = Attacked(some_digits, digit_subject, Bim(epsilon=0.1), progress=watched, **how)
    inputs, did = whole(made)
    assert watched.begun == ("attacking: Bim", 37, 15)
    expected, same = whole(Attacked(some_digits, digit_subject, Bim(epsilon=0.1), batch_size=5, part_size=5))
    assert (inputs == expected).all() and all((did[name] == column).all() for name, column in same.items())


SCRIPT = """
import sys, time
from pathlib import Path
from weakspot.attacks import Attacked, Fgsm
from weakspot.core.subject import Subject
from weakspot.data import digits

class Stuck:
    def begin(self, what, *, total, done=0): pass
    def advance(self, samples):
        if len(list(Path(sys.argv[1]).glob("*/part-*"))) >= 3:
            time.sleep(600)
    def tell(self, message): pass
    def end(self): pass

subject = Subject(digits.model(), classes=10, scores="logits", bounds=(0, 1))
Attacked(digits.test(), subject, Fgsm(epsilon=0.1), folder=Path(sys.argv[1]), part_size=50, progress=Stuck()).outcome
"""


def test_a_killed_set_goes_on(tmp_path, digit_subject):
    killed = subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path])
    while len(list(tmp_path.glob("*/part-*"))) < 3 and killed.poll() is None:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    there = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/part-*/inputs.npy")}
    assert 3 <= len(there) < 12
    attack = Fgsm(epsilon=0.1)
    inputs, _ = whole(Attacked(digits.test(), digit_subject, attack, folder=tmp_path, part_size=50))
    assert (inputs == whole(Attacked(digits.test(), digit_subject, attack))[0]).mean() > 0.999
    assert {path: path.stat().st_mtime_ns for path in there} == there and len(list(tmp_path.glob("*/part-*"))) == 12
    assert not list(tmp_path.glob("*/.*.partial"))


def test_a_damaged_part_is_named(tmp_path, digit_subject, some_digits):
    made = Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1), folder=tmp_path)
    made.read(np.arange(1))
    (stored,) = tmp_path.glob("*/part-000000/inputs.npy")
    stored.write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"part-000000 is damaged.*delete that folder"):
        made.read(np.arange(1))


def test_a_large_set_wants_a_folder(monkeypatch, digit_subject, some_digits):
    monkeypatch.setattr("weakspot.attacks.source._IN_MEMORY", 1000)
    with pytest.raises(ConfigError, match="give folder="):
        Attacked(some_digits, digit_subject, GaussianNoise()).read(np.arange(1))


def test_the_fingerprint_covers_all_that_matters(digit_net, digit_subject, some_digits):
    def print_of(source=some_digits, subject=digit_subject, attack=None, **how):
        return Attacked(source, subject, attack or Fgsm(epsilon=0.1), **how).fingerprint()

    other_model = Subject(nn.Sequential(digit_net), classes=10, scores="logits", bounds=(0, 1))
    others = [
        print_of(source=Subset(some_digits, range(36))),
        print_of(subject=other_model),
        print_of(attack=Fgsm(epsilon=0.2)),
        print_of(attack=Bim(epsilon=0.1)),
        print_of(seed=1),
        print_of(against="prediction"),
    ]
    assert len({print_of(), *others}) == 7
    made = Attacked(some_digits, digit_subject, Fgsm(epsilon=0.1), batch_size=3, part_size=2)
    before = made.fingerprint()
    made.read(np.arange(1))
    assert made.fingerprint() == before == print_of()


# several sets as one


def test_together(digit_subject, some_digits):
    made = Attacked(some_digits, digit_subject, GaussianNoise())
    both = Together({"original": some_digits, "noise": made})
    assert len(both.ids) == 74 == len(set(both.ids)) and both.ids[37] == f"noise/{some_digits.ids[0]}"
    batch = both.read(np.array([40, 0, 73, 1]))
    assert batch.ids == tuple(both.ids[i] for i in (40, 0, 73, 1))
    assert torch.equal(batch.inputs[0], made.read(np.array([3])).inputs[0])
    assert torch.equal(batch.inputs[3], some_digits.read(np.array([1])).inputs[0])
    assert batch.metadata["set"].tolist() == ["noise", "original", "noise", "original"]
    assert set(batch.metadata) == {"set"}
    (finding,) = examine(digit_subject, both, [Predictions()])
    assert finding.table.num_rows == 74
    with pytest.raises(ConfigError, match="expected one or more"):
        Together({})


# what is refused


@pytest.mark.parametrize("attack", QUICK, ids=named)
def test_bounds_are_required(attack, digit_net, some_digits):
    with pytest.raises(ConfigError, match="give it bounds="):
        Attacked(some_digits, Subject(digit_net, scores="logits"), attack)


@pytest.mark.parametrize("attack", QUICK, ids=named)
def test_a_black_box_is_refused_where_the_inside_is_needed(attack, digit_net, some_digits):
    box = Subject(digit_net.forward, classes=10, scores="logits", bounds=(0, 1), fingerprint="box 1")
    if isinstance(attack, GaussianNoise):
        assert "success" in Attacked(some_digits, box, attack).outcome.columns
    else:
        with pytest.raises(SubjectError, match="black box does not show"):
            Attacked(some_digits, box, attack)


@pytest.mark.parametrize("attack", [Jsma(), CarliniWagner()], ids=named)
def test_attacks_on_classes_refuse_other_tasks(attack):
    made = bench("regression")
    with pytest.raises(ConfigError, match="defined for classification, the subject's task is regression"):
        Attacked(made.data["test"], made.subject, attack)


def test_a_segmentation_has_no_relevant_pixels_and_no_class_to_reach():
    made = bench("segmentation")
    with pytest.raises(ConfigError, match="RelevantNoise is defined for"):
        Attacked(made.data["test"], made.subject, RelevantNoise())
    with pytest.raises(ConfigError, match="toward= names a class"):
        Attacked(made.data["test"], made.subject, Fgsm(epsilon=0.1, toward=1))
    with pytest.raises(ConfigError, match="stop_early waits for a class to turn"):
        Attacked(made.data["test"], made.subject, Bim(epsilon=0.1, stop_early=True))


def test_what_the_outputs_are_must_be_said(digit_net, some_digits):
    with pytest.raises(SubjectError, match="scores='logits'"):
        Attacked(some_digits, Subject(digit_net, bounds=(0, 1)), Fgsm(epsilon=0.1)).read(np.arange(1))


def test_inputs_outside_the_bounds_are_refused_by_name(digit_net):
    data = ArraySource(np.full((2, 1, 8, 8), 3.0, dtype=np.float32), np.zeros(2, int), ids=["fine", "coarse"])
    with pytest.raises(DataError, match=r"'fine' has values from 3 to 3, outside the subject's bounds \(0.0, 1.0\)"):
        Attacked(data, Subject(digit_net, scores="logits", bounds=(0, 1)), GaussianNoise()).read(np.arange(1))


def test_a_bad_target_is_refused_by_name(digit_subject):
    data = ArraySource(np.zeros((2, 1, 8, 8), dtype=np.float32), np.array([1, 12]), ids=["good", "bad"])
    with pytest.raises(DataError, match="'bad' needs a class number from 0 to 9"):
        Attacked(data, digit_subject, Fgsm(epsilon=0.1)).read(np.arange(1))


def test_a_model_without_gradients_is_refused(some_digits):
    class Detached(nn.Module):
        def forward(self, x):
            return x.detach().flatten(1)[:, :10]

    subject = Subject(Detached(), classes=10, scores="logits", bounds=(0, 1))
    with pytest.raises(SubjectError, match="must not run under"):
        Attacked(some_digits, subject, Fgsm(epsilon=0.1)).read(np.arange(1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fgsm(epsilon=0), "epsilon is 0, expected more than 0"),
        (lambda: Bim(epsilon=0.1, iterations=0), "iterations is 0"),
        (lambda: GaussianNoise(share=1.5), "share is 1.5, expected a share"),
        (lambda: Jsma(theta=0), "theta is 0 and changes nothing"),
        (lambda: CarliniWagner(confidence=-1), "confidence is -1, expected 0 or more"),
    ],
)
def test_options_are_checked(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_an_attack_is_frozen_and_every_option_is_documented():
    from dataclasses import fields

    with pytest.raises(FrozenInstanceError):
        GaussianNoise().sigma = 1.0
    for kind in ATTACKS.values():
        for field in fields(kind):
            assert f"{field.name}:" in kind.__doc__ or f"{field.name}, " in kind.__doc__, (kind, field.name)
