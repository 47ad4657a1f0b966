"""Features of the predictions for the queries."""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.robustness import query_features
from weakspot.robustness.metrics_queries import class_shares


def test_query_features_do_not_depend_on_the_order_of_the_queries():
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(4), size=(7, 9))
    np.testing.assert_allclose(query_features(p), query_features(p[:, rng.permutation(9)]), rtol=1e-5)
    assert query_features(p).dtype == np.float32
    assert class_shares(p.argmax(2), 4).sum(1) == pytest.approx(1)
    assert query_features(rng.dirichlet(np.ones(2), size=(3, 5))).shape[0] == 3  # fewer classes than are ranked


def test_query_features_refuse_other_shapes():
    with pytest.raises(DataError, match=r"\(inputs, queries, classes\)"):
        query_features(np.zeros((3, 4)))
