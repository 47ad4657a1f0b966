"""A copy of a Run to hand on: without pictures, and with pseudonyms in place of ids."""

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.core.outputs import Outputs
from weakspot.core.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_KEY = 16
"""Bytes of a key: a shorter one could be guessed."""
LEFT_OUT = "(left out)"
_METADATA = "metadata."
_MANY = 1000
"""Rows above which the cells of a table are names, and no sentences."""
_LETTERS = 20
"""Hexadecimal digits of a pseudonym: 80 bits, so that no two samples share one."""
_NAMING = ("id", "group")
"""Roles of columns whose values name samples, or what they belong to."""


@dataclass(frozen=True)
class Sharing:
    """What of a Run is left out or renamed.

    pictures: whether pictures stay: those of Findings, and arrays that are pictures or heat maps of pixels.
    metadata: whether columns that came with the data stay; where not, their text is left out wherever it is quoted.
    key: names of samples and of their groups become a keyed hash of them (HMAC-SHA-256): the same key gives the same
        pseudonyms, and without it nobody can tell whose they are. None keeps the names.
    without: Findings that are left out, by name or pattern.
    """

    pictures: bool = True
    metadata: bool = True
    key: bytes | None = field(default=None, repr=False)
    without: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < LEAST_KEY:
            raise ConfigError(f"the key has {len(self.key)} bytes: expected {LEAST_KEY} or more, such as 32 at random")

    def pseudonym(self, name: str) -> str:
        """What stands for a name."""
        return name if self.key is None else hmac.new(self.key, name.encode(), "sha256").hexdigest()[:_LETTERS]


def random_key() -> bytes:
    """A key that is used once: two copies made with random keys cannot be joined."""
    return secrets.token_bytes(32)


def shared_run(run: Run, folder: str | Path, sharing: Sharing) -> Run:
    """A copy of a Run in a new folder: its Findings, with what is not to be handed on left out or renamed.

    What was computed on the way, labels given by people, and answers by which a model is known again stay behind.
    """
    target = Path(folder)
    if target.exists():
        raise ConfigError(f"{folder} exists already: choose another folder, or remove it")
    findings = [one for one in run if not any(fnmatchcase(one.name, pattern) for pattern in sharing.without)]
    values = frozenset[str]() if sharing.metadata else _metadata_values(findings)
    renaming = Renaming(sharing, _names(findings), values)
    copies = [_shared(finding, sharing, renaming) for finding in findings]
    manifest, copied = run.manifest(), Run.create(target)
    for finding in copies:
        copied.save(finding)
    asked = [name for name in manifest.get("asked", []) if name in copied]
    copied.describe(subject=renaming.plain(manifest["subject"]), data=renaming.plain(manifest["data"]), asked=asked)
    return copied


