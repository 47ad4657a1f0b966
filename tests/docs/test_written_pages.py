"""The pages that scripts write from the source are what the scripts write now."""

import importlib.util
from pathlib import Path

import pytest

from weakspot.rooms import rooms

SCRIPTS = Path(__file__).resolve().parents[2] / "docs/_sphinx"


def script(name="finding_reference"):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["finding_reference", "module_reference"])
def test_a_page_is_what_its_script_writes(name):
    reference = script(name)
    written = reference.PAGE.read_text(encoding="utf-8")
    assert written == reference.page(), f"docs/{reference.PAGE.name} is not up to date: run {reference.COMMAND}"


def test_every_public_module_says_what_it_holds():
    reference = script("module_reference")
    paths = [path for path in reference.SOURCE.rglob("*.py") if not path.name.startswith("_")]
    assert len(paths) > 300
    assert [path.name for path in paths if not reference.sentence(path)] == []


def test_every_declared_name_is_told():
    page = script().page()
    for room in rooms().values():
        for name, outputs in room.findings.items():
            section = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
            for declared in (*outputs.summary, *outputs.columns, *outputs.arrays):
                assert f"`{declared}`" in section, f"{name}: {declared}"
