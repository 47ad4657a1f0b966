"""What the documentation says of faults and hostile input is what the CSVs say."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "faults" / "prose.py"


@pytest.fixture
def prose():
    spec = importlib.util.spec_from_file_location("faults_prose", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_holds_what_was_measured(prose):
    assert prose.missing() == []
    assert len(list(prose.sentences())) == 6


def test_a_page_that_drifts_is_named(prose, monkeypatch, tmp_path):
    (tmp_path / "limits.md").write_text("nothing", encoding="utf-8")
    monkeypatch.setattr(prose, "DOCS", tmp_path)
    assert prose.missing() == list(prose.sentences())


@pytest.mark.parametrize("rows", ["a,7,1", "b,7,0"], ids=["one went wrong", "one is missing"])
def test_a_table_that_does_not_show_it_is_an_error(prose, monkeypatch, tmp_path, rows):
    (tmp_path / "t.csv").write_text(f"what,tried,wrong\n{rows}\nc,1200,0\n")
    monkeypatch.setattr(prose, "HERE", tmp_path)
    assert prose.tried("t", "c") == "1,200"
    with pytest.raises(ValueError, match=r"t\.csv does not show"):
        prose.tried("t", "a", "c")


@pytest.mark.parametrize("table", ["damage", "hostile_files", "bad_inputs", "command_line"])
def test_every_row_names_machine_versions_and_a_commit(table):
    header, *rows = (SCRIPT.parent / f"{table}.csv").read_text().splitlines()
    assert header.split(",")[-6:] == ["cpu", "cores", "python", "torch", "weakspot", "commit"]
    assert rows and not [row for row in rows if row.endswith("-dirty") or "" in row.split(",")]
