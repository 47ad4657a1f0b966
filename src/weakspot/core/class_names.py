"""The names of classes and of sets of labels; numbers where the subject was given no names."""

from collections.abc import Sequence

import numpy as np


def class_names(names: Sequence[str] | None, count: int) -> list[str]:
    """The names of all classes.

    >>> class_names(["cat", "dog"], 2), class_names(None, 2)
    (['cat', 'dog'], ['0', '1'])
    """
    return list(names or map(str, range(count)))


def named_classes(
    values: np.ndarray, names: Sequence[str] | None, *, joined: str = " + ", empty: str = ""
) -> np.ndarray:
    """Class numbers (samples,) or label sets (samples, labels) by name; numbers without names stay what they are.

    joined: stands between the labels of a set.
    empty: the name of a set without labels.

    >>> named_classes(np.array([1, 0]), ["cat", "dog"]).tolist()
    ['dog', 'cat']
    >>> named_classes(np.array([[True, True], [False, False]]), ["cat", "dog"], empty="none").tolist()
    ['cat + dog', 'none']
    """
    if values.ndim == 1:
        return values if names is None else np.array(names)[values]
    labels = np.array(class_names(names, values.shape[1]))
    return np.array([joined.join(labels[row]) or empty for row in values > 0], dtype=np.str_)
