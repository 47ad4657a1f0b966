"""Why inputs are weak: each number derived again by hand, and pictures that show what they say."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from tests.references.robustness import simpson
from tests.robustness.conftest import DETECTOR
from weakspot import Plan, Run, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.looks import Fog, Neighbour, Rain, Rotate, Shift
from weakspot.repair import Recipe, VariedSource, retrained
from weakspot.robustness.analysis import compared_neighbours, weak_ids
from weakspot.robustness.analysis_probes import ClassRobustness, WeakPlaces
from weakspot.robustness.detector_data import ReorderedRows
from weakspot.robustness.effects_probes import VariationEffects
from weakspot.robustness.metrics_features import (
    centre_distance_ratio,
    concentration_correlation,
    principal_components,
    weak_strong_difference,
)
from weakspot.robustness.pictures import CORRECT, WRONG, accuracy_colour, map_picture, strip_picture
from weakspot.robustness.probes import NeighbourAccuracy
from weakspot.robustness.quantities import drawn_quantities
from weakspot.robustness.room import steps

VARIATION, LOOKS, INPUTS = DETECTOR["variation"], 12, 60


@pytest.fixture(scope="module")
def source():
    return limited(digits.test(), INPUTS)


@pytest.fixture(scope="module")
def answers(subject, source):
    """Every look at every input by hand: predictions (inputs, looks + 1) and targets."""
    batch, look = source.read(np.arange(INPUTS)), Neighbour(VARIATION, 0, (0, 1))
    with torch.no_grad():
        said = [subject.model(batch.inputs).argmax(1)]
        for number in range(1, LOOKS + 1):
            said.append(subject.model(look.images(batch.inputs, batch.ids, number)).argmax(1))
    return torch.stack(said, 1).numpy(), batch.targets.numpy(), batch.ids


@pytest.fixture(scope="module")
def findings(subject, source):
    options = {"variation": VARIATION, "looks": LOOKS}
    probes = [
        WeakPlaces(**options),
        ClassRobustness(**options),
        VariationEffects(**options, bins=4),
        NeighbourAccuracy(**options, early_stopping="never"),
    ]
    return {finding.name: finding for finding in examine(subject, source, probes)}


def test_distance_ratio_of_real_features(findings, subject, source, answers):
    batch, taken = source.read(np.arange(INPUTS)), []
    hook = subject.model.classifier.register_forward_pre_hook(lambda module, args: taken.append(args[0]))
    with torch.no_grad():
        subject.model(batch.inputs)
    hook.remove()
    features = torch.nn.functional.normalize(taken[0], dim=1).double().numpy()
    targets, expected = answers[1], []
    centres = {each: np.median(features[targets == each], axis=0) for each in set(targets.tolist())}
    for row, target in zip(features, targets.tolist(), strict=True):
        others = [np.linalg.norm(row - centre) for each, centre in centres.items() if each != target]
        expected.append(np.linalg.norm(row - centres[target]) / min(others))
    table = findings["robustness.weak_places"].table.sort_by("id").to_pydict()
    np.testing.assert_allclose(table["distance_ratio"], expected, rtol=1e-4)
    weak = np.array(table["weak"])
    summary = findings["robustness.weak_places"].summary
    assert summary["distance_weak"].value == pytest.approx(np.mean(np.array(expected)[weak]), rel=1e-4)
    tested = stats.mannwhitneyu(np.array(expected)[weak], np.array(expected)[~weak])
    assert summary["distance_p_value"].value == pytest.approx(tested.pvalue, rel=1e-3)


def test_correlation_of_diversity_and_accuracy(findings, answers):
    said, targets, _ = answers
    accuracy = (said == targets[:, None]).mean(1)
    flawed = accuracy < 1
    finding = findings["robustness.weak_places"]
    for count, found in zip(finding.arrays["queries"], finding.arrays["correlation"], strict=True):
        diversity = [round(simpson(row[: count + 1].tolist()), 12) for row in said[flawed]]
        assert found == pytest.approx(stats.spearmanr(diversity, accuracy[flawed]).statistic, abs=1e-9)
    summary = finding.summary["concentration_correlation"]
    assert summary.low < summary.value < summary.high


def test_correlation_rises_with_the_number_of_queries(stored, svhn_labels):
    """On the stored predictions of a real network, as the paper's figure shows; at 15 it is above 0.8."""
    _, test = stored("ResN-svhn")
    accuracy = (test == svhn_labels[1][:, None]).mean(1)
    found = concentration_correlation(test, accuracy, [1, 5, 15, 50])
    assert (np.diff(found) > 0).all() and found[2] > 0.8


