"""Metadata of samples on their way through a pass: columns of rows, and columns of a table again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np

from weakspot.core.errors import DataError
from weakspot.data.text_rows import decoded, encoded

if TYPE_CHECKING:
    from weakspot.core.rows import RowTable

PREFIX = "metadata."
"""Of the columns of rows and tables that hold metadata."""
_LONGEST = 200


def metadata_rows(metadata: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The metadata of a batch as columns of rows: numbers as they are, text as bytes; what has no single value is left.

    >>> sorted(metadata_rows({"light/lux": np.zeros(2), "weather": np.array(["rain", "fog"])}))
    ['metadata.light%2Flux', 'metadata.weather']
    """
    rows = {}
    for name, column in metadata.items():
        key, values = PREFIX + quote(name, safe=""), np.asarray(column)
        if len(key) > _LONGEST:
            raise DataError(f"the name of the metadata column {name[:60]!r} … is too long: shorten it")
        if values.ndim == 1:
            rows[key] = values.astype(np.float64) if values.dtype.kind in "biuf" else encoded(values)
    return rows


def metadata_columns(rows: RowTable) -> dict[str, np.ndarray]:
    """The metadata of all samples as columns of a table."""
    columns = {unquote(key): rows[key] for key in rows if key.startswith(PREFIX)}
    return {name: decoded(column) if column.ndim == 2 else np.asarray(column) for name, column in columns.items()}
