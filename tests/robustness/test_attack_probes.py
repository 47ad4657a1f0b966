"""Robust accuracy: on a net whose answer is known, against the attacks by themselves, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject, examine
from weakspot.attacks import Attacked, ForeignAttack, Pgd, Square
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.report.drawings import figures
from weakspot.robustness import RobustAccuracy
from weakspot.robustness.room import steps
from weakspot.statistics import wilson_interval

PGD = {"attack": "pgd", "iterations": 5}
SQUARE = {"attack": "square", "queries": 30}


@pytest.fixture(scope="module")
def source():
    return limited(digits.test(), 60)


@pytest.fixture(scope="module")
def finding(subject, source):
    probe = RobustAccuracy(epsilons=(0.08, 0.03), attacks=(PGD, SQUARE), seed=2)
    return examine(subject, source, [probe], execution=ExecutionOptions(batch_size=23))[0]


def test_the_curve_of_a_linear_net_is_that_of_its_distances():
    """Two classes, so an input is robust within ε just if ε is below its distance to the border: exact, by hand."""
    rng = np.random.default_rng(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 2, bias=False))
    images, labels = (0.4 + 0.2 * rng.random((50, 1, 4, 4))).astype(np.float32), rng.integers(0, 2, 50)
    with torch.no_grad():
        logits = net(torch.from_numpy(images))
        away = (net[1].weight[1] - net[1].weight[0]).double()
    gap = (logits[:, 1] - logits[:, 0]).double().numpy() * (2 * labels - 1)
    distance = gap / float(away.abs().sum())
    epsilons = tuple(float(value) for value in np.quantile(distance[distance > 0], [0.3, 0.7]))
    subject = Subject(net, classes=2, scores="logits", bounds=(0, 1))
    finding = examine(subject, ArraySource(images, labels), [RobustAccuracy(epsilons=epsilons)])[0]
    expected = [(distance > epsilon).mean() for epsilon in (0.0, *epsilons)]
    assert finding.arrays["robust_accuracy"].tolist() == pytest.approx(expected)
    assert finding.summary["robust_accuracy"].value == pytest.approx(expected[-1]) and 0 < expected[2] < expected[1] < 1
    low, high = wilson_interval(round(expected[1] * 50), 50)
    assert finding.arrays["robust_accuracy_low"][1] == low and finding.arrays["robust_accuracy_high"][1] == high
    assert finding.summary["turned_without_gradients"].value == 0


def test_what_is_turned_is_what_the_attacks_by_themselves_turn(finding, subject, source):
    """One attack after the other over the whole set, without stopping: an input is robust if none turns it."""
    turned = {}
    for epsilon in (0.03, 0.08):
        sets = [Attacked(source, subject, attack, seed=2) for attack in
                (Pgd(epsilon=epsilon, iterations=5), Square(epsilon=epsilon, queries=30))]  # fmt: skip
        turned[epsilon] = np.any([made.outcome.columns["success"] for made in sets], axis=0)
    table = {row["id"]: row for row in finding.table.to_pylist()}
    expected = [(~turned[0.03]).mean(), (~(turned[0.03] | turned[0.08])).mean()]
    assert finding.arrays["robust_accuracy"][1:].tolist() == pytest.approx(expected) and 0 < expected[1] < expected[0]
    for name, within, beyond in zip(source.ids, turned[0.03], turned[0.08], strict=True):
        row = table[name]
        at = 0.0 if not row["correct"] else 0.03 if within else 0.08 if beyond else None
        assert row["robust"] == (at is None) and (np.isnan(row["turned_at"]) if at is None else row["turned_at"] == at)


def test_numbers_table_and_arrays_agree(finding):
    table, summary, arrays = finding.table.to_pydict(), finding.summary, finding.arrays
    assert summary["robust_accuracy"].value == np.mean(table["robust"]) == arrays["robust_accuracy"][2]
    assert summary["robust_accuracy_0.03"].value == arrays["robust_accuracy"][1]
    assert summary["accuracy"].value == np.mean(table["correct"]) == arrays["robust_accuracy"][0]
    assert summary["attacks"].value == "Pgd, Square" and summary["norm"].value == "L∞"
    fallen = -np.diff(arrays["robust_accuracy"])
    np.testing.assert_allclose(arrays["turned"].sum(1), fallen)
    first = np.array(table["turned_by"])[np.array(table["turned_at"]) == 0.03]
    assert (first == "Pgd").mean() * len(first) / 60 == pytest.approx(arrays["turned"][0, 0])
    assert not finding.outputs.problems(finding)
    drawn = figures(finding, list(digits.CLASSES))
    assert len(drawn) == 2 and not any(figure.problem for figure in drawn)


def test_a_black_box_is_examined_with_square(subject, source):
    model = subject.model

    def black_box(images):
        with torch.no_grad():
            return model(images)

    box = Subject(black_box, classes=digits.CLASSES, scores="logits", bounds=(0, 1))
    finding = examine(box, limited(source, 20), [RobustAccuracy(epsilons=(0.2,), attacks=(SQUARE,))])[0]
    assert finding.summary["robust_accuracy"].value < finding.summary["accuracy"].value


def test_a_function_of_another_package_is_an_attack(subject, source):
    def brighter(model, images, classes):
        assert model(images).shape == (len(images), 10)
        return (images + 0.05).clamp(0, 1)

    probe = RobustAccuracy(epsilons=(0.05,), attacks=(ForeignAttack(epsilon=0.05, call=brighter),))
    finding = examine(subject, source, [probe])[0]
    assert 0 < finding.summary["robust_accuracy"].value <= finding.summary["accuracy"].value
    far = RobustAccuracy(epsilons=(0.01,), attacks=(ForeignAttack(epsilon=0.01, call=brighter),))
    with pytest.raises(DataError, match=r"moved an input by 0\.05 in linf.*expected at most 0\.01"):
        examine(subject, source, [far])


def test_the_room_asks_for_it_on_request():
    asked = steps({"looks": 3, "attacks": {"epsilons": [0.01, 0.03], "attacks": "square"}})
    assert [step.probe.__name__ for step in asked] == ["NeighbourAccuracy", "RobustAccuracy"]
    assert asked[1].options["epsilons"] == (0.01, 0.03)
    with pytest.raises(ConfigError, match=r"attacks is 3: expected true, or options such as \{epsilons"):
        steps({"attacks": 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": ()}, r"epsilons is \[\]: expected numbers above 0, each once"),
        ({"epsilons": (0.1, 0.1)}, "expected numbers above 0, each once"),
        ({"epsilons": (0.0,)}, "expected numbers above 0"),
        ({"epsilons": (0.1,), "attacks": "strong"}, "attacks is 'strong': choose one of standard, square, pgd"),
        ({"epsilons": (0.1,), "attacks": ()}, "attacks is empty: give one or more"),
        ({"epsilons": (0.1,), "attacks": ({"attack": "jsma"},)}, "attack 'jsma' has no epsilon"),
        ({"epsilons": (0.1,), "norm": "l2", "attacks": ({"attack": "bim"},)}, "'bim' keeps to linf alone"),
        ({"epsilons": (0.1,), "attacks": ({"attack": "pgdd"},)}, "attack is 'pgdd': did you mean 'pgd'"),
        ({"epsilons": (0.1,), "norm": "l1"}, "norm is 'l1': choose one of linf, l2"),
        ({"epsilons": (0.1,), "attacks": (Pgd(epsilon=0.2),)}, "is not within 0.1 in linf"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        RobustAccuracy(**options)
