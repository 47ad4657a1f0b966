"""What a Run knows of its samples, as one table: out to CSV, and to tools that show samples."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from weakspot.core.errors import DataError
from weakspot.core.files import write_text
from weakspot.core.finding import Finding
from weakspot.core.run import Run
from weakspot.formatting import csv_cell

ID = "id"


def sample_columns(run: Run, *, split: str = "test") -> pa.Table:
    """A row per sample with the columns of all Findings about the split, as "FINDING.COLUMN", in the order of the ids.

    Findings that have several rows per sample, or that were made of other data, are left out.
    """
    data = run.manifest()["data"].get(split, {}).get("fingerprint")
    tables = {
        finding.name: _by_id(finding)
        for finding in run
        if finding.provenance.get("data") == data and _names_samples(finding)
    }
    if not tables:
        raise DataError(f"{run.folder} has no Finding with a row per sample of the split {split!r}: ask more of it")
    ids = sorted(set().union(*tables.values()))
    columns: dict[str, list[Any]] = {ID: list(ids)}
    for name, rows in tables.items():
        for column in next(iter(rows.values()), {}):
            if column != ID:
                columns[f"{name}.{column}"] = [rows.get(sample, {}).get(column) for sample in ids]
    return pa.table(columns)


def write_csv(run: Run, path: str | Path, *, split: str = "test") -> Path:
    """The same as a CSV file, which `metadata:` and spreadsheets read; cells that look like formulas are defused."""
    table = sample_columns(run, split=split)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([csv_cell(value) if isinstance(value, str) else value for value in row.values()])
    write_text(Path(path), text.getvalue())
    return Path(path)


def _names_samples(finding: Finding) -> bool:
    if finding.table is None or ID not in finding.outputs.columns_of_role(finding, "id"):
        return False
    ids = finding.table[ID].to_pylist()
    return bool(ids) and len(set(ids)) == len(ids)


def _by_id(finding: Finding) -> dict[str, dict[str, Any]]:
    assert finding.table is not None
    return {row[ID]: row for row in finding.table.to_pylist()}
