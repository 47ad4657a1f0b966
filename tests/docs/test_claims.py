"""What the front pages claim in numbers is counted."""

import re
from pathlib import Path

import pytest

from weakspot.asking.session import plan_for
from weakspot.cli.demo import CONFIG
from weakspot.rooms import QUESTIONS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "weakspot"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_passes_of_the_demo_are_as_many_as_told(page):
    asked = NUMBERS[len(set(CONFIG.ask) & set(QUESTIONS))]
    passes = NUMBERS[len(plan_for(CONFIG, ROOT, []).passes())]
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"the demo asks {asked} questions in {passes} passes" in text
    assert "share one pass" not in text


def test_the_modules_that_the_architecture_names_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text)
    missing = [path for path in named if not any((ROOT / base / path).is_file() for base in ("src/weakspot", "."))]
    assert len(named) > 30
    assert not missing, f"docs/architecture.md names modules that are not there: {', '.join(missing)}"


def test_the_architecture_names_the_module_that_defines_a_function():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`: `([A-Za-z_.]+)`", text)
    assert len(named) > 5
    missing = [
        f"{name} in {path}"
        for path, name in named
        if not re.search(rf"^ *(?:def|class) {name.rpartition('.')[2]}\b", (PACKAGE / path).read_text(), re.MULTILINE)
    ]
    assert not missing, f"docs/architecture.md names what is defined elsewhere: {', '.join(missing)}"


def test_the_architecture_tells_them_too():
    passes = plan_for(CONFIG, ROOT, []).passes()
    over_test = sum(planned.split == "test" for planned in passes)
    text = " ".join((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split())
    told = f"The demo makes {NUMBERS[len(passes)]} passes, {NUMBERS[over_test]} of them over the test data."
    assert told in text
