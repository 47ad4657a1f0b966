"""The page about every Finding is what its script makes of the declarations."""

import importlib.util
from pathlib import Path

from weakspot.rooms import rooms

SCRIPT = Path(__file__).resolve().parents[2] / "docs/_sphinx/finding_reference.py"


def script():
    spec = importlib.util.spec_from_file_location("finding_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes():
    reference = script()
    written = reference.PAGE.read_text(encoding="utf-8")
    assert written == reference.page(), f"docs/reference-findings.md is not up to date: run {reference.COMMAND}"


def test_every_declared_name_is_told():
    page = script().page()
    for room in rooms().values():
        for name, outputs in room.findings.items():
            section = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
            for declared in (*outputs.summary, *outputs.columns, *outputs.arrays):
                assert f"`{declared}`" in section, f"{name}: {declared}"