@dataclass(frozen=True)
class Renaming:
    """Puts pseudonyms in place of names, wherever they stand."""

    sharing: Sharing
    names: frozenset[str]
    values: frozenset[str]

    @cached_property
    def changes(self) -> dict[str, str]:
        """What stands for what: pseudonyms for names, and a word for what is left out."""
        named = {} if self.sharing.key is None else {name: self.sharing.pseudonym(name) for name in self.names}
        return {**named, **dict.fromkeys(self.values, LEFT_OUT)}

    @cached_property
    def _in_text(self) -> list[str]:
        """What to look for inside a text, the longest first; mere numbers could mean anything there."""
        return sorted((name for name in self.changes if not name.isdecimal()), key=lambda name: (-len(name), name))

    def cell(self, text: str) -> str:
        """A value that is a name, or a list of names."""
        return ", ".join(self.changes.get(part, part) for part in text.split(", "))

    def text(self, text: str) -> str:
        """A sentence in which names occur."""
        whole = self.cell(text)
        if whole != text:
            return whole
        for name in self._in_text:
            if name in text:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", self.changes[name], text)
        return text

    def plain(self, value: Any) -> Any:
        """All text in mappings and lists, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.plain(item) for key, item in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list | tuple) else value


def _names(findings: Iterable[Finding]) -> frozenset[str]:
    """The ids of all samples, and the names of their groups."""
    names: set[str] = set()
    for finding in findings:
        for role in _NAMING:
            for column in finding.outputs.columns_of_role(finding, role):  # type: ignore[arg-type]
                names |= set(map(str, finding.table[column].to_pylist()))  # type: ignore[index]
        for name, array in finding.arrays.items():
            if name == "id" or name.endswith("_id"):
                names |= set(np.asarray(array).astype(np.str_).ravel().tolist())
        skipped = finding.provenance.get("skipped", {})
        names |= set(skipped) if isinstance(skipped, Mapping) else set()
    return frozenset(names - {""})


def _metadata_values(findings: Iterable[Finding]) -> frozenset[str]:
    """All text in columns that came with the data."""
    values: set[str] = set()
    for finding in findings:
        for name in [] if finding.table is None else finding.table.column_names:
            if _of_metadata(name, finding.outputs):
                values |= {cell for cell in finding.table[name].to_pylist() if isinstance(cell, str)}  # type: ignore[index]
    return frozenset(values - {""})


def _of_metadata(column: str, outputs: Outputs) -> bool:
    return column.startswith(_METADATA) or outputs.column(column).role == "metadata"


def _shared(finding: Finding, sharing: Sharing, renaming: Renaming) -> Finding:
    arrays = {
        name: _renamed_array(np.asarray(array), renaming)
        for name, array in finding.arrays.items()
        if sharing.pictures or not _is_picture(np.asarray(array), finding.outputs.array(name).axes)
    }
    media = {renaming.text(key): Picture(one.png, renaming.text(one.caption)) for key, one in finding.media.items()}
    return Finding(
        name=finding.name,
        about=finding.about,
        summary={name: _renamed_number(one, renaming) for name, one in finding.summary.items()},
        table=None if finding.table is None else _renamed_table(finding.table, finding.outputs, sharing, renaming),
        arrays=arrays,
        media=media if sharing.pictures else {},
        outputs=finding.outputs,
        provenance={**renaming.plain(finding.provenance), "shared": _said(sharing, finding)},
    )


def _said(sharing: Sharing, finding: Finding) -> dict[str, Any]:
    """What was done, so that nobody takes the copy for the original."""
    return {
        "of": finding.digest,
        "pictures": sharing.pictures,
        "metadata": sharing.metadata,
        "pseudonyms": sharing.key is not None,
    }


def _is_picture(array: np.ndarray, axes: Sequence[str]) -> bool:
    """Arrays of bytes in three and more dimensions, and those declared as heat maps or volumes by their axes."""
    flat_or_volume = {"height", "width"} <= set(axes) or {"y", "x"} <= set(axes)
    return (array.dtype == np.uint8 and array.ndim >= 3) or flat_or_volume


def _renamed_array(array: np.ndarray, renaming: Renaming) -> np.ndarray:
    if array.dtype.kind != "U" or not renaming.changes:
        return array
    values = [renaming.cell(str(value)) for value in array.ravel()]
    return np.array(values, dtype=np.str_).reshape(array.shape)


def _renamed_number(estimate: Estimate, renaming: Renaming) -> Estimate:
    value = renaming.text(estimate.value) if isinstance(estimate.value, str) else estimate.value
    return replace(estimate, value=value, about=renaming.text(estimate.about))


def _renamed_table(table: "pa.Table", outputs: Outputs, sharing: Sharing, renaming: Renaming) -> "pa.Table":
    import pyarrow as pa

    if not sharing.metadata:
        table = table.select([name for name in table.column_names if not _of_metadata(name, outputs)])
    for place, entry in enumerate(table.schema if renaming.changes else ()):
        if pa.types.is_string(entry.type) or pa.types.is_large_string(entry.type):
            change = renaming.cell if len(table) > _MANY else renaming.text
            cells = [None if cell is None else change(cell) for cell in table[entry.name].to_pylist()]
            table = table.set_column(place, entry.name, pa.array(cells, entry.type))
    return table
