"""Numbers in the prose of the documentation are those of the CSVs."""

import sys
from types import SimpleNamespace

import pytest


@pytest.fixture
def prose(script):
    return script("prose")


def test_pages_hold_what_was_measured(prose):
    assert prose.missing() == []
    pages = {"limits", "papers-learned", "papers-robustness", "papers-classes", "papers-lesions"}
    assert {page for page, _ in prose.sentences()} == pages


def test_tables_are_those_of_the_csvs(prose):
    assert [path.name for path in prose.outdated()] == [], "run python benchmarks/papers/prose.py"
    marks = {path.name: path.read_text().count("<!-- written by") for path in prose.DOCS.glob("*.md")}
    whole = {path.name: len(prose.BLOCK.findall(path.read_text())) for path in prose.DOCS.glob("*.md")}
    assert marks == whole and sum(marks.values()) > 10


def test_a_table_that_drifts_is_written_anew(prose, monkeypatch):
    monkeypatch.setitem(sys.modules, "made", SimpleNamespace(table=lambda: ["| a |", "|---|"]))
    block = "<!-- written by made:table -->\n\n{}\n\n<!-- end -->"
    made = block.format("| a |\n|---|")
    assert prose.written(f"before {block.format('| b |')} after") == f"before {made} after"


def test_figures_are_drawn_from_the_csvs(script):
    figures = script("figures")
    drawn = dict(figures.drawings())
    assert [name for name, svg in drawn.items() if (figures.IMAGES / name).read_text(encoding="utf-8") != svg] == []
    pages = "".join(path.read_text(encoding="utf-8") for path in figures.IMAGES.parent.glob("*.md"))
    assert [name for name in drawn if f"images/{name}" not in pages] == []


def test_a_page_that_drifts_is_named(prose, monkeypatch, tmp_path):
    for page, _ in prose.sentences():
        (tmp_path / f"{page}.md").write_text("nothing", encoding="utf-8")
    monkeypatch.setattr(prose, "DOCS", tmp_path)
    assert prose.missing() == list(prose.sentences())


@pytest.mark.parametrize(("share", "digits", "text"), [("0.034", 1, "+3.4"), ("-0.0004", 1, "0.0"), ("-0.02", 0, "−2")])
def test_points_have_a_sign(prose, share, digits, text):
    assert prose.points(share, digits) == text
