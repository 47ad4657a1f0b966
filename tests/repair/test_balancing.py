"""Balance by bootstrap: every cluster as large as the largest."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.errors import DataError
from weakspot.core.source import Subset, check_ids
from weakspot.data import digits
from weakspot.repair import Repeated, balanced, balanced_places


@given(clusters=st.lists(st.integers(1, 5), min_size=1, max_size=40), seed=st.integers(0, 99))
def test_every_cluster_grows_to_the_largest_and_keeps_its_own_members(clusters, seed):
    places = balanced_places(np.array(clusters), seed=seed)
    sizes = Counter(clusters[place] for place in places.tolist())
    assert set(sizes.values()) == {max(Counter(clusters).values())}
    assert set(places.tolist()) == set(range(len(clusters)))
    assert set(sizes) == set(clusters)


def test_draws_are_with_replacement_and_seeded():
    clusters = np.repeat([1, 2], [300, 20])
    first, again, other = (balanced_places(clusters, seed=seed) for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    drawn = Counter(first[first >= 300].tolist())
    assert sum(drawn.values()) == 300
    assert len(set(drawn.values())) > 3  # a bootstrap is uneven, whole rounds would not be


def test_copies_have_ids_of_their_own_and_the_samples_of_their_origin():
    source = Subset(digits.train(), range(5))
    made = balanced(source, dict(zip(source.ids, [1, 1, 1, 2, 2], strict=True)), seed=3)
    check_ids(made)
    assert len(made.ids) == 6
    assert Counter(made.origins).keys() == set(source.ids)
    batch, originals = made.read(np.arange(6)[::-1]), source.read(np.arange(5))
    assert batch.ids == made.ids[::-1]
    for name, image, target in zip(made.origins[::-1], batch.inputs, batch.targets, strict=True):
        place = source.ids.index(name)
        assert torch.equal(image, originals.inputs[place])
        assert target == originals.targets[place]


def test_the_fingerprint_tells_the_draw():
    source = Subset(digits.train(), range(4))
    clusters = dict(zip(source.ids, [1, 1, 1, 2], strict=True))
    assert balanced(source, clusters).fingerprint() == balanced(source, clusters).fingerprint()
    assert Repeated(source, [0, 0]).fingerprint() != Repeated(source, [0, 1]).fingerprint()


def test_messages():
    source = Subset(digits.train(), range(3))
    with pytest.raises(DataError, match=r"2 samples have no cluster, the first is 'digit-0001'"):
        balanced(source, {"digit-0000": 1})
    with pytest.raises(DataError, match="nothing to balance"):
        balanced(Subset(source, []), {})
