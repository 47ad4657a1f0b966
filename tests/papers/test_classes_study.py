"""The row that the study of DeepInspect writes of a net: what the outputs alone say comes from the room."""

import numpy as np
import pytest
import torch

from weakspot import Subject
from weakspot.classes import pair_values
from weakspot.data import digits
from weakspot.statistics import spearman


@pytest.fixture
def classes_study(script):
    return script("classes_study")


def test_outputs_rank_pairs_the_same_wherever_the_net_is_looked_at(classes_study):
    net, test = digits.model(), digits.test()
    rows = classes_study.study(Subject(net, classes=10, scores="logits"), test, None, net="digits")
    assert [row["tap"] for row in rows] == ["all outputs", "all activated", "penultimate"]
    assert len({row["outputs_bias_gain"] for row in rows}) == 1 < len({row["bias_gain"] for row in rows})
    batch = test.read(np.arange(len(test.ids)))
    with torch.no_grad():
        chance = net(batch.inputs).double().softmax(1).numpy()
    said, true = chance.argmax(1), batch.targets.numpy()
    soft_confusion = np.array([chance[said == number].mean(0) for number in range(10)])
    taken = np.array([[np.mean(said[true == a] == b) for b in range(10)] for a in range(10)])
    expected = spearman(pair_values(soft_confusion + soft_confusion.T), pair_values(taken + taken.T))
    assert rows[0]["outputs_confusion_correlation"] == pytest.approx(expected, rel=1e-3)
    assert rows[0]["figure"] == pytest.approx(np.mean(said == true), rel=1e-3)
