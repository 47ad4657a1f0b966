"""The room's probes on small networks, against the plain references, and the room's steps as a plan."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from tests.references import classes as reference
from weakspot import ExecutionOptions, Finding, Plan, Run, Subject, examine
from weakspot.classes.coverage_probes import ClassCoverage, ClassCriteria, ClassRanges
from weakspot.classes.group_probes import GroupFairness
from weakspot.classes.probes import ClassPairs, ImagesToLabel, OutputPairs
from weakspot.classes.room import steps
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.data.sources import ArraySource
from weakspot.laws import LAWS, Trial

CLASSES = ("cat", "dog", "car", "bus")
QUICK = ExecutionOptions(batch_size=32, shard_size=64, workers=0)


class Net(nn.Module):
    """Two convolutions and a linear layer: 14 neurons."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 6, 3), nn.Linear(6, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.second(torch.relu(self.first(images)))).mean((2, 3))
        return self.last(hidden)


@pytest.fixture(scope="module")
def net() -> Net:
    made = Net().eval()
    with torch.no_grad():  # answers spread over all classes
        made.last.bias -= made(torch.from_numpy(images(400))).mean(0)
    return made


def images(count: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.random((count, 1, 8, 8)).astype(np.float32) * generator.random((count, 1, 1, 1)).astype(np.float32)


@pytest.fixture(scope="module")
def data(net: Net) -> ArraySource:
    inputs = images(200)
    with torch.no_grad():
        predicted = net(torch.from_numpy(inputs)).argmax(1).numpy()
    wrong = np.random.default_rng(1).random(200) < 0.3
    labels = np.where(wrong, (predicted + 1) % 4, predicted)  # one direction of error only
    return ArraySource(inputs, labels, metadata={"light": np.where(inputs.mean((1, 2, 3)) > 0.25, "day", "night")})


@pytest.fixture(scope="module")
def subject(net: Net) -> Subject:
    return Subject(net, classes=CLASSES, scores="logits")


def plain_activations(net: Net, inputs: torch.Tensor, threshold: float) -> tuple[list[list[bool]], torch.Tensor]:
    """Active neurons by hand: each layer's output scaled per image, spatial mean above the threshold."""
    with torch.no_grad():
        first = net.first(inputs)
        second = net.second(torch.relu(first))
        last = net(inputs)
    rows = []
    for layers in zip(first, second, last, strict=True):
        row = []
        for values in layers:
            scaled = (values - values.min()) / (values.max() - values.min())
            row += (scaled.flatten(1).mean(1) if scaled.ndim == 3 else scaled) > threshold
        rows.append([bool(active) for active in row])
    return rows, last


def test_pairs_equal_the_plain_definition(net, subject, data) -> None:
    finding = examine(subject, data, [ClassPairs(least_images=2, threshold=0.4)], execution=QUICK)[0]
    activated, outputs = plain_activations(net, torch.from_numpy(images(200)), 0.4)
    predicted = [{int(c)} for c in outputs.argmax(1)]
    probability = reference.activation_probability(activated, predicted, 4)
    distance = np.array(reference.activation_distance(probability, normalise=False))
    assert finding.arrays["classes"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(finding.arrays["distance"], distance, rtol=1e-12)
    assert finding.arrays["neural_paths"].tolist() == reference.neural_paths(activated, predicted, 4)
    pairs = distance[np.triu_indices(4, 1)]
    expected = reference.average_bias(distance.tolist(), limit=pairs.mean() - pairs.std())
    np.testing.assert_allclose(finding.arrays["average_bias"], expected, rtol=1e-12)
    assert finding.summary["confused"].value == (pairs < pairs.mean() - pairs.std()).sum()


def test_table_is_sorted_named_and_holds_the_confusion_of_both_directions(subject, data) -> None:
    finding = examine(subject, data, [ClassPairs(least_images=2)], execution=QUICK)[0]
    rows = finding.table.to_pylist()
    assert [row["distance"] for row in rows] == sorted(row["distance"] for row in rows)
    assert len(rows) == 6
    confusion, number = finding.arrays["confusion"], {name: place for place, name in enumerate(CLASSES)}
    for row in rows:
        a, b = number[row["first"]], number[row["second"]]
        assert row["first_taken_for_second"] == confusion[a, b]
        assert row["second_taken_for_first"] == confusion[b, a]
        assert row["low"] <= row["corrected_distance"] <= row["high"]
    # labels are one class above the wrong predictions: dog is taken for cat, never cat for dog
    assert confusion[1, 0] > 0.1
    assert confusion[0, 1] == 0


def test_examples_are_predicted_as_one_class_and_nearest_to_the_other(net, subject, data) -> None:
    row = examine(subject, data, [ClassPairs(least_images=2)], execution=QUICK)[0].table.to_pylist()[0]
    with torch.no_grad():
        outputs = net(torch.from_numpy(images(200))).numpy()
    a, b = CLASSES.index(row["first"]), CLASSES.index(row["second"])
    own = np.flatnonzero(outputs.argmax(1) == a)
    assert row["first_like_second"] == f"{own[outputs[own, b].argmax()]:03d}"


def test_without_labels_there_is_a_report_and_no_truth(subject) -> None:
    finding = examine(subject, ArraySource(images(200)), [ClassPairs(least_images=2)], execution=QUICK)[0]
    assert finding.summary["confused"].value > 0
    assert not {"confusion_precision", "bias_precision"} & finding.summary.keys()
    assert "first_taken_for_second" not in finding.table.column_names
    assert set(finding.media) == {f"{a} like {b}" for a, b in _both_ways(finding)}


def test_labels_say_how_many_of_the_reported_pairs_are_true(subject, data) -> None:
    told = examine(subject, data, [ClassPairs(least_images=2, replicates=0)], execution=QUICK)[0]
    rows, summary = told.table.to_pylist(), told.summary
    for reported, truly, what in (("confused", "truly_confused", "confusion"), ("biased", "truly_biased", "bias")):
        both = sum(row[reported] and row[truly] for row in rows)
        assert summary[f"{what}_true_positives"].value == both
        assert summary[f"{what}_missed"].value == sum(row[truly] and not row[reported] for row in rows)
        assert f"the labels confirm {both} of them" in summary[reported].about


def test_true_confusion_needs_as_many_images_as_asked_for(subject, data) -> None:
    labels = data.read(np.arange(len(data.ids))).targets.numpy()
    least = int(np.bincount(labels).min()) + 1
    for probe in (ClassPairs(least_images=2, replicates=0, least_true=least), OutputPairs(least_true=least)):
        rows = examine(subject, data, [probe], execution=QUICK)[0].table.to_pylist()
        names = subject.classes or [str(number) for number in range(labels.max() + 1)]
        for row in rows:
            known = (labels == names.index(row["first"])).sum() >= least
            assert np.isfinite(row["first_taken_for_second"]) == known
    with pytest.raises(ConfigError, match="least_true ≥ 1, got 0"):
        ClassPairs(least_true=0)


def _both_ways(finding) -> list[tuple[str, str]]:
    pairs = [(row["first"], row["second"]) for row in finding.table.to_pylist() if row["confused"]]
    return [*pairs, *(pair[::-1] for pair in pairs)]


def test_classes_with_too_few_images_are_named_not_ranked(subject, data) -> None:
    sizes = examine(subject, data, [ClassPairs()], execution=QUICK)[0].arrays["images_per_class"]
    rarest = int(sizes.argmin())
    probe = ClassPairs(least_images=int(sizes.min()) + 1)
    finding = examine(subject, data, [probe], execution=QUICK)[0]
    assert rarest not in finding.arrays["classes"]
    assert finding.summary["not_ranked"].about.endswith(f": {CLASSES[rarest]} ({sizes[rarest]})")
    two = examine(subject, data, [ClassPairs(most_frequent=2)], execution=QUICK)[0]
    assert two.table.num_rows == 1
    assert "average_bias" not in two.table.column_names
    none = examine(subject, data, [ClassPairs(least_images=1000)], execution=QUICK)[0]
    assert none.table.num_rows == 0


def test_named_pairs_come_with_the_classes_they_part_beside(subject, data) -> None:
    probe = ClassPairs(least_images=2, named=[["cat", "dog"]], near=None)
    finding = examine(subject, data, [probe], execution=QUICK)[0]
    told = finding.summary["cat / dog"]
    assert told.value == finding.arrays["average_bias"][0, 1]
    assert {"car", "bus"} == set(told.about.removeprefix("average bias; worst beside ").split(", "))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": "lowest"}, "expected cutoff"),
        ({"least_images": 1}, "least_images ≥ 2"),
        ({"replicates": 1}, "replicates 0 or ≥ 2"),
        ({"named": [["cat"]]}, "pairs of class names"),
    ],
)
def test_options_are_checked_before_the_pass(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ClassPairs(**options)


def test_unknown_class_names_are_refused(subject, data, net) -> None:
    with pytest.raises(ConfigError, match="no class is called 'cow': there are cat, dog"):
        examine(subject, data, [ClassPairs(named=[["cat", "cow"]])], execution=QUICK)
    with pytest.raises(SubjectError, match="4 scores per sample, and 2 classes are named"):
        examine(Subject(net, classes=2), data, [ClassPairs()], execution=QUICK)


def test_several_labels_per_image(net) -> None:
    inputs = images(200)
    with torch.no_grad():
        said = (net(torch.from_numpy(inputs)) > 0).numpy()
    labels = said & (np.random.default_rng(2).random(said.shape) < 0.7)
    finding = examine(
        Subject(net, task="multilabel", classes=CLASSES, scores="logits"),
        ArraySource(inputs, labels.astype(np.int64)),
        [ClassPairs(least_images=2)],
        execution=QUICK,
    )[0]
    sets = [[set(np.flatnonzero(row)) for row in table] for table in (labels, said)]
    np.testing.assert_array_equal(finding.arrays["confusion"], reference.confusion(*sets, 4, kind=2, minimum=10))
    activated, _ = plain_activations(net, torch.from_numpy(inputs), 0.5)
    probability = reference.activation_probability(activated, sets[1], 4)
    together = [reference.coincidence(sets[0], a, b) for a, b in combinations(range(4), 2)]
    expected = spearmanr(finding.arrays["distance"][np.triu_indices(4, 1)], together).statistic
    assert finding.summary["coincidence_correlation"].value == pytest.approx(expected)
    np.testing.assert_allclose(
        finding.arrays["distance"], reference.activation_distance(probability, normalise=False), rtol=1e-12
    )


def test_groups_of_the_metadata(subject, data) -> None:
    finding = examine(subject, data, [GroupFairness(groups="light")], execution=QUICK)[0]
    (row,) = finding.table.to_pylist()
    assert {row["better"], row["worse"]} == {"day", "night"}
    assert row["images_better"] + row["images_worse"] == 200
    assert row["difference"] == pytest.approx(row["accuracy_better"] - row["accuracy_worse"])
    assert row["low"] < row["difference"] < row["high"]
    assert row["distance"] > 0
    with pytest.raises(ConfigError, match="no column 'weather'; there is 'light'"):
        examine(subject, data, [GroupFairness(groups="weather")], execution=QUICK)
    with pytest.raises(DataError, match="needs targets"):
        examine(subject, ArraySource(images(20)), [GroupFairness()], execution=QUICK)


def test_room_lists_images_of_another_split_from_the_same_pairs(subject, data, tmp_path) -> None:
    plan = Plan.of(steps({"least_images": 2, "select": {"from": "pool", "budget": 7}}))
    splits = {"test": data, "pool": ArraySource(images(120, seed=9))}
    pairs, listed = plan.run(subject, splits, Run.create(tmp_path / "run"), execution=QUICK)
    confused = {frozenset((row["first"], row["second"])) for row in pairs.table.to_pylist() if row["confused"]}
    rows = listed.table.to_pylist()
    assert len(rows) == listed.summary["images"].value == 7
    assert {frozenset((row["prediction"], row["suspected"])) for row in rows} <= confused
    assert len({row["id"] for row in rows}) == 7
    *_, everything = Plan.of(steps({"least_images": 2, "select": {"from": "pool"}})).run(
        subject, splits, Run.create(tmp_path / "all"), execution=QUICK
    )
    assert everything.table.to_pylist()[:7] == rows
    assert len(everything.table) > 7


def test_what_select_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"classes: the option label is now select: expected \{from: SPLIT\}"):
        steps({"label": "pool", "budget": 7})
    with pytest.raises(ConfigError, match=r"classes: the option budget is now select"):
        steps({"budget": 7})
    with pytest.raises(ConfigError, match=r"classes: select is 'pool': expected \{from: SPLIT\}"):
        steps({"select": "pool"})
    with pytest.raises(ConfigError, match="budget is 0: expected 1 or more"):
        ImagesToLabel(budget=0, pairs=Finding("classes.class_pairs"))


