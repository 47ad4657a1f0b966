"""From what Python users hold their data in to a source of samples."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from weakspot.core.errors import DataError
from weakspot.core.options import shortened
from weakspot.core.source import Source
from weakspot.data.sources import ArraySource, DatasetSource, LoaderSource

INPUTS = ("image", "images", "img", "pixel_values", "input", "inputs", "x")
"""What data sets of mappings call the input of a sample."""
TARGETS = ("label", "labels", "target", "targets", "y")
"""What they call its target."""


def source_of(
    data: Any, what: str, classes: Sequence[str] | None = None, *, parts: Mapping[str, str] | None = None
) -> Source:
    """A source as it is; a data set, loader or list of samples; an array or tensor, or a tuple (inputs, targets).

    what: begins the message where the data are none of these, as in "test is".
    classes: names of the classes.
    parts: keys of `inputs` and `targets` in samples that are mappings, where they are said.
    """
    if parts and not isinstance(data, DataLoader | Dataset | Sequence):
        raise DataError(f"{what} {_shown(data)}: {next(iter(parts))} is for data sets whose samples are mappings")
    if all(hasattr(data, name) for name in ("ids", "read", "fingerprint")):
        return data  # type: ignore[no-any-return]
    if isinstance(data, DataLoader):
        return LoaderSource(data, classes=classes, **(_said(parts) or _parts(data.dataset, collated=data.collate_fn)))
    if isinstance(data, np.ndarray | Tensor):
        return ArraySource(data)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], np.ndarray | Tensor):
        return ArraySource(*data)
    map_style = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    if isinstance(data, Dataset) or (map_style and not isinstance(data, Mapping | tuple | str | bytes)):
        return DatasetSource(data, **{"classes": classes, **(_said(parts) or _parts(data, classes=classes))})
    raise DataError(
        f"{what} {_shown(data)}: expected a torch Dataset or DataLoader, an array or tensor, a tuple (inputs, "
        "targets), or a source with ids, read() and fingerprint()"
    )


def _said(parts: Mapping[str, str] | None) -> dict[str, Any]:
    """The keys that were said; without one for the targets there are none."""
    return {"inputs": 0, "targets": None, **parts} if parts else {}


def _shown(data: Any) -> str:
    if isinstance(data, tuple):
        return f"a tuple of {shortened([type(part).__name__ for part in data])}"
    return f"a {type(data).__name__}"


def _parts(dataset: Any, *, classes: Sequence[str] | None = None, collated: Any = None) -> dict[str, Any]:
    """Which parts of a sample are input and target, where samples are mappings whose keys leave no doubt."""
    try:
        sample = collated([dataset[0]]) if collated is not None else dataset[0]
    except Exception:  # whoever reads it next says what is wrong
        return {}
    if not isinstance(sample, Mapping):
        return {}
    inputs, targets = _only(INPUTS, sample), _only(TARGETS, sample)
    if inputs is None:
        listed = ", ".join(map(repr, sample))
        raise DataError(
            f"samples are mappings with {listed}, and which of these is the input cannot be told: say so with "
            "weakspot.data.sources.DatasetSource(data, inputs=..., targets=...), or by inputs: and targets: in the file"
        )
    named = _label_names(dataset, targets) if classes is None and collated is None else None
    return {"inputs": inputs, "targets": targets, **({"classes": named} if named else {})}


def _only(names: Iterable[str], sample: Mapping[Any, Any]) -> str | None:
    """The one of these names that the sample has."""
    there = [name for name in names if name in sample]
    return there[0] if len(there) == 1 else None


def _label_names(dataset: Any, targets: str | None) -> list[str] | None:
    """The names of the classes in a data set of Hugging Face: those of its feature."""
    features = getattr(dataset, "features", None)
    names = getattr(features.get(targets), "names", None) if isinstance(features, Mapping) and targets else None
    return list(names) if isinstance(names, list | tuple) else None
