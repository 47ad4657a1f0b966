"""Numbers and sample columns of a Run, as other tools take them."""

import csv

import pytest

from weakspot.core.errors import DataError
from weakspot.integrations import run_numbers, sample_columns, write_csv


def test_numbers_are_flat_with_the_ends_of_their_intervals(run):
    numbers = run_numbers(run)
    accuracy = run["robustness.neighbour_accuracy"].summary["accuracy"]
    for end, value in (("", accuracy.value), (".low", accuracy.low), (".high", accuracy.high)):
        assert numbers[f"robustness.neighbour_accuracy/accuracy{end}"] == value
    assert numbers["robustness.neighbour_accuracy/sample_groups"] == 10
    assert all(isinstance(value, float) for value in numbers.values())


def test_samples_are_joined_by_their_ids(run):
    table = sample_columns(run)
    assert table["id"].to_pylist() == [f"image {n:02d}" for n in range(30)]
    errors = run["causes.errors"].table.sort_by("id")
    assert table["causes.errors.correct"].to_pylist() == errors["correct"].to_pylist()
    assert table["robustness.neighbour_accuracy.sample_group"].to_pylist()[3] == "film 1"
    with pytest.raises(DataError, match="no Finding with a row per sample of the split 'pool'"):
        sample_columns(run, split="pool")


def test_a_csv_file_comes_back_as_metadata(run, source, tmp_path):
    from weakspot.data.sources import WithMetadata

    path = write_csv(run, tmp_path / "samples.csv")
    with path.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 30
    joined = WithMetadata(source, path)
    column = joined.metadata["causes.errors.correct"]
    table = sample_columns(run)
    assert column.tolist() == [str(one) for one in table["causes.errors.correct"].to_pylist()]


def test_evidence_assumes_that_groups_are_independent(run, tmp_path):
    from weakspot.evidence import verify_bundle, write_bundle

    write_bundle(run, tmp_path / "evidence")
    text = (tmp_path / "evidence" / "evidence.md").read_text()
    assert "The groups of samples that belong together, by group, are drawn independently" in text
    assert "The samples of each split are drawn independently" not in text
    assert verify_bundle(tmp_path / "evidence", run=run.folder).claims > 0
