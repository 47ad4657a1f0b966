"""FiftyOne: samples with what a Run knows of them, clusters and heat maps, saved views; and labels back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import Run
from weakspot.data.tables import read_csv
from weakspot.formatting import csv_cell
from weakspot.integrations.needed import needed
from weakspot.integrations.sample_tables import ID, sample_columns

FIELD = "weakspot_id"
"""The field of a sample that holds its id in weakspot."""
CLUSTER, HEAT_MAP = "weakspot_cluster", "weakspot_heat_map"
_CAUSES = "causes.root_causes"
_VIEWS = {
    "weakspot errors": ("causes_errors_correct", False),
    "weakspot weak": ("robustness_neighbour_accuracy_weak", True),
    "weakspot leaked": ("coverage_duplicates_leaked", True),
}
"""Saved views: the field, and the value that is shown."""


def to_fiftyone(
    run: Run,
    files: Mapping[str, str],
    *,
    name: str,
    split: str = "test",
    dataset: Any = None,
    tags: Mapping[str, str | Path] | None = None,
) -> Any:
    """A dataset of FiftyOne with a sample for each input that has a file, or a given dataset with fields added.

    files: the image file of each input, by its id.
    name: of the new dataset.
    dataset: one that is there already; its samples are found by file, and get fields.
    tags: by tag, a CSV file with a column `id` of the samples to tag, such as a selection saved in the viewer.

    Columns of Findings become fields, "FINDING.COLUMN" with "_" for "."; root-cause clusters become classifications,
    and heat maps of errors are drawn over their images. Views of errors, weak and leaked inputs are saved.
    """
    fiftyone = needed("fiftyone", "fiftyone")
    table = sample_columns(run, split=split)
    rows = {row[ID]: row for row in table.to_pylist() if row[ID] in files}
    if not rows:
        raise DataError(f"none of the {table.num_rows} inputs of {run.folder} has a file: give them by id")
    made = dataset if dataset is not None else fiftyone.Dataset(name)
    known = {sample.filepath: sample for sample in made}
    clusters, maps = _clusters(run), _heat_maps(run)
    tagged = {tag: set(read_csv(Path(path)).column(ID, "tags")) for tag, path in (tags or {}).items()}
    added = []
    for sample_id, row in rows.items():
        sample = known.get(files[sample_id]) or fiftyone.Sample(filepath=files[sample_id])
        sample[FIELD] = sample_id
        for column, value in row.items():
            if column != ID and value is not None:
                sample[_field(column)] = value
        _tag(sample, sample_id, tagged)
        if sample_id in clusters:
            sample[CLUSTER] = fiftyone.Classification(label=f"cluster {clusters[sample_id]}")
            if sample_id in maps:
                sample[HEAT_MAP] = fiftyone.Heatmap(map=maps[sample_id], range=[0.0, 1.0])
        if files[sample_id] in known:
            sample.save()
        else:
            added.append(sample)
    made.add_samples(added)
    _save_views(fiftyone, made, table.column_names)
    return made


def _tag(sample: Any, sample_id: str, tagged: Mapping[str, set[str]]) -> None:
    own = {sample_id, csv_cell(sample_id)}
    sample.tags = [*sample.tags, *(tag for tag, ids in tagged.items() if own & ids and tag not in sample.tags)]


def labels_from_fiftyone(dataset: Any, field: str) -> dict[str, str]:
    """The labels that people gave in a field of a dataset, by weakspot's ids; for `causes.labelling` and `targets_of`.

    A field of classifications, or of text. Samples without a label are left out.
    """
    labels = {}
    for sample in dataset:
        if not sample.has_field(field):
            raise ConfigError(f"the dataset has no field {field!r}: name the one that holds the labels")
        value = sample[field]
        label = getattr(value, "label", value)
        if label is not None and sample[FIELD] is not None:
            labels[str(sample[FIELD])] = str(label)
    return labels


def _field(column: str) -> str:
    return column.replace(".", "_").replace(" ", "_")


def _clusters(run: Run) -> dict[str, int]:
    """The root-cause cluster of each error-inducing image; those in none are left out."""
    if _CAUSES not in run:
        return {}
    arrays = run[_CAUSES].arrays
    pairs = zip(np.asarray(arrays["image_id"]).tolist(), np.asarray(arrays["image_cluster"]).tolist(), strict=True)
    return {str(name): int(number) for name, number in pairs if number > 0} if "image_cluster" in arrays else {}


def _heat_maps(run: Run) -> dict[str, Any]:
    """The size of each pixel's relevance, from 0 to 1, for error-inducing images of which the Run keeps pictures."""
    arrays = run[_CAUSES].arrays if _CAUSES in run else {}
    if "heat_pictures" not in arrays:
        return {}
    pictures = np.abs(np.asarray(arrays["heat_pictures"], dtype=np.float32))
    return dict(zip(map(str, np.asarray(arrays["image_id"]).tolist()), pictures, strict=True))


def _save_views(fiftyone: Any, dataset: Any, columns: list[str]) -> None:
    fields = {_field(column) for column in columns}
    for name, (field, value) in _VIEWS.items():
        if field in fields:
            dataset.save_view(name, dataset.match(fiftyone.ViewField(field) == value), overwrite=True)
    if dataset.has_sample_field(CLUSTER):
        dataset.save_view("weakspot clusters", dataset.exists(CLUSTER), overwrite=True)
