import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject, examine
from weakspot.causes import output_errors
from weakspot.causes.error_probes import Errors, kinds_text
from weakspot.causes.heat_maps import WorstKeypoint, WorstOutput
from weakspot.core.errors import ConfigError, DataError
from weakspot.data.sources import ArraySource


class Echo(nn.Module):
    """Answers what it is given."""

    def forward(self, inputs):
        return inputs


def errors_of(answers, targets, task, *, classes=None, **options):
    scores = "logits" if task in ("classification", "multilabel") else None
    subject = Subject(Echo(), task=task, classes=classes, scores=scores)
    inputs = np.asarray(answers, dtype=np.float32)
    return examine(subject, ArraySource(inputs, np.asarray(targets)), [Errors(**options)])[0]


def columns(finding, *names):
    return [finding.table[name].to_pylist() for name in names]


def test_a_wrong_class():
    finding = errors_of([[2, 1, 0], [0, 1, 2], [5, 1, 0]], [0, 1, 2], "classification", classes=("cat", "dog", "owl"))
    assert columns(finding, "correct", "kind") == [[True, False, False], ["", "dog → owl", "owl → cat"]]
    assert finding.summary["errors"].value == 2
    assert finding.summary["error_share"].low < 2 / 3 < finding.summary["error_share"].high


def test_any_wrong_label():
    finding = errors_of([[1, -1], [1, 1], [-1, -1]], [[1, 0], [1, 0], [0, 1]], "multilabel", classes=("cat", "dog"))
    assert columns(finding, "correct", "kind") == [[True, False, False], ["", "cat → cat + dog", "dog → nothing"]]


def test_the_worst_number_counts():
    answers = [[0, 0.1], [0, -3], [2, 0], [0, 0]]
    finding = errors_of(answers, np.zeros((4, 2), dtype=np.float32), "regression", threshold=1.0)
    assert columns(finding, "correct", "kind") == [[True, False, False, True], ["", "output 1", "output 0", ""]]
    assert columns(finding, "error")[0] == pytest.approx([0.1, 3, 2, 0])


def test_the_worst_keypoint_counts():
    answers = [[0, 0, 3, 4], [1, 0, 0, 0]]
    finding = errors_of(answers, np.zeros((2, 4), dtype=np.float32), "keypoints", threshold=2.0)
    assert columns(finding, "correct", "kind", "error") == [[False, True], ["keypoint 1", ""], [5, 1]]


def test_by_default_the_worst_tenth_of_the_numbers_is_wrong():
    finding = errors_of(np.arange(100)[:, None], np.zeros((100, 1), dtype=np.float32), "regression")
    assert [i for i, correct in enumerate(columns(finding, "correct")[0]) if not correct] == list(range(90, 100))
    assert finding.summary["threshold"].value == pytest.approx(np.quantile(np.arange(100), 0.9))


def test_a_share_that_the_rule_sets_has_no_interval():
    answers, truth = np.arange(100)[:, None], np.zeros((100, 1), dtype=np.float32)
    ruled = errors_of(answers, truth, "regression").summary
    assert (ruled["error_share"].value, ruled["error_share"].low) == (0.1, None)
    assert "the 0.9 quantile" in ruled["threshold"].about
    measured = errors_of(answers, truth, "regression", threshold=89.5).summary
    assert measured["error_share"].low < 0.1 < measured["error_share"].high


def test_relevance_begins_at_the_worst_number_or_keypoint():
    outputs, targets = torch.tensor([[1.0, 5.0, 2.0, 2.0]]), torch.zeros(1, 4)
    assert WorstOutput(targets).weights(outputs).tolist() == [[0, 1, 0, 0]]
    assert WorstKeypoint(targets).weights(outputs).tolist() == [[1, 1, 0, 0]]
    shaped = WorstKeypoint(targets.view(1, 2, 2)).weights(outputs.view(1, 2, 2))
    assert shaped.tolist() == [[[1, 1], [0, 0]]]


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="3 numbers per sample, and the targets have 2"):
        output_errors(torch.zeros(1, 3), torch.zeros(1, 2), "regression")
    with pytest.raises(DataError, match="pairs of x and y"):
        output_errors(torch.zeros(1, 3), torch.zeros(1, 3), "keypoints")
    with pytest.raises(ConfigError, match="between 0 and 1"):
        Errors(quantile=1.0)


def test_kinds_are_told_the_most_frequent_first():
    assert kinds_text(["a", "b", "b", "c", "d"], most=2) == "b (2), a (1), others (2)"
