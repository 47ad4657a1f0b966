"""What is installed is pinned, `make demo` installs little, and every way to run the checks is the same command."""

import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from weakspot import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
PINNED = {canonicalize_name(name): version for name, version in PINS.items()}
MAKEFILE = (ROOT / "Makefile").read_text()
OF_CUDA = ("nvidia-", "cuda-", "triton")
"""Brought by torch where it is built for GPUs."""


def needed(*extras):
    """All that these extras install here, by name: what is needed, what that needs, and so on; with its version."""
    found = {name: distribution(name).version.partition("+")[0] for name in closure([f"weakspot[{','.join(extras)}]"])}
    del found["weakspot"]
    return found


def closure(requirements):
    """The names of all that is installed for these requirements."""
    found, seen, waiting = set(), set(), list(requirements)
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        installed = distribution(name)
        found.add(name)
        for line in installed.requires or ():
            marker = Requirement(line).marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
                waiting.append(line)
    return found


def test_everything_that_is_installed_is_pinned():
    installed = needed("test", "docs", "viewer", "ray", "onnx", "lesions", "pandas", "figures")
    assert len(installed) > 80
    assert {name: PINNED.get(name) for name in installed} == installed


def test_what_is_asked_for_by_name_is_pinned():
    groups = [PROJECT["build-system"]["requires"], *PROJECT["project"]["optional-dependencies"].values()]
    asked = {Requirement(line).name for group in groups for line in group}
    asked |= set(re.search(r"--no-deps (.*)", MAKEFILE)[1].split())
    assert {canonicalize_name(name) for name in asked} <= PINNED.keys()
    assert {"editables", "tomlkit", "trove-classifiers"} <= PINNED.keys(), "what hatchling brings"
    assert len(PINNED) == len(PINS), "one line each"


def test_the_demo_installs_little():
    mine = [name for name in needed() if not name.startswith(OF_CUDA)]
    assert 20 < len(mine) < 35
    assert re.search(r"^demo: \$\(RUNTIME\) ##", MAKEFILE, re.MULTILINE)
    assert re.search(r"^\$\(RUNTIME\): .*\n\t.*venv.*\n\t\$\(PIP\) -e \.\n", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize("page", ["Makefile", ".ci/run", "docs/tutorial.md", ".github/workflows/test.yml"])
def test_nothing_is_installed_without_the_pins(page):
    calls = re.findall(r"pip install .*", (ROOT / page).read_text())
    assert all("-c constraints.txt" in call for call in calls)
    assert calls or page not in ("Makefile", "docs/tutorial.md")


def test_everybody_runs_the_same_command():
    assert "$ make test\n" in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci" / "run").read_text().endswith("\nmake test\n")
    for name, command in (("test", "make test"), ("nightly", "make nightly"), ("package", "make package")):
        (job,) = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())["jobs"].values()
        assert [step["run"] for step in job["steps"] if "run" in step] == [command]
        assert re.search(rf"^{command.split()[1]}: ", MAKEFILE, re.MULTILINE)


def test_the_pythons_that_are_tried_are_those_that_are_named():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"].values()
    named = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: Python :: 3." in line]
    assert job["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_the_readme_of_the_index_leads_to_the_repository(monkeypatch):
    """The index shows it alone: what lies beside it here needs its whole address there."""
    monkeypatch.syspath_prepend(str(ROOT))
    hook = SimpleNamespace(MetadataHookInterface=object)  # hatchling itself is only there while a package is built
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", hook)
    from build_readme import absolute

    text = (ROOT / "README.md").read_text()
    made = absolute(text, PROJECT["project"]["urls"]["Source"])
    linked = re.findall(r'(?:\]\(|src=")([^)"\s]+)', made)
    assert len(linked) > 30 and all(address.startswith("https://weakspot.example/source/") for address in linked)
    for address in linked:
        kind, _, path = address.removeprefix("https://weakspot.example/source/").partition("/main/")
        assert (ROOT / path.partition("#")[0]).exists()
        assert kind == ("raw" if path.endswith((".png", ".svg")) else "blob")


def test_the_changelog_and_the_citation_know_the_release():
    releases = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert releases[0] == "Unreleased"
    assert releases[1] == f"{cited['version']} ({cited['date-released']})"
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["project"]["license"]


def test_modules_that_are_said_not_to_be_public_exist_and_are_not_in_the_reference():
    text = (ROOT / "docs" / "stability.md").read_text()
    modules = re.findall(r"`weakspot\.(asking|cli|kernels|registry)`", text)
    assert len(modules) == 4
    for name in modules:
        assert list((ROOT / "src" / "weakspot").glob(f"{name}*"))
        assert not any(f"weakspot.{name}" in page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
