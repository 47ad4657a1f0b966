"""Blocks that no test follows to the letter, as they name a reader's own files: each is what weakspot takes."""

import json
import re
import shlex
import tomllib
from textwrap import dedent

import pytest
from typer.main import get_command

from tests.docs.test_pages import BLOCK, PAGES
from weakspot.asking.config import checked_config
from weakspot.asking.task_check import check_tasks
from weakspot.cli.main import app
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.outputs import Outputs
from weakspot.gate.policy import read_policy
from weakspot.registry import steps_for
from weakspot.yaml_file import parse_yaml

WHOLE = {"subject": {"model": "nets:ResN"}, "data": {"test": "cifar/test"}}
COMMAND = re.compile(r"^(?:    |\$ )?weakspot (.+?)(?: {2,}#.*|\\)?$", re.MULTILINE)
SHOWN = re.compile(
    r"^(?:```(?:text|console)\n(?P<block>.*?)^```$|(?P<line>    weakspot .*\n))", re.MULTILINE | re.DOTALL
)


def untitled(language):
    """Every block of the language that has no title, with its page and line."""
    return [
        pytest.param(block["text"], id=f"{page.name}:{page.read_text()[: block.start()].count(chr(10)) + 1}")
        for page in PAGES
        for block in BLOCK.finditer(page.read_text())
        if block["language"] == language and not block["title"]
    ]


def check_whole(given, places):
    """A file's parts, the rest put in: names, types and options of all of it."""
    asked = checked_config({**WHOLE, **given}, places)
    check_tasks({name: dict(options or {}) for name, options in asked.ask.items()}, asked.subject.task)
    steps_for(asked.ask)


def check_yaml(text, folder):
    if re.findall(r"^(\w+):", text, re.MULTILINE).count("preprocess") > 1:  # ways to say one thing, a line each
        for line in text.splitlines():
            check_whole({"subject": {**WHOLE["subject"], **parse_yaml(line, "page")[0]}}, parse_yaml(line, "page")[1])
        return
    given, places = parse_yaml(text, "page")
    if "rules" in given:
        (folder / "policy.yaml").write_text(text)
        assert read_policy(folder / "policy.yaml").rules
        return
    check_whole(given, places)


@pytest.mark.parametrize("text", untitled("yaml"))
def test_yaml_is_taken(text, tmp_path):
    check_yaml(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    ["ask: {causes: {depth: 2}}", "subject: {task: multi}", "rules: [{finding: x}]", "preprocess: 3\npreprocess: {}"],
)
def test_the_check_can_fail(text, tmp_path):
    with pytest.raises(ConfigError):
        check_yaml(text, tmp_path)


@pytest.mark.parametrize("text", untitled("json"))
def test_json_declares_what_a_finding_holds(text):
    declared = Outputs.from_json(json.loads(text)["outputs"])
    assert declared.number("weak_share").mean_of == "weak" and Finding(name="x.y", outputs=declared)


@pytest.mark.parametrize("text", untitled("toml"))
def test_toml_can_be_read(text):
    assert tomllib.loads(text)["project"]["entry-points"]


@pytest.mark.parametrize("text", [one for one in untitled("text") if "import " in one.values[0]])
def test_python_that_needs_a_cluster_is_python(text):
    imports = [line for line in text.splitlines() if line.startswith("from weakspot")]
    compile(text, "page", "exec")
    exec("\n".join(imports), {})


def commands():
    """Every command line of weakspot that is shown and not run."""
    for page in PAGES:
        for shown in SHOWN.finditer(page.read_text()):
            for line in COMMAND.findall(shown["block"] or shown["line"]):
                yield pytest.param(line, id=f"{page.name}: {line}")


def parsed(line):
    """The command parses: it exists, and so do its options."""
    words = shlex.split(re.sub(r"\s+[|>].*", "", line), comments=True)
    command = get_command(app)
    context = command.context_class(command, info_name="weakspot")
    while getattr(command, "commands", None) and words and not words[0].startswith("-"):
        if words[0] not in command.commands and "." in words[0]:
            break  # a question's file: its own command is the default
        name, command, words = command.resolve_command(context, words)
        context = command.context_class(command, info_name=name, parent=context)
    command.make_parser(context).parse_args(list(words))


@pytest.mark.parametrize("line", list(commands()))
def test_commands_exist_with_their_options(line):
    parsed(line)


@pytest.mark.parametrize("line", ["exmine weakspot.yaml", "examine weakspot.yaml --fast"])
def test_a_command_that_is_not_there_is_noticed(line):
    with pytest.raises(Exception, match="No such"):
        parsed(line)


INDENTED = re.compile(r"(?<=\n\n)(?:(?:    .*|)\n)+")


def indented_python():
    """Indented blocks that import from weakspot: code that needs a reader's own tools or data."""
    for page in PAGES:
        text = BLOCK.sub("", page.read_text())
        for block in INDENTED.findall(text):
            if re.search(r"^ *(from|import) weakspot", block, re.MULTILINE):
                yield pytest.param(dedent(block), id=f"{page.name}: {block.strip().splitlines()[0]}")


@pytest.mark.parametrize("text", list(indented_python()))
def test_indented_python_is_python_and_imports_what_is_there(text):
    compile(text, "page", "exec")
    exec("\n".join(re.findall(r"^(?:from|import) weakspot.*", text, re.MULTILINE)), {})