def test_classes_by_counting(findings, answers):
    said, targets, _ = answers
    accuracy = (said == targets[:, None]).mean(1)
    for row in findings["robustness.class_robustness"].table.to_pylist():
        own = accuracy[targets == int(row["class"])]
        assert row["inputs"] == len(own)
        assert row["weak_share"] == pytest.approx((own <= 0.75).mean())
        assert row["neighbour_accuracy"] == pytest.approx(own.mean())
        assert row["quartile_2"] == pytest.approx(np.quantile(own, 0.5, method="inverted_cdf"))
    shares = findings["robustness.class_robustness"].table.to_pydict()["weak_share"]
    assert shares == sorted(shares, reverse=True)


def test_effects_by_counting(findings, answers):
    said, targets, ids = answers
    look = Neighbour(VARIATION, 0)
    angle = np.concatenate([look.drawn(ids, number)[:, 0].numpy() for number in range(1, LOOKS + 1)])
    right = (said[:, 1:] == targets[:, None]).T.ravel()
    rows = [r for r in findings["robustness.variation_effects"].table.to_pylist() if r["quantity"] == "rotation"]
    assert [row["from"] for row in rows] == [-20, -10, 0, 10]
    for row in rows:
        inside = (angle >= row["from"]) & (angle < row["to"])
        assert row["looks"] == inside.sum()
        assert row["accuracy"] == pytest.approx(right[inside].mean())


def test_the_variation_that_hurts_most_is_found(subject, source):
    """Shifts by half an image hurt more than turns by a degree."""
    probe = VariationEffects(variation=Rotate(1) & Shift(4), looks=10, bins=4)
    assert "shift" in examine(subject, source, [probe])[0].summary["hurts_most"].value


def test_rain_and_fog_are_told_apart(subject, source):
    """By counting; rain draws no range, and has no curve."""
    look = Neighbour(Rain() | Fog(), 0, (0, 1))
    finding = examine(subject, source, [VariationEffects(variation=Rain() | Fog(), looks=6)])[0]
    batch, right = source.read(np.arange(INPUTS)), {"Rain": [], "Fog": []}
    with torch.no_grad():
        for number in range(1, 7):
            said = subject.model(look.images(batch.inputs, batch.ids, number)).argmax(1)
            right[type(look.at(number)).__name__] += (said == batch.targets).tolist()
    shares = {name: finding.summary[f"under_{name.lower()}"].value for name in right}
    assert shares == {name: pytest.approx(np.mean(hits)) for name, hits in right.items()}
    assert finding.summary["worst_kind"].value == min(shares, key=shares.get).lower()
    assert set(finding.table["quantity"].to_pylist()) == {"fog"}
    rain = examine(subject, source, [VariationEffects(variation=Rain(), looks=2)])[0]
    assert rain.table is None and not rain.summary


