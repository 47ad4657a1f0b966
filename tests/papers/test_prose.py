"""Numbers in the prose of the documentation are those of the CSVs."""

import pytest


@pytest.fixture
def prose(script):
    return script("prose")


def test_pages_hold_what_was_measured(prose):
    assert prose.missing() == []
    assert {page for page, _ in prose.sentences()} == {"limits", "papers-learned", "papers-robustness"}


def test_a_page_that_drifts_is_named(prose, monkeypatch, tmp_path):
    for page, _ in prose.sentences():
        (tmp_path / f"{page}.md").write_text("nothing", encoding="utf-8")
    monkeypatch.setattr(prose, "DOCS", tmp_path)
    assert prose.missing() == list(prose.sentences())


@pytest.mark.parametrize(("share", "digits", "text"), [("0.034", 1, "+3.4"), ("-0.0004", 1, "0.0"), ("-0.02", 0, "−2")])
def test_points_have_a_sign(prose, share, digits, text):
    assert prose.points(share, digits) == text
