"""Samples that are read once and kept."""

import numpy as np
import pytest
import torch

from weakspot import Subject
from weakspot.core.errors import DataError
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.repair import CachedSource, Recipe, retrained


class Counting:
    """A source that counts how often each sample is read."""

    def __init__(self, source):
        self._source, self.ids, self.reads = source, source.ids, np.zeros(len(source.ids), dtype=int)

    def read(self, positions):
        np.add.at(self.reads, positions, 1)
        return self._source.read(positions)

    def fingerprint(self):
        return self._source.fingerprint()


def test_what_is_kept_is_what_was_read_and_nothing_is_read_twice():
    rng = np.random.default_rng(0)
    source = ArraySource(rng.random((1500, 1, 2, 2)), rng.integers(0, 3, 1500), metadata={"light": rng.random(1500)})
    counting = Counting(source)
    kept, places = CachedSource(counting), np.array([1499, 3, 1024, 3])
    mine, true = kept.read(places), source.read(places)
    assert mine.ids == true.ids
    assert mine.positions.tolist() == places.tolist()
    assert torch.equal(mine.inputs, true.inputs)
    assert torch.equal(mine.targets, true.targets)
    assert mine.metadata["light"].tolist() == true.metadata["light"].tolist()
    assert kept.fingerprint() == source.fingerprint()
    assert counting.reads.tolist() == [1] * 1500


def test_targets_and_metadata_may_be_missing():
    batch = CachedSource(ArraySource(np.zeros((3, 2), dtype=np.float32))).read(np.array([2]))
    assert (batch.targets, batch.metadata) == (None, None)


def test_a_training_on_kept_samples_is_the_same_training():
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits")
    train = Subset(digits.train(), range(100))
    plain, kept = (retrained(subject, [each], recipe=Recipe(epochs=1)) for each in (train, CachedSource(train)))
    pairs = zip(plain.model.parameters(), kept.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_nothing_cannot_be_kept():
    with pytest.raises(DataError, match="no samples to keep"):
        CachedSource(Subset(digits.test(), []))