def test_of_a_regression_the_share_within_tolerance_is_told(tmp_path):
    """The model gives each image's mean, so brightness takes it off the target and noise hardly does."""
    images = np.full((20, 1, 4, 4), 0.5, np.float32)
    source = ArraySource(images, np.full((20, 1), 0.52, np.float32))
    mean = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten())
    subject = Subject(mean, task="regression", bounds=(0, 1))
    neighbours = {"either": [{"brightness": 0.2}, {"noise": 0.001}]}
    asked = steps({"neighbours": neighbours, "tolerance": 3, "looks": 20, "analysis": True})
    run = Run.create(tmp_path / "run")
    Plan.of(asked).run(subject, {"train": source, "test": source}, run)
    told = run["robustness.tolerance_effects"]
    rows = [row for row in told.table.to_pylist() if row["quantity"] == "brightness"]
    expected = Neighbour(asked[0].options["variation"], 0, (0, 1))
    changes = [expected.drawn(source.ids, n)[:, 0].numpy() for n in range(1, 21) if "Brightness" in str(expected.at(n))]
    off = np.abs(np.concatenate(changes) - 0.02) <= np.sqrt(3) * 0.02 + 1e-7
    assert told.summary["under_brightness"].value == pytest.approx(off.mean())
    assert told.summary["under_noise"].value == 1 and told.summary["worst_kind"].value == "brightness"
    assert sum(row["looks"] for row in rows) == len(off) == 200


def test_quantities_of_what_takes_turns():
    either = (Rain() | Rotate(10)).at(1)
    assert [span.name for span in drawn_quantities(either)] == ["rotation"]


@pytest.fixture(scope="module")
def strips(subject, source, tmp_path_factory):
    run = Run.create(tmp_path_factory.mktemp("strips") / "run")
    asked = steps({"neighbours": {"rotate": 20, "shift": 1}, "looks": LOOKS, "analysis": True})
    Plan.of(asked).run(subject, {"test": source}, run)
    return run


def test_strips_show_the_weakest_of_the_fragile_inputs(strips, answers):
    said, targets, ids = answers
    finding = strips["robustness.weak_strips"]
    table = strips["robustness.neighbour_accuracy"].table.to_pylist()
    fragile = [row["id"] for row in table if row["weak"] and row["target"] == row["prediction"]][:6]
    assert list(finding.media) == fragile == finding.table.to_pydict()["id"]
    for row in finding.table.to_pylist():
        place = ids.index(row["id"])
        assert row["predictions"].split() == [str(label) for label in said[place, :10]]
        assert row["correct_looks"] == (said[place, :10] == targets[place]).sum()


def test_a_strip_is_framed_by_right_and_wrong(strips):
    finding = strips["robustness.weak_strips"]
    name, picture = next(iter(finding.media.items()))
    pixels = np.asarray(Image.open(io.BytesIO(picture.png)))
    frames = [tuple(pixels[0, column]) for column in range(0, pixels.shape[1], pixels.shape[1] // 10 + 1)]
    assert len(frames) == 10 and set(frames) <= {CORRECT, WRONG} and frames[0] == CORRECT
    assert picture.caption.startswith(f"{name}: predicted as ")


def test_the_map_shows_inputs_where_they_lie(findings):
    pixels = np.asarray(Image.open(io.BytesIO(findings["robustness.weak_places"].media["map"].png)))
    assert pixels.shape == (720, 720, 3) and (pixels != 255).any()


def test_a_map_by_hand():
    pictures = np.zeros((3, 4, 4, 3), dtype=np.uint8)
    shown = map_picture(np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), np.array([1.0, 0.9, 0.0]), pictures)
    pixels = np.asarray(Image.open(io.BytesIO(shown.png)))
    assert tuple(pixels[-45, 0]) == CORRECT and tuple(pixels[0, -45]) == WRONG  # of two in one place, the weaker
    assert accuracy_colour(1.0).tolist() == list(CORRECT)
    assert strip_picture([pictures[0]], [True], "one", size=4).caption == "one"


def test_features_on_disk_are_read_a_few_at_a_time_and_tell_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    features, classes, order = rng.normal(size=(60, 7)), rng.integers(0, 3, 60), rng.permutation(60)
    whole = centre_distance_ratio(features[order], classes), principal_components(features[order])
    monkeypatch.setattr("weakspot.robustness.metrics_features._VALUES_AT_ONCE", 40)
    parts = ReorderedRows(features, order)
    np.testing.assert_allclose(centre_distance_ratio(parts, classes), whole[0], rtol=1e-12)
    np.testing.assert_allclose(principal_components(parts), whole[1], atol=1e-12)


def test_principal_map_keeps_distances_of_what_is_flat():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6))
    found = principal_components(flat)
    expected = np.linalg.norm(flat[:, None] - flat, axis=2)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), expected, atol=1e-9)
    assert (principal_components(flat[::-1])[::-1] == pytest.approx(found)) and principal_components(
        flat[:, :1]
    ).shape == (30, 2)


