"""Every page of the documentation is followed to the letter: files are written, commands and code are run."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"
BLOCK = re.compile(r"^```(?P<language>\w+)(?: title=(?P<title>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted([*DOCS.glob("*.md"), README])


def with_blocks(*languages):
    return [page for page in PAGES if any(block["language"] in languages for block in BLOCK.finditer(page.read_text()))]


@pytest.mark.parametrize("page", with_blocks("console", "python"), ids=lambda page: page.name)
def test_page(page, warm, tmp_path):
    environment = {
        **os.environ,
        "PATH": f"{warm.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])),
        "OMP_NUM_THREADS": "1",  # threads of several processes only get in each other's way
    }
    for block in BLOCK.finditer(page.read_text()):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"])
        elif block["language"] == "console":
            run_commands(block["text"], tmp_path, environment)
        elif block["language"] == "python" and ">>>" not in block["text"]:
            run([*warm.command, "python", "-c", block["text"]], tmp_path, environment)


def run_commands(text, folder, environment):
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        if command.startswith(("make ", "git ")):
            continue  # set-up of a fresh machine, which this run has behind it
        printed = run(["bash", "-c", command], folder, environment)
        assert matches(expected, printed), f"{command} printed\n{printed}\nexpected\n{expected}"


def run(command, folder, environment):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def matches(expected, printed):
    checker = doctest.OutputChecker()
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return not expected.strip() or checker.check_output(expected.strip(), printed.strip(), options)


def test_the_check_can_fail(tmp_path):
    assert not matches("run: here", "run: there")
    with pytest.raises(AssertionError, match="printed"):
        run_commands("$ echo one\ntwo\n", tmp_path, os.environ)


def every_command(app):
    """All commands with the words that call them, those of the rooms too."""
    from typer.main import get_command

    for name, command in get_command(app).commands.items():
        for own, further in getattr(command, "commands", {"": command}).items():
            yield f"{name} {own}".strip(), further


def test_every_command_and_option_is_documented():
    from weakspot.cli.main import app
    from weakspot.rooms import QUESTIONS

    # the questions share one section
    shared = {*QUESTIONS, "robustness ask", "classes ask", "causes cluster", "lesions sample"}
    reference = (DOCS / "reference-cli.md").read_text()
    for name, command in every_command(app):
        assert f"weakspot {name}" in reference, f"docs/reference-cli.md does not mention `weakspot {name}`"
        described = "coverage" if name in shared else name
        section = reference.split(f"## `weakspot {described}", 1)[1].split("\n## ", 1)[0]
        if "(#options-of-an-examination)" in section:
            section += reference.split("\n## Options of an examination\n", 1)[1].split("\n## ", 1)[0]
        for parameter in command.params:
            for option in parameter.opts:
                shown = option if option.startswith("-") else option.upper()
                assert f"`{shown}" in section, f"docs/reference-cli.md does not mention {shown} of `weakspot {name}`"
