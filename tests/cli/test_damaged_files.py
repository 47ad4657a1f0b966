"""Every kind of file that a command reads, damaged in every way: a clear line, the right code, nothing half-written."""

import contextlib
import itertools
import os
import shutil
import sys

import pytest

from tests.cli.calling import at_most, call
from tests.cli.damaging import (
    CERTAIN,
    DAMAGES,
    KINDS,
    MODULE,
    OF_RUN,
    OF_TEXT,
    PERHAPS,
    agree,
    draw_of,
    make_all,
    write_config,
)

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of archives left open
NUMBER = itertools.count()
SECONDS = 60
HARMLESS = {
    *(("labels.jsonl", damage) for damage in ("empty", "noise", "deep", "nested", "surrogate")),
    ("image", "folder"), ("metadata", "nul"),
}  # fmt: skip
"""Half a line of labels was never finished; a folder holds no image."""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Nets, in a module of these tests' own."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "nets_of_damaged.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield "nets_of_damaged"
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make_all(tmp_path_factory.mktemp("good") / "project")


@pytest.fixture
def tried(good, module, tmp_path):
    """Damage a copy of a file, call a command, and say what is not as it should be."""

    def trial(name, damage, command, seed=0):
        return damaged_trial(good, module, tmp_path / str(next(NUMBER)), (name, damage, command), seed)

    return trial


def damaged_trial(good, module, folder, trial, seed=0):
    """How a command ended where a file of that kind was damaged, and what is not as it should be."""
    name, damage, command = trial
    kind = KINDS[name]
    copy_needed(good, folder, kind)
    write_config(folder, module, kind)
    if damage is not None:
        DAMAGES[damage](draw_of(name, damage, seed), folder / kind.path)
        if OF_RUN in kind.path and damage in PERHAPS:
            agree(folder)
    before = contents(folder)
    with contextlib.chdir(folder), at_most(SECONDS):
        ended = call(*command)
    wrong = troubles(ended, command, before, contents(folder))
    if damage in {**CERTAIN, **OF_TEXT} and ended[0] != 2 and (name, damage) not in HARMLESS:
        wrong.append("is not noticed")
    return ended, [f"{name}, {damage} {seed}, {command}: {trouble}: {ended}" for trouble in wrong]


def copy_needed(good, folder, kind):
    """A copy, which shares its files, of what is named where that kind of file is read."""
    folder.mkdir()
    named = f"{kind.path} {kind.data} {kind.subject} {kind.commands} {kind.also}"
    for path in good.iterdir():
        if path.name in named:
            copy = shutil.copytree if path.is_dir() else os.link
            copy(path, folder / path.name, **({"copy_function": os.link} if path.is_dir() else {}))


def contents(folder):
    """The names of all that lies there."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.name != ".lock"}


def troubles(ended, command, before, after):
    code, out, err = ended
    lines = [line for line in err.splitlines() if "question" not in line]  # the bar of what was begun
    wrong = {
        "ends with another code": code not in ((0, 1, 2) if command[0] == "gate" else (0, 2)),
        "shows a trace-back": "Traceback" in err,
        "has no message": code == 2 and not any(line.startswith("weakspot: ") for line in lines),
        "says too much": code == 2 and (len(err) > 1500 or len(lines) > 3),
        "takes it for a defect": "is a defect of weakspot" in err,
        "prints something all the same": code == 2 and out != "" and command[0] != "show",
        "leaves something": code == 2 and after - before,
        "leaves something half-written": [name for name in after if name.endswith(".partial")],
    }
    return [trouble for trouble, there in wrong.items() if there]


def commands(*kinds):
    return [(name, command) for name in kinds or KINDS for command in KINDS[name].commands]


@pytest.mark.parametrize("name", KINDS)
def test_good_files_are_read(tried, name):
    for _, command in commands(name):
        ended, wrong = tried(name, None, command)
        assert ended[0] == 0, ended
        assert not wrong


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", KINDS)
def test_files_that_cannot_be_read(tried, name):
    """No FIFO is waited for, no device read to its end."""
    found = []
    for damage in [*CERTAIN, *(OF_TEXT if KINDS[name].text else {})]:
        for _, command in commands(name):
            found += tried(name, damage, command)[1]
    assert not found, "\n".join(found)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", KINDS)
def test_files_that_are_a_little_damaged(tried, name):
    """Some damages do no harm; whatever does is told in a line."""
    found = []
    for damage in PERHAPS:
        for _, command in commands(name)[:5]:
            found += tried(name, damage, command)[1]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_damages_at_random(tried, part):
    found = []
    for number, trial in enumerate(drawn_trials(110, part)):
        found += tried(*trial, seed=f"{part}-{number}")[1]
    assert not found, "\n".join(found)


def drawn_trials(count, seed):
    """Kind of file, damage and command, drawn at random."""
    draw = draw_of("thousand", seed)
    for _ in range(count):
        name, command = draw.choice(commands())
        yield name, draw.choice([*PERHAPS, *PERHAPS, *CERTAIN, *(OF_TEXT if KINDS[name].text else {})]), command


def test_the_table_is_large():
    certain = sum(len(CERTAIN) + len(OF_TEXT) * KINDS[name].text for name, _ in commands())
    assert certain + len(PERHAPS) * len(commands()) > 600
