"""What is declared of the Findings of retraining is what is made, and readers can draw, tell and print it."""

import numpy as np
import pytest

from weakspot import Subject, examine
from weakspot.core.outputs import Outputs
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.formatting import in_unit
from weakspot.repair import Predictions, compared
from weakspot.repair.outputs import RETRAINING, RETRAINING_OF_NUMBERS
from weakspot.repair.retraining_finding import MethodScores, retraining_finding
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer
from weakspot.rooms import declared

IDS = [f"i{number:02d}" for number in range(40)]
CAUSES = {name: 1 + number % 2 for number, name in enumerate(IDS[:12])}


def scores(seed, better):
    """Which of 40 samples are predicted correctly; of the first 12 a share, the others all."""
    return np.concatenate([np.random.default_rng(seed).random(12) < better, np.ones(28, dtype=bool)])


def of_retraining(before, after, other):
    outcomes = {"unsafe set": MethodScores(), "random images": MethodScores()}
    for own, others in zip(after, other, strict=True):
        outcomes["unsafe set"].add(own, 12)
        outcomes["random images"].add(others, 12)
    return retraining_finding(IDS, before, outcomes, CAUSES)


@pytest.fixture(scope="module")
def of_classes():
    return of_retraining(scores(0, 0.0), [scores(1, 0.9)] * 2, [scores(3, 0.2)] * 2)


@pytest.fixture(scope="module")
def of_numbers():
    errors = np.linspace(1, 5, 40)
    return of_retraining(errors, [errors / 2] * 2, [errors] * 2)


def test_retraining_is_as_declared(of_classes, of_numbers):
    assert of_classes.outputs == declared("causes.retraining") == RETRAINING
    assert RETRAINING.problems(of_classes) == []
    assert of_numbers.outputs == RETRAINING_OF_NUMBERS
    assert RETRAINING_OF_NUMBERS.problems(of_numbers) == []


def test_less_error_is_better_and_more_accuracy(of_classes, of_numbers):
    for finding, better in ((of_classes, "higher"), (of_numbers, "lower")):
        assert finding.summary["verdict"].value == "better"
        named = ("difference", "before", "after", "after_random_images", "over_random_images")
        assert {finding.outputs.number(name).better for name in named} == {better}
        assert {finding.outputs.column(name).better for name in ("difference", "before", "after")} == {better}


def test_accuracies_print_in_percent_and_errors_as_numbers(of_classes, of_numbers):
    texts = [
        in_unit(finding.summary["before"].value, finding.outputs.number("before").unit)
        for finding in (of_classes, of_numbers)
    ]
    assert texts == ["70\u00a0%", "3"]


def test_both_figures_of_retraining_are_drawn(of_classes, of_numbers):
    for finding in (of_classes, of_numbers):
        drawn = figures(finding, [])
        assert [figure.caption for figure in drawn] == [figure.caption for figure in RETRAINING.figures]
        assert all(figure.svg.startswith("<svg") and not figure.problem for figure in drawn)
        assert "random images" in drawn[0].svg and "cluster 2" not in drawn[0].svg
        assert "cluster 2" in drawn[1].svg


def test_what_retraining_changed_is_told(of_classes):
    said = "".join(part.text for part in answer("causes", [of_classes]).sentence)
    assert "better" in said


def test_predictions_and_their_comparison_are_as_declared():
    subject, test = Subject(digits.model(), classes=digits.CLASSES, scores="logits"), Subset(digits.test(), range(60))
    found = examine(subject, test, [Predictions()])[0]
    change = compared(found, found)
    for finding in (found, change):
        assert finding.outputs == declared(finding.name) != Outputs()
        assert finding.outputs.problems(finding) == []
    accuracy = found.outputs.number("accuracy")
    mean = np.mean(found.table[accuracy.mean_of].to_pylist())
    assert (accuracy.better, accuracy.unit) == ("higher", "share") and mean == found.summary["accuracy"].value
