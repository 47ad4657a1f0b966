"""A Finding: what one probe found, as plain numbers, a table, arrays and pictures. Read and written without torch.

The folder it is kept in is described in `docs/format.md`.
"""

import hashlib
import io
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from weakspot.core.digest import canonical, digest_bytes, digest_file, to_json
from weakspot.core.errors import Damaged, RunError
from weakspot.core.files import check_own_file, whole_folder, writing
from weakspot.core.guarded_open import let_small_go, map_array
from weakspot.core.index_checks import check_name, odd_parts, read_index, read_picture, too_many_open
from weakspot.core.outputs import Headline, Outputs
from weakspot.core.sealed import changed

if TYPE_CHECKING:
    import pyarrow as pa  # over a second to import, so only where a table is touched

FORMAT = "weakspot-finding"
VERSION = 2
TABLE = "table.parquet"
INDEX = "finding.json"
_BLOCK = 1 << 20
_NOTEBOOK_ROWS = 5
_NOTEBOOK_PICTURES = 3
_SHOWN_NUMBERS = 3
_NEGATED = "not "


@dataclass(frozen=True)
class Estimate:
    """One number of a summary, with its interval where chance plays a part.

    value: None where there is none, for instance a mean over no samples.
    low, high: the interval, where there is one.
    confidence: of the interval.
    about: what the number is, in a few words.
    """

    value: float | int | str | bool | None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    about: str = ""

    def __canonical__(self) -> dict[str, Any]:
        """As JSON, without what was not given."""
        entries = {key: canonical(item) for key, item in vars(self).items() if item is not None}
        return {"value": None, **{key: item for key, item in entries.items() if key != "about" or item}}

    def __float__(self) -> float:
        if self.value is None or isinstance(self.value, str):
            raise TypeError(f"the value {self.value!r} is no number")
        return float(self.value)

    def __str__(self) -> str:
        value = (
            f"{self.value:.4g}" if isinstance(self.value, float) else "none" if self.value is None else str(self.value)
        )
        return value if self.low is None or self.high is None else f"{value} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Picture:
    """A PNG image with the sentence that belongs under it."""

    png: bytes
    caption: str


