"""Every work that is cited by key is in the bibliography."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = r"[a-z]+(?:19|20)\d\d"
CITED = re.compile(rf"`({KEY})`|\[({KEY}(?:, {KEY})*)\]")


def test_every_key_is_in_the_bibliography():
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text(), re.MULTILINE))
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    cited = {key for page in pages for match in CITED.finditer(page.read_text()) for key in _keys(match)}
    assert len(cited) > 20
    assert not cited - known


def _keys(match):
    return (match[1] or match[2]).split(", ")