def test_room_asks_only_what_was_asked() -> None:
    assert [step.probe for step in steps({})] == [ClassPairs]
    asked = steps({"layers": ["first", "second"], "groups": "light", "separation": True})
    assert [step.probe for step in asked] == [ClassPairs, GroupFairness, ClassCoverage, ClassCriteria]
    assert all(step.options["layers"] == ("first", "second") for step in asked)
    assert asked[-1].upstream["ranges"].probe is ClassRanges
    with pytest.raises(ConfigError, match="has no option 'colour'"):
        steps({"colour": "red"})


def test_class_criteria_equal_a_plain_count(net, subject, data) -> None:
    train = ArraySource(images(150, seed=3), np.random.default_rng(4).integers(0, 3, 150))  # no training images of bus
    ranges = examine(subject, train, [ClassRanges()], execution=QUICK)[0]
    finding = examine(subject, data, [ClassCriteria(ranges=ranges, sections=5)], execution=QUICK)[0]
    trained, tested = channel_means(net, images(150, seed=3)), channel_means(net, images(200))
    train_labels, labels = (source.read(np.arange(len(source.ids))).targets.numpy() for source in (train, data))
    for number, row in enumerate(finding.table.to_pylist()[:3]):
        low, high = (f(trained[train_labels == number], axis=0) for f in (np.min, np.max))
        own = tested[labels == number]
        section = np.floor((own - low) / (high - low) * 5).clip(0, 4)
        inside = (own >= low) & (own <= high)
        reached = [len(set(section[inside[:, n], n])) for n in range(14)]
        tops = [tuple(part.argmax() for part in np.split(values, [4, 10])) for values in own]
        assert row["images"] == len(own)
        assert row["k_multisection"] == pytest.approx(sum(reached) / (14 * 5))
        assert row["strong_activation"] == pytest.approx((own > high).any(0).mean())
        assert row["boundary"] == pytest.approx(((own > high).any(0).mean() + (own < low).any(0).mean()) / 2)
        assert row["top_neurons"] == pytest.approx(sum(len({top[layer] for top in tops}) for layer in range(3)) / 14)
        assert row["patterns"] == len(set(tops))
    assert np.isnan(finding.table.to_pylist()[3]["k_multisection"])


