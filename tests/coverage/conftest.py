"""A trained net for digits in double precision, and a few of its images."""

import pytest

from weakspot import Subject
from weakspot.core.source import limited
from weakspot.data import digits


@pytest.fixture(scope="module")
def net():
    return digits.model().double()


@pytest.fixture(scope="module")
def subject(net):
    return Subject(net, classes=digits.CLASSES, preprocess=lambda images: images.double())


@pytest.fixture(scope="module")
def train():
    return limited(digits.train(), 40)


@pytest.fixture(scope="module")
def test():
    return limited(digits.test(), 23)