def test_too_little_to_compare():
    assert weak_strong_difference(np.array([1.0, 2.0, 3.0]), np.array([True, False, False])) is None
    with pytest.raises(DataError, match="two classes or more"):
        centre_distance_ratio(np.zeros((3, 2)), np.zeros(3, dtype=int))


class TestRepair:
    def test_variations_are_those_of_the_look(self, source):
        look = Neighbour(VARIATION, 0, (0, 1))
        weak = Subset(source, [3, 8])
        varied = VariedSource(weak, look, copies=3, first=100)
        assert len(varied.ids) == len(set(varied.ids)) == 6
        batch = varied.read(np.array([4, 0]))
        original = weak.read(np.array([1, 0]))
        assert batch.ids == (f"{original.ids[0]}~101", f"{original.ids[1]}~100")
        assert batch.targets.tolist() == original.targets.tolist()
        assert torch.equal(batch.inputs[0], look.images(original.inputs[:1], original.ids[:1], 101)[0])
        assert varied.fingerprint() != VariedSource(weak, look, copies=3, first=99).fingerprint()
        with pytest.raises(ConfigError, match="at least one copy"):
            VariedSource(weak, look, copies=0)

    def test_training_on_weak_inputs_and_their_variations_helps(self, subject, source):
        train, look = limited(digits.train(), 300), Neighbour(VARIATION, 0, (0, 1))
        probe = NeighbourAccuracy(variation=VARIATION, looks=20, early_stopping="never")
        weak = weak_ids(examine(subject, train, [probe])[0])
        improved = VariedSource(Subset.named(train, weak), look, copies=3)
        recipe = Recipe(epochs=6, learning_rate=0.02)
        repaired = retrained(subject, [train, improved], recipe=recipe)
        before, after = (examine(each, source, [probe])[0] for each in (subject, repaired))
        told = compared_neighbours(before, after)
        assert told.summary["verdict"].value == "better" and told.summary["difference"].high < 0
        assert told.summary["neighbour_accuracy_change"].low > 0
        old, new = (np.array(f.table.sort_by("id")["neighbour_accuracy"].to_pylist()) for f in (before, after))
        assert told.summary["neighbour_accuracy_change"].value == pytest.approx((new - old).mean())
        assert told.summary["alike"].value == pytest.approx((np.abs(new - old) < 0.2).mean())

    def test_two_findings_must_be_of_the_same_inputs(self, findings, subject, source):
        probe = NeighbourAccuracy(variation=VARIATION, looks=LOOKS)
        other = examine(subject, Subset(source, range(5)), [probe])[0]
        with pytest.raises(DataError, match="same inputs"):
            compared_neighbours(findings["robustness.neighbour_accuracy"], other)
        with pytest.raises(DataError, match="no Finding of NeighbourAccuracy"):
            compared_neighbours(findings["robustness.weak_places"], other)

    def test_with_early_stopping_there_is_no_mean_change(self, subject, source):
        probe = NeighbourAccuracy(variation=VARIATION, looks=LOOKS)
        finding = examine(subject, source, [probe])[0]
        told = compared_neighbours(finding, finding)
        assert "neighbour_accuracy_change" not in told.summary
        assert told.summary["verdict"].value == "no difference shown"
