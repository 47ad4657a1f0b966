"""A Finding: what one probe found, as plain numbers, a table, arrays and pictures. Read and written without torch.

The folder it is kept in is described in `docs/format.md`.
"""

import hashlib
import io
import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from weakspot.core.digest import canonical, digest_bytes, digest_file, to_json
from weakspot.core.errors import RunError
from weakspot.core.files import whole_folder, writing

if TYPE_CHECKING:
    import pyarrow as pa  # over a second to import, so only where a table is touched

FORMAT = "weakspot-finding"
VERSION = 1
TABLE = "table.parquet"
_BLOCK = 1 << 20
_NOTEBOOK_ROWS = 5
_NOTEBOOK_PICTURES = 3
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Estimate:
    """One number of a summary, with its interval where chance plays a part.

    `about` says in a few words what the number is; `confidence` belongs to `low` and `high`. A value of None says that
    there is none, for instance a mean over no samples.
    """

    value: float | int | str | bool | None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    about: str = ""

    def __canonical__(self) -> dict[str, Any]:
        """As JSON, without what was not given."""
        given = {key: canonical(item) for key, item in vars(self).items() if item is not None}
        return {"value": None, **{key: item for key, item in given.items() if key != "about" or item}}

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

    `summary`: named estimates · `table`: one row per sample, class pair, lesion … · `arrays`: numpy arrays ·
    `media`: pictures · `provenance`: model, data, parameters, seeds, versions and the Findings it was built from.
    """

    name: str
    about: str = ""
    summary: Mapping[str, Estimate] = field(default_factory=dict)
    table: "pa.Table | None" = None
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    media: Mapping[str, Picture] = field(default_factory=dict)
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

    def with_provenance(self, **entries: Any) -> "Finding":
        """The same Finding with these entries of the provenance set."""
        return replace(self, provenance={**self.provenance, **entries})

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

    def save(self, folder: Path) -> None:
        """Write the Finding as a folder, whole or not at all."""
        with whole_folder(folder) as scratch, writing(folder):
            for name, write in self._files().items():
                with (scratch / name).open("wb") as file:
                    write(file)
            (scratch / "finding.json").write_text(self._index, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, *, table: "pa.Table | None" = None) -> "Finding":
        """Read a Finding; arrays are memory-mapped, not copied, and a `table` that is at hand is not read again."""
        index = read_index(folder / "finding.json", FORMAT, VERSION, UPGRADES)
        try:
            files = set(index["files"])
            for name in (*index["arrays"], *(file for _, file, _ in index["media"])):
                check_name(name)  # before anything is opened: a made-up index must not lead out of the folder
            finding = cls(
                name=index["name"],
                about=index["about"],
                summary={name: Estimate(**_numbers(entry)) for name, entry in index["summary"]},
                table=_read_table(folder / TABLE) if table is None and TABLE in files else table,
                arrays={name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in index["arrays"]},
                media={key: Picture((folder / file).read_bytes(), text) for key, file, text in index["media"]},
                provenance=index["provenance"],
            )
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{folder} is damaged: {error}; delete that folder and examine again") from error
        finding.__dict__["digest"] = digest_file(folder / "finding.json")
        return finding

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
    """Raise if any byte of a saved Finding differs from what its index says."""
    index = read_index(folder / "finding.json", FORMAT, VERSION, UPGRADES)
    present = {path.name for path in folder.iterdir()} - {"finding.json"}
    changed = {name for name in present & index["files"].keys() if digest_file(folder / name) != index["files"][name]}
    wrong = sorted(changed | (present ^ index["files"].keys()))
    if wrong:
        raise RunError(f"{folder} was changed after it was written: {', '.join(wrong)}; examine again")


def check_name(name: str) -> None:
    """Names become file names, so they keep to letters, digits, '_', '-' and '.'."""
    if not _SAFE_NAME.fullmatch(name):
        raise RunError(f"{name!r} cannot be a name: expected letters, digits, '_', '-' and '.', not beginning with '.'")


Upgrades = Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]
"""From an index of version n to one of version n + 1."""
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def read_index(path: Path, expected: str, version: int, upgrades: Upgrades) -> dict[str, Any]:
    """Read a JSON index and bring it up to `version`, refusing another format or a newer version."""
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; is this a weakspot run?") from error
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}; restore it or examine again") from error
    if not isinstance(index, dict) or index.get("format") != expected:
        raise RunError(f"{path} is not a {expected} file; is this a weakspot run?")
    if not isinstance(index.get("version"), int):
        raise RunError(f"{path} is damaged: it says no format version; restore it or examine again")
    if index["version"] > version:
        raise RunError(
            f"{path} has format version {index['version']}, this weakspot reads up to {version}: upgrade weakspot"
        )
    for older in range(index["version"], version):
        if older not in upgrades:
            raise RunError(f"{path} has format version {older}, which this weakspot no longer reads: examine again")
        index = upgrades[older](index)
    return index


def _numbers(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of an Estimate with infinity, which JSON has no number for, as one."""
    return {key: float(item) if item in ("Infinity", "-Infinity") else item for key, item in entry.items()}


def _picture_file(number: int) -> str:
    return f"picture-{number:04d}.png"


def _read_table(path: Path) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    finally:
        pa.default_memory_pool().release_unused()


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