def channel_means(net: Net, inputs: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        first = net.first(torch.from_numpy(inputs))
        second = net.second(torch.relu(first))
        last = net(torch.from_numpy(inputs))
    return torch.cat([first.mean((2, 3)), second.mean((2, 3)), last], 1).double().numpy()


def test_coverage_of_each_class(net, subject, data) -> None:
    finding = examine(subject, data, [ClassCoverage()], execution=QUICK)[0]
    activated, _ = plain_activations(net, torch.from_numpy(images(200)), 0.5)
    coverage, labels = np.mean(activated, axis=1), data.read(np.arange(200)).targets.numpy()
    for number, row in enumerate(finding.table.to_pylist()):
        assert row["median"] == pytest.approx(np.median(coverage[labels == number]))
    shares = [finding.summary[f"{name}_share"].value for name in ("negligible", "small", "medium", "large")]
    assert sum(shares) == pytest.approx(1)


def test_a_real_network(svhn_net, svhn) -> None:
    inputs, labels = svhn[0][:200], svhn[1][:200]
    subject = Subject(svhn_net, classes=10, scores="logits")
    finding = examine(subject, ArraySource(inputs, labels, channels="last"), [ClassPairs(least_images=2)])[0]
    with torch.no_grad():
        outputs = svhn_net.eval()(torch.from_numpy(inputs.transpose(0, 3, 1, 2).astype(np.float32) / 255))
    predicted = outputs.argmax(1).numpy()
    assert finding.arrays["images_per_class"].tolist() == np.bincount(predicted, minlength=10).tolist()
    sets = [[{int(number)} for number in numbers] for numbers in (labels, predicted)]
    expected = reference.confusion(*sets, 10, kind=1, minimum=10)
    np.testing.assert_array_equal(finding.arrays["confusion"], expected)
    assert finding.arrays["neural_paths"].sum() == 200  # no two real images activate the very same neurons


@pytest.mark.parametrize("task", ["classification", "multilabel"])
@pytest.mark.parametrize("law", [law for law in LAWS if law.__name__.startswith("any_")], ids=lambda law: law.__name__)
def test_laws_hold_where_classes_are_ranked(task, law) -> None:
    law(Trial(ClassPairs, task, {"least_images": 2, "replicates": 5}))
    law(Trial(GroupFairness, task, {"least_images": 2}))