@dataclass(frozen=True)
class Finding:
    """What a probe found.

    summary: estimates by name.
    table: one row per sample, class pair, lesion …
    arrays: numpy arrays by name.
    media: pictures.
    outputs: what all of these are, in which unit, and which way is better.
    provenance: model, data, parameters, seeds, versions and the Findings it was built from.
    """

    name: str
    about: str = ""
    summary: Mapping[str, Estimate] = field(default_factory=dict)
    table: "pa.Table | None" = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    media: Mapping[str, Picture] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=Outputs)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)
        for name in self.arrays:
            check_name(name)

    def __canonical__(self) -> str:
        """Where a Finding is an option of a later probe, its digest stands for it."""
        return self.digest

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the index, which holds the SHA-256 of every file: it covers everything, provenance included."""
        return digest_bytes(self._index.encode())

    def answers(self) -> list[Headline]:
        """The declared sentences of which all numbers have a value."""
        known = {name for name, estimate in self.summary.items() if estimate.value is not None}
        return [one for one in self.outputs.headlines if set(one.names()) <= known]

    def with_provenance(self, **entries: Any) -> "Finding":
        """The same Finding with these entries of the provenance set."""
        return replace(self, provenance={**self.provenance, **entries})

    def __repr__(self) -> str:
        first = list(self.summary.items())[:_SHOWN_NUMBERS]
        more = [f"{len(self.summary) - len(first)} more numbers"] if len(self.summary) > len(first) else []
        rows = [] if self.table is None else [f"table of {self.table.num_rows:,} rows"]
        parts = [self.name, *(f"{name} {estimate}" for name, estimate in first), *more, *rows]
        return f"Finding({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the numbers with their intervals, the first rows of the table, the first pictures."""
        numbers = [[name, str(estimate), estimate.about] for name, estimate in self.summary.items()]
        table = "" if self.table is None else _html_table(self.table.column_names, _first_rows(self.table))
        pictures = "".join(
            f'<figure><img alt="Picture {escape(key)}" src="data:image/png;base64,{b64encode(shown.png).decode()}">'
            f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
            for key, shown in list(self.media.items())[:_NOTEBOOK_PICTURES]
        )
        head = f"<p><b>{escape(self.name)}</b> {escape(self.about)}</p>"
        return head + _html_table(["number", "value", "about"], numbers) + pictures + table

    def save(self, folder: str | Path) -> None:
        """Write the Finding as a folder, whole or not at all."""
        folder = Path(folder)
        with whole_folder(folder) as scratch, writing(folder):
            for name, write in self._files().items():
                with (scratch / name).open("wb") as file:
                    write(file)
            (scratch / INDEX).write_text(self._index, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, *, table: "pa.Table | None" = None) -> "Finding":
        """Read a Finding; arrays are memory-mapped, not copied, and a `table` that is at hand is not read again.

        Only plain files that lie in the folder itself are opened: a Run may come from somebody else.
        """
        folder = Path(folder)
        index = finding_index(folder)
        try:
            head = finding_head(index)
            has_table = table is None and TABLE in index["files"]
            finding = replace(
                head,
                table=_read_table(folder / TABLE, index) if has_table else table,
                arrays={name: _array(folder / array_file(index, name)) for name in index["arrays"]},
                media={key: Picture(read_picture(folder / file), text) for key, file, text in index["media"]},
            )
        except OSError as error:
            raise _unreadable(folder, error) from error
        except (EOFError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise _damaged(folder, str(error)) from error
        finding.__dict__["digest"] = digest_file(folder / INDEX)
        return finding

    @classmethod
    def load_head(cls, folder: Path) -> "Finding":
        """What the index of a Finding says: without table and arrays, and with pictures that are empty."""
        index = finding_index(folder)
        try:
            head = finding_head(index)
            head.__dict__["digest"] = digest_file(folder / INDEX)
        except OSError as error:
            raise _unreadable(folder, error) from error
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise _damaged(folder, str(error)) from error
        return head

    def _files(self) -> dict[str, Callable[[IO[bytes]], Any]]:
        """Every file of the folder but the index, with what writes it."""
        table = {} if self.table is None else {TABLE: partial(_write_table, self.table)}
        arrays = {f"{name}.npy": partial(_write_array, array) for name, array in self.arrays.items()}
        media = {_picture_file(i): partial(_write_bytes, shown.png) for i, shown in enumerate(self.media.values())}
        return {**table, **arrays, **media}

    @cached_property
    def _index(self) -> str:
        return to_json(
            {
                "format": FORMAT,
                "version": VERSION,
                "name": self.name,
                "about": self.about,
                "summary": [[name, estimate] for name, estimate in self.summary.items()],
                "arrays": list(self.arrays),
                "media": [[key, _picture_file(i), shown.caption] for i, (key, shown) in enumerate(self.media.items())],
                "files": {name: _written_digest(write) for name, write in self._files().items()},
                "outputs": self.outputs,
                "provenance": self.provenance,
            }
        )


def _first_rows(table: "pa.Table") -> list[tuple[Any, ...]]:
    import pyarrow as pa

    first = [column.slice(0, _NOTEBOOK_ROWS) for column in table.columns]
    # Python's own dates have no nanoseconds, and pyarrow refuses to drop them
    plain = [column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in first]
    return list(zip(*(column.to_pylist() for column in plain), strict=True))


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if rows else ""


def table_of(columns: Mapping[str, Any]) -> "pa.Table":
    """A table from its columns."""
    import pyarrow as pa  # over a second to import, so not before the first table

    return pa.table({name: np.asarray(column) for name, column in columns.items()})


def verify(folder: Path) -> None:
    """Raise if any byte of a saved Finding differs from what its index says, or if anything in it is no plain file."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        check_own_file(path)
    index = finding_index(folder)
    try:
        differing = changed(folder, index["files"], besides=INDEX)
    except OSError as error:
        raise _unreadable(folder, error) from error
    if differing:
        raise Damaged(folder, f"it was changed after it was written: {', '.join(differing)}")


def _unreadable(folder: Path, error: OSError) -> RunError:
    return too_many_open(error) or _damaged(folder, f"{error.filename or folder}: {error.strerror or error}")


def _damaged(folder: Path, reason: str) -> Damaged:
    return Damaged(folder, reason, "delete that folder and examine again")


def _from_version_1(index: dict[str, Any]) -> dict[str, Any]:
    """What a Finding of version 1 holds is declared by its room, which this module must not know."""
    upgraded: dict[str, Any] = import_module("weakspot.upgrades").finding_from_1(index)
    return upgraded


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_version_1}


def finding_index(folder: Path) -> dict[str, Any]:
    """The index of a Finding, with every part of the kind that the format says and no name that leads elsewhere."""
    index = read_index(folder / INDEX, FORMAT, VERSION, UPGRADES)
    odd = next(odd_parts(index), None)
    if odd is not None:
        raise _damaged(folder, odd)
    arrays = (array_file(index, name) for name in index["arrays"])
    for name in (*index["arrays"], *arrays, *index["files"], *(file for _, file, _ in index["media"])):
        check_name(name)  # before anything is opened: a made-up index must not lead out of the folder
    return index


def finding_head(index: Mapping[str, Any]) -> Finding:
    """A Finding without table, arrays and content of pictures: what its index says."""
    return Finding(
        name=index["name"],
        about=index["about"],
        summary={str(name): _estimate(entry) for name, entry in index["summary"]},
        media={key: Picture(b"", caption) for key, _, caption in index["media"]},
        outputs=Outputs.from_json(_mapping(index.get("outputs", {}), "outputs")),
        provenance=index["provenance"],
    )


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"its {what} is no mapping")
    return value


def _estimate(entry: Mapping[str, Any]) -> Estimate:
    """A number of a summary; infinity, which JSON has no number for, stands there as text."""
    keys = {"value", "low", "high", "confidence", "about"}
    if not {"value"} <= entry.keys() <= keys:
        raise ValueError(f"a number of its summary has the keys {', '.join(map(repr, entry))}")
    numbers: dict[str, Any] = {
        key: float(item) if item in ("Infinity", "-Infinity") else item for key, item in entry.items()
    }
    ends = [numbers.get(key) for key in ("low", "high", "confidence")]
    value = numbers["value"]
    plain = value is None or isinstance(value, str | bool) or _is_number(value)
    sound = plain and all(end is None or _is_number(end) for end in ends)
    if not sound or not isinstance(numbers.get("about", ""), str):
        raise ValueError("a number of its summary is none")
    return Estimate(**numbers)


def _is_number(value: Any) -> bool:
    """A number that a float can hold."""
    return isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max)


def _picture_file(number: int) -> str:
    return f"picture-{number:04d}.png"


def array_file(index: Mapping[str, Any], name: str) -> str:
    """The file of an array: in a Finding of an older version it may have another name."""
    return f"{index.get('array_files', {}).get(name, name)}.npy"


def column_names(index: Mapping[str, Any], written: Sequence[str]) -> list[str]:
    """What the columns of a table are called today, given their names on the disk."""
    renamed = index.get("renamed_columns", {})
    return [str(renamed.get(name, name)).removeprefix(_NEGATED) for name in written]


def _array(path: Path) -> np.ndarray:
    return let_small_go(map_array(path, links=False))


def _read_table(path: Path, index: Mapping[str, Any]) -> "pa.Table":
    import pyarrow.compute as pc

    from weakspot.core.guarded_table import read_table

    table = read_table(path, links=False)
    renamed = index.get("renamed_columns", {})
    for number, name in enumerate(table.column_names):
        if str(renamed.get(name, "")).startswith(_NEGATED):
            table = table.set_column(number, name, pc.invert(table[name]))
    return table.rename_columns(column_names(index, table.column_names)) if renamed else table


def _write_table(table: "pa.Table", file: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(table, file, compression="zstd", use_dictionary=False)
    pa.default_memory_pool().release_unused()  # Arrow keeps what it used for writing, several times the table


def _write_array(array: np.ndarray, file: IO[bytes]) -> None:
    """As `np.save` does, but in small blocks, so that a mapped array never comes into memory whole."""
    whole = np.asarray(array, order="C")
    if whole.dtype.hasobject:
        raise RunError("an array of Python objects cannot be saved: use numbers or a table")
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(whole))
    flat = whole.reshape(-1)
    step = max(1, _BLOCK // max(1, whole.itemsize))
    for start in range(0, flat.size, step):
        file.write(flat[start : start + step].tobytes())


def _write_bytes(data: bytes, file: IO[bytes]) -> None:
    file.write(data)


class _Hashing(io.RawIOBase):
    """A file that keeps nothing but the SHA-256 of what was written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return memoryview(data).nbytes


def _written_digest(write: Callable[[IO[bytes]], Any]) -> str:
    sink = _Hashing()
    write(cast(IO[bytes], sink))
    return sink.sha256.hexdigest()
