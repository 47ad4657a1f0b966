"""What a new contributor is told is true: files that are named exist, targets and templates can be read."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/howto-model.md", "docs/reference-config.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), f"{page} links to {link}"


def test_named_modules_and_folders_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for name in re.findall(r"`((?:coverage|data|models|looks|relevance|cli)/[\w.]*)`", text):
        assert (ROOT / "src" / "weakspot" / name).exists(), name
    for name in re.findall(r"(?:tests|src/weakspot|docs|benchmarks)/[\w/.-]*\w", text):
        assert (ROOT / name).exists(), name


def test_templates_and_hooks_can_be_read():
    for form in ("bug", "idea"):
        body = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{form}.yml").read_text())["body"]
        assert all(field["attributes"]["label"] for field in body)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff-check", "ruff-format", "mypy"]


def test_make_lists_its_targets():
    printed = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "lint", "format", "types", "docs", "clean"):
        assert re.search(rf"^{target}\s+\S", printed, re.MULTILINE)
