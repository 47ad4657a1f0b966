"""Images listed in a CSV file, with their targets and whatever else is known of them."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.tasks import Task
from weakspot.data.framing import Framing, Size
from weakspot.data.image_source import ImageSource, read_file
from weakspot.data.images import Mode
from weakspot.data.names import listed, unique_ids
from weakspot.data.tables import Table, read_csv, typed
from weakspot.data.targets import class_numbers, label_lists, label_vectors, number_columns


class ImageManifest(ImageSource):
    """Images listed in a CSV file, one per line, under a first line that names the columns.

    task: what the targets are: a class's name or number (classification); a list of names such as `cat;dog`, or a
        column of 0 and 1 per class (multilabel); numbers (regression); x and y of each point (keypoints).
    targets: the column of the target, or a list of columns; by default `target`, or `target_0`, `target_1` …, or, for
        keypoints, `x_0`, `y_0`, `x_1` …; a file without any has no targets.
    classes: names in the order of the model's outputs; by default the names that occur, in alphabetical order, or the
        columns' names.
    path_column: holds the images' paths.
    root: where relative paths start; by default the file's folder.
    id_column: holds the ids; by default `id` where there is one, else the path below `root` is the id.
    separator: between the names in a list of labels.
    delimiter: between the cells of the file.
    mode, size: as for `ImageFolder`; coordinates of keypoints are taken as they are.

    All other columns are metadata.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        task: Task = "classification",
        targets: str | Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        path_column: str = "path",
        id_column: str | None = None,
        root: str | Path | None = None,
        separator: str = ";",
        delimiter: str = ",",
        mode: Mode = "RGB",
        size: Size | Framing | None = None,
    ):
        if not separator:
            raise ConfigError("separator is '': expected the text between the names of labels, as ';'")
        table = read_csv(Path(path), delimiter=delimiter)
        self._root = Path(path).parent if root is None else Path(root)
        self._paths = [str(cell) for cell in table.column(path_column, "path_column")]
        if not self._paths:
            raise DataError(f"{path} lists no images: expected a line for each below the first")
        names = id_column or ("id" if "id" in table.columns else None)
        columns = _target_columns(table, targets, task)
        class_names, values = _targets(table, columns, task, classes, separator, listed_names=not _is_list(targets))
        super().__init__(
            self._ids(table, names),
            classes=class_names,
            targets=values,
            mode=mode,
            size=size,
            metadata={
                name: typed(cells)
                for name, cells in table.columns.items()
                if name not in (path_column, names, *columns)
            },
        )

    def _ids(self, table: Table, column: str | None) -> tuple[str, ...]:
        if column is not None:
            return unique_ids(table.column(column, "id_column"), advice=f"name each once in column {column!r}")
        ids = [_id_of(cell, self._root, line) for cell, line in zip(self._paths, table.places, strict=True)]
        return unique_ids(ids, advice="remove one, or add a column `id`")

    def content(self, position: int) -> bytes:
        """The bytes of one file."""
        return read_file(self._root / self._paths[position], self.ids[position])


def _id_of(cell: str, root: Path, line: str) -> str:
    if not cell.strip():
        raise DataError(f"{line}: the path is missing")
    if not os.path.isabs(cell):  # noqa: PTH117 - a path object per file takes seconds
        return os.path.normpath(cell).replace(os.sep, "/")
    below = os.path.relpath(cell, root.absolute())
    if below.startswith(os.pardir):
        raise DataError(
            f"{line}: {cell} does not lie below {root}, so its id would depend on where the data are: give root, the "
            "folder that ids start from, or add a column `id`"
        )
    return below.replace(os.sep, "/")


def _is_list(targets: str | Sequence[str] | None) -> bool:
    return targets is not None and not isinstance(targets, str)


def _target_columns(table: Table, targets: str | Sequence[str] | None, task: Task) -> list[str]:
    if targets is not None:
        columns = [targets] if isinstance(targets, str) else list(targets)
        for name in columns:
            table.column(name, "targets")
        return columns
    if "target" in table.columns:
        return ["target"]
    return _counted(table, ("target",)) or (_counted(table, ("x", "y")) if task == "keypoints" else [])


def _counted(table: Table, stems: Sequence[str]) -> list[str]:
    """Columns such as `x_0`, `y_0`, `x_1` …, in the order of their numbers; none may be missing."""
    pattern = re.compile(rf"({'|'.join(stems)})_([0-9]+)")
    numbered = {match.group(0) for match in map(pattern.fullmatch, table.columns) if match}
    expected = [f"{stem}_{number}" for number in range(-(-len(numbered) // len(stems))) for stem in stems]
    missing = [name for name in expected if name not in numbered]
    if missing:
        raise DataError(f"{table.name} has columns {listed(sorted(numbered))}, but not {missing[0]}: count from 0")
    return expected


def _targets(
    table: Table,
    columns: Sequence[str],
    task: Task,
    classes: Sequence[str] | None,
    separator: str,
    *,
    listed_names: bool,
) -> tuple[tuple[str, ...] | None, np.ndarray | None]:
    named = None if classes is None else tuple(classes)
    if not columns:
        return named, None
    cells = [table.columns[name] for name in columns]
    try:
        if task == "classification":
            _check_count(columns, 1, task)
            numbers, class_names = class_numbers(cells[0], table.places, named)
            return class_names, numbers
        if task == "multilabel" and len(columns) == 1 and listed_names:
            vectors, names = label_lists(cells[0], table.places, named, separator)
            return names, vectors
        if task == "multilabel":
            _check_count(columns, len(columns) if named is None else len(named), task)
            vectors, names = label_vectors(cells, table.places, named or columns)
            return names, vectors
        if task in ("regression", "keypoints"):
            _check_count(columns, len(columns) + (len(columns) % 2 if task == "keypoints" else 0), task)
            return named, number_columns(cells, table.places, columns)
    except DataError as error:
        raise DataError(f"{table.name}, {error}") from error
    raise ConfigError(f"a manifest has no targets for {task}: choose from {', '.join(get_args(Task)[:4])}")


def _check_count(columns: Sequence[str], expected: int, task: Task) -> None:
    if len(columns) != expected:
        raise ConfigError(f"{task} needs {expected} target columns, got {len(columns)}: {listed(columns)}")
