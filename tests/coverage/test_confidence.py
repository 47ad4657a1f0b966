"""Confidence scores against their formulas, and what they refuse."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.source import limited
from weakspot.coverage.confidence_probes import Confidence
from weakspot.coverage.metrics_confidence import deep_gini, entropy, margin, max_softmax
from weakspot.data import digits


def test_scores_of_a_hand_made_case():
    rows = torch.tensor([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]], dtype=torch.float64)
    assert max_softmax(rows).tolist() == [0.7, 1.0]
    assert margin(rows).tolist() == pytest.approx([0.5, 1.0])
    assert entropy(rows)[0] == pytest.approx(-sum(p * math.log(p) for p in (0.7, 0.2, 0.1)))
    assert entropy(rows)[1] == 0
    assert deep_gini(rows).tolist() == pytest.approx([1 - 0.49 - 0.04 - 0.01, 0])


def test_a_row_per_sample_and_how_well_it_tells_errors():
    subject = Subject(digits.model(), classes=10, scores="logits")
    source = digits.test()
    finding = examine(subject, source, [Confidence()])[0]
    batch = source.read(np.arange(len(source.ids)))
    with torch.no_grad():
        probabilities = torch.softmax(subject.model(batch.inputs).double(), 1).numpy()
    wrong = probabilities.argmax(1) != batch.targets.numpy()
    gini = 1 - (probabilities**2).sum(1)
    assert finding.table["id"].to_pylist() == list(source.ids)
    np.testing.assert_allclose(finding.table["deep_gini"].to_numpy(), gini, atol=1e-6)
    np.testing.assert_array_equal(finding.table["correct"].to_numpy(zero_copy_only=False), ~wrong)
    area = finding.summary["auroc_deep_gini"]
    assert area.value == pytest.approx(roc_auc_score(wrong, gini), abs=1e-6)
    assert area.low < area.value < area.high <= 1


def test_what_the_outputs_are_is_said_not_guessed():
    source = limited(digits.test(), 5)
    with pytest.raises(SubjectError, match="scores='logits'"):
        examine(Subject(digits.model()), source, [Confidence()])
    with pytest.raises(DataError, match=r"add up to 1.*are they logits"):
        examine(Subject(digits.model(), scores="probabilities"), source, [Confidence()])
    with pytest.raises(ConfigError, match="examines classification, the subject's task is multilabel"):
        examine(Subject(digits.model(), task="multilabel", scores="logits"), source, [Confidence()])


@pytest.mark.parametrize("score", [max_softmax, margin, entropy, deep_gini])
def test_what_is_no_probability_is_refused(score):
    for bad in ([[0.5, float("nan")]], [[1.5, -0.5]], [[0.2, 0.2]], [[1.0]]):
        with pytest.raises(DataError, match="expected probabilities"):
            score(torch.tensor(bad))
