"""Options of every command that cannot be, and files that are none: one line, exit code 2, nothing left behind."""

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.bad_options import CALLS, make_project
from tests.cli.calling import at_most, call
from tests.cli.damaging import MODULE, draw_of
from weakspot.core.errors import RunError
from weakspot.core.files import whole_file, whole_folder

SECONDS = 30


def contents(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.name != ".lock"}


def troubles(ended, left):
    """What is not as it should be when something bad is given."""
    code, out, err = ended
    lines = err.splitlines()
    wrong = {
        "does not end with 2": code != 2,
        "prints to standard output": out,
        "is not one message": [line.startswith("weakspot: ") for line in lines].count(True) != 1 or len(lines) > 3,
        "says too much": len(err) > 1500,
        "shows a trace-back": "Traceback" in err,
        "is taken for a defect": "defect" in err,
        "leaves something": left,
    }
    return [name for name, there in wrong.items() if there]


def wrong_calls(folder, calls):
    """Those of the calls that do not end as they should; `folder` holds the project, which is made anew if one is."""
    sys.path.insert(0, str(folder))
    (folder / "nets_of_options.py").write_text(MODULE)
    wrong, project = [], folder / "project"
    before = contents(make_project(project, "nets_of_options"))
    try:
        for arguments in calls:
            with contextlib.chdir(project), at_most(SECONDS):
                ended = call(*arguments)
            left = contents(project) - before
            wrong += [f"{arguments}: {trouble}: {ended}"[:900] for trouble in troubles(ended, left)]
            if left:
                shutil.rmtree(project)
                make_project(project, "nets_of_options")
    finally:
        sys.path.remove(str(folder))
    return wrong


def test_bad_options_drawn_at_random(tmp_path):
    assert not wrong_calls(tmp_path, draw_of("options").sample(CALLS, 100))


@pytest.mark.parametrize(
    "arguments",
    [
        ("examine", "weakspot.yaml", "--device", ""), ("plan", "weakspot.yaml", "--precision", ""),
        ("gate", "run", "policy.yaml", "--junit", ""), ("gate", "run", "policy.yaml", "--markdown", ""),
        ("report", "run", "--output", ""), ("evidence", "write", "run", "--output", "loop/x"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_that_is_empty_is_neither_ignored_nor_a_defect(tmp_path, arguments):
    assert not wrong_calls(tmp_path, [arguments])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_bad_options(tmp_path):
    assert not wrong_calls(tmp_path, CALLS)


def test_the_calls_are_many_and_different():
    assert len(CALLS) == len(set(CALLS)) > 1000


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
@pytest.mark.parametrize("target", ["", "/"])
def test_a_place_without_a_name_is_told(whole, target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=r"cannot write .*: Is a directory"), whole(Path(target)):
        pytest.fail("nothing can be written there")
    assert not list(tmp_path.iterdir())
