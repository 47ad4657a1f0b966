from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, precision_recall_fscore_support, roc_auc_score

from weakspot.core.errors import DataError
from weakspot.statistics import auroc, average_precision, cost_effectiveness, detection, spearman

scored_truths = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).map(
    lambda pairs: tuple(np.array(column) for column in zip(*pairs, strict=True))
)


@given(scored_truths)
def test_areas_agree_with_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    score, truth = pair
    assume(truth.any() and not truth.all())
    assert auroc(score, truth) == pytest.approx(roc_auc_score(truth, score))
    assert average_precision(score, truth) == pytest.approx(average_precision_score(truth, score))


@given(scored_truths)
def test_spearman_agrees_with_scipy(pair: tuple[np.ndarray, np.ndarray]) -> None:
    score, truth = pair
    assume(truth.any() and not truth.all() and len(set(score)) > 1)
    assert spearman(score, truth) == pytest.approx(spearmanr(score, truth).statistic)


def test_spearman_by_hand() -> None:
    # ranks 1, 2, 3, 4 and 2, 1, 4, 3: 1 − 6·4/(4·15)
    assert spearman([1, 2, 3, 4], [5, 0, 9, 7]) == pytest.approx(0.6)
    assert np.isnan(spearman([1, 2], [3, 3]))


def test_areas_without_both_kinds_are_nan() -> None:
    assert np.isnan(auroc([1, 2], [True, True]))
    assert np.isnan(auroc([1, 2], [False, False]))
    assert np.isnan(average_precision([1, 2], [False, False]))
    assert average_precision([1, 2], [True, True]) == 1


@given(scored_truths)
def test_detection_agrees_with_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    reported, truth = pair[0] > 3, pair[1]
    assume(reported.any() and truth.any())
    found = detection(reported, truth)
    precision, recall, f1, _ = precision_recall_fscore_support(truth, reported, average="binary", zero_division=0)
    assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1))
    assert found.by_chance == pytest.approx(reported.sum() * truth.mean())
    assert found.reported + found.false_negatives + found.true_negatives == truth.size


def test_detection_of_nothing() -> None:
    nothing = detection([False, False], [True, False])
    assert np.isnan(nothing.precision)
    assert (nothing.recall, nothing.f1, nothing.true_negatives) == (0, 0, 1)
    assert np.isnan(detection([True], [False]).recall)


def test_cost_effectiveness_by_hand() -> None:
    curve = cost_effectiveness([4, 3, 2, 1], [True, False, True, False])
    assert curve.found_share.tolist() == [0, 0.5, 0.5, 1, 1]
    assert curve.optimal.tolist() == [0, 0.5, 1, 1, 1]
    assert curve.random.tolist() == [0, 0.25, 0.5, 0.75, 1]
    # trapezoids of width 1/4: 1/16 + 2/16 + 3/16 + 4/16
    assert curve.area == pytest.approx(0.625)
    assert curve.optimal_area == pytest.approx(np.trapezoid(curve.optimal, curve.cost)) == 0.75
    assert curve.gain == pytest.approx(0.25)
    assert curve.shortfall == pytest.approx(1 / 6)
    assert cost_effectiveness([3, 2, 1, 1, 1, 1], [True, False, False, False, False, False]).shortfall == 0


@given(st.permutations([True, True, False, False, False]), st.permutations([2, 2, 2, 1, 1]))
def test_ties_count_as_the_mean_of_their_orders(truth: list[bool], score: list[int]) -> None:
    curves = []
    for order in permutations(range(5)):
        if all(score[i] >= score[j] for i, j in pairwise(order)):
            curves.append(np.append(0, np.cumsum(np.array(truth)[list(order)])) / 2)
    np.testing.assert_allclose(cost_effectiveness(score, truth).found_share, np.mean(curves, axis=0))


@given(scored_truths)
def test_no_order_beats_the_optimal_one(pair: tuple[np.ndarray, np.ndarray]) -> None:
    assume(pair[1].any())
    curve = cost_effectiveness(*pair)
    assert (curve.found_share <= curve.optimal + 1e-12).all()
    assert curve.area <= curve.optimal_area + 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spearman([1], [1, 2]), "same length"),
        (lambda: detection([], []), "same length"),
        (lambda: auroc([np.nan], [True]), "got NaN"),
        (lambda: spearman([1, 2], [np.nan, 1]), "got NaN"),
        (lambda: cost_effectiveness([1], [False]), "at least one true entry"),
    ],
)
def test_says_what_is_wrong(call, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()
