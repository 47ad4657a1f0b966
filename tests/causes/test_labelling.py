import csv
import shutil
import subprocess
import sys

import numpy as np
import pytest

from weakspot.causes.labelling import current_labels, export_labels, import_labels, read_labels
from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run


@pytest.fixture
def run(examined, tmp_path):
    """A copy of the examined Run, to write to."""
    shutil.copytree(examined.folder, tmp_path / "run")
    return Run.open(tmp_path / "run")


def unsafe(ids=("a", "=b", "c"), task="classification", classes=("cat", "dog"), outputs=2):
    arrays = {"task": np.array(task), "classes": np.array(classes, dtype=np.str_), "outputs": np.array(outputs)}
    table = {"id": list(ids), "cluster": [1] * len(ids), "distance": [0.5] * len(ids), "prediction": ["cat"] * len(ids)}
    return Finding(name="causes.unsafe", table=table_of(table), arrays=arrays)


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_out_and_in_again(run, tmp_path):
    chosen = run["causes.unsafe"]
    export_labels(chosen, tmp_path / "labels.csv")
    header, *rows = rows_of(tmp_path / "labels.csv")
    assert header == ["id", "cluster", "distance", "label"]
    assert [row[0] for row in rows] == chosen.table["id"].to_pylist()
    assert {row[3] for row in rows} == {""}
    for number, row in enumerate(rows[:5]):
        row[3] = ("x", "y", "2")[number % 3]
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row) for row in [header, *rows]))
    found = import_labels(run, tmp_path / "labels.csv")
    assert (found.summary["labelled"].value, found.summary["missing"].value) == (5, 7)
    run.verify()
    assert run["causes.labels"].table.column_names == ["id", "cluster", "label"]
    assert run["causes.labels"].table["label"].to_pylist() == ["x", "y", "z", "x", "y", *[None] * 7]
    assert run["causes.labels"].table["cluster"].to_pylist() == chosen.table["cluster"].to_pylist()


def test_later_labels_join_earlier_ones(run, tmp_path):
    ids = run["causes.unsafe"].table["id"].to_pylist()
    (tmp_path / "one.csv").write_text(f"id,label\n{ids[0]},x\n{ids[1]},x\n")
    (tmp_path / "two.csv").write_text(f"label;id\ny;{ids[1]}\n;{ids[0]}\nz;{ids[2]}\n")  # as some spreadsheets save it
    import_labels(run, tmp_path / "one.csv")
    found = import_labels(run, tmp_path / "two.csv")
    assert found.table["label"].to_pylist()[:3] == ["x", "y", "z"]
    export_labels(run["causes.unsafe"], tmp_path / "again.csv", labels=current_labels(run))
    assert [row[3] for row in rows_of(tmp_path / "again.csv")[1:4]] == ["x", "y", "z"]


def test_labels_of_an_earlier_unsafe_set_are_kept_in_no_cluster(tmp_path):
    run = Run.create(tmp_path / "run")
    run.save(unsafe(["a", "b"]))
    (tmp_path / "one.csv").write_text("id,label\na,cat\n")
    import_labels(run, tmp_path / "one.csv")
    run.save(unsafe(["b", "c"]))
    (tmp_path / "two.csv").write_text("id,label\nc,dog\n")
    found = import_labels(run, tmp_path / "two.csv")
    assert [tuple(row.values()) for row in found.table.to_pylist()] == [
        ("b", 1, None),
        ("c", 1, "dog"),
        ("a", 0, "cat"),
    ]
    assert found.summary["earlier"].value == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id,label\na,cat\nx,dog\n", r"labels.csv:3: 'x' is not an image to label"),
        ("id,label\na,dgo\n", r"labels.csv:2: 'dgo' is not a class: did you mean 'dog'\? there are cat, dog"),
        ("id,label\na,7\n", r"labels.csv:2: '7' is not a class"),
        ("id,label\na,cat\na,\n", r"labels.csv:3: 'a' is in the file twice"),
        ("id,label\na,cat,dog\n", r"labels.csv, line 2: 3 cells, the first line names 2 columns"),
        ("id,lable\na,cat\n", r"has no column 'label' .*did you mean 'lable'"),
        ("", "is empty"),
    ],
)
def test_mistakes_are_told_with_their_line_and_nothing_is_stored(tmp_path, text, told):
    run = Run.create(tmp_path / "run")
    run.save(unsafe())
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises((DataError, ConfigError), match=told):
        import_labels(run, tmp_path / "labels.csv")
    assert "causes.labels" not in run


def test_several_mistakes_are_told_at_once(tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"q{number},cat\n" for number in range(9)))
    with pytest.raises(DataError, match=r"labels.csv:2: .*labels.csv:6: .*and 4 more"):
        read_labels(unsafe(), tmp_path / "labels.csv")


@pytest.mark.parametrize(
    ("finding", "label", "kept"),
    [
        (unsafe(task="multilabel"), "dog; cat", "dog;cat"),
        (unsafe(task="multilabel"), ";", ";"),
        (unsafe(task="regression", classes=(), outputs=1), "-1.5", "-1.5"),
        (unsafe(task="keypoints", classes=(), outputs=2), "1 2e1", "1.0 20.0"),
    ],
)
def test_labels_of_every_task(finding, label, kept, tmp_path):
    (tmp_path / "labels.csv").write_text(f'id,label\na,"{label}"\n')
    assert read_labels(finding, tmp_path / "labels.csv") == {"a": kept}


@pytest.mark.parametrize("label", ["1", "1 2 3", "nan 1", "left", "inf 0"])
def test_other_than_the_expected_numbers_are_refused(label, tmp_path):
    (tmp_path / "labels.csv").write_text(f"id,label\na,{label}\n")
    with pytest.raises(DataError, match="expected 2 numbers"):
        read_labels(unsafe(task="keypoints", classes=(), outputs=2), tmp_path / "labels.csv")


def test_no_cell_is_a_formula_and_names_come_back(tmp_path):
    names = ["=1+1", "+x", "-y", "@z", "'=quoted", 'a,"b"', "plain"]
    export_labels(unsafe(names), tmp_path / "labels.csv")
    header, *rows = rows_of(tmp_path / "labels.csv")
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)
    with (tmp_path / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *([*row[:3], "cat"] for row in rows)])
    assert read_labels(unsafe(names), tmp_path / "labels.csv") == dict.fromkeys(names, "cat")


def test_a_file_that_may_hold_labels_is_not_replaced(tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\n")
    with pytest.raises(ConfigError, match="exists already, and may hold labels"):
        export_labels(unsafe(), tmp_path / "labels.csv")


def test_other_findings_cannot_be_labelled(examined, tmp_path):
    with pytest.raises(RunError, match="give the Finding of UnsafeSet"):
        export_labels(examined["causes.errors"], tmp_path / "labels.csv")


def test_labels_need_no_torch(examined, tmp_path):
    code = (
        "import sys; from weakspot.core.run import Run; from weakspot.causes import export_labels, import_labels;"
        f"run = Run.open({str(examined.folder)!r}); export_labels(run['causes.unsafe'], {str(tmp_path / 'l.csv')!r});"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
