"""A full disk, at any moment: a clear line, code 2, nothing half-written; with room the command ends as ever."""

import errno
import os
import shutil
import sys

import pytest
import torch
from torch import nn

from tests.cli.damaging import KINDS, MODULE, make_all, write_config
from tests.full_disk import files_end_at
from weakspot.core.errors import RunError
from weakspot.repair.checkpoints import Checkpoint, TrainingProgress, save_weights

COMMANDS = {
    "examine": ("examine", "weakspot.yaml", "--run", "new", "--threads", "1"),
    "report": ("report", "run"),
    "report elsewhere": ("report", "run", "--output", "deep/folder/report.html"),
    "evidence": ("evidence", "run"),
    "gate": ("gate", "run", "policy.yaml", "--junit", "out/junit.xml", "--markdown", "out/verdict.md"),
    "label": ("causes", "label", "labelled", "--import", "labels.csv"),
}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    (folder / "nets_of_full.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield "nets_of_full"
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def good(tmp_path_factory, module):
    folder = make_all(tmp_path_factory.mktemp("good") / "project")
    write_config(folder, module, KINDS["npz"])
    return folder


@pytest.fixture
def project(good, tmp_path, monkeypatch):
    shutil.copytree(good, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def contents(folder):
    """Every byte but of locks; of a journal, to which each call adds, what it says."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {
        name: set(path.read_bytes().split(b"\n")) if name.endswith(".jsonl") else path.read_bytes()
        for name, path in files.items()
        if not name.endswith(".lock")
    }


@pytest.fixture(scope="module")
def whole():
    """What each command leaves where there is room."""
    return {}


def expected(whole, weakspot, good, tmp_path, monkeypatch, command):
    if command not in whole:
        shutil.copytree(good, tmp_path / "whole")
        with monkeypatch.context() as there:
            there.chdir(tmp_path / "whole")
            assert weakspot(*COMMANDS[command])[0] == 0
        whole[command] = contents(tmp_path / "whole")
    return whole[command]


def check_refused(ended, project):
    code, _, err = ended
    lines = [line for line in err.splitlines() if "question" not in line]
    assert code == 2 and "Traceback" not in err and "is a defect of weakspot" not in err, ended
    assert len(lines) == 1 and lines[0].startswith("weakspot: cannot write "), ended
    assert not list(project.rglob("*.partial"))


@pytest.mark.parametrize("size", [0, 100, 1000])
@pytest.mark.parametrize("command", COMMANDS)
def test_files_that_cannot_grow(weakspot, project, good, whole, tmp_path, monkeypatch, command, size):
    after = expected(whole, weakspot, good, tmp_path, monkeypatch, command)
    with files_end_at(size):
        ended = weakspot(*COMMANDS[command])
    if ended[0] != 0:
        check_refused(ended, project)
    assert size or ended[0] == 2
    assert weakspot(*COMMANDS[command])[0] == 0
    assert contents(project) == after


@pytest.mark.parametrize("number", FULL, ids=errno.errorcode.get)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_says_so_when_it_is_waited_for(
    weakspot, project, good, whole, tmp_path, monkeypatch, command, number
):
    """At the first call, at the next …, until the command does not come so far."""
    after = expected(whole, weakspot, good, tmp_path, monkeypatch, command)
    fsync, left = os.fsync, [0]

    def full(file):
        if left[0] == 0:
            raise OSError(number, os.strerror(number))
        left[0] -= 1
        fsync(file)

    for calls in range(0, 200, 1 if command == "examine" and number == errno.ENOSPC else 3):
        left[0] = calls
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            ended = weakspot(*COMMANDS[command])
        if ended[0] == 0:
            break
        check_refused(ended, project)
    assert calls > 0 and ended[0] == 0
    assert contents(project) == after


def test_a_first_configuration_has_no_room(weakspot, project, module):
    arguments = ("init", "--model", f"{module}:rows", "--test", "data.npz", "--output", "first.yaml")
    with files_end_at(10):
        ended = weakspot(*arguments)
    assert ended[0] == 2 and ended[2].splitlines()[-1].startswith("weakspot: cannot write first.yaml: "), ended
    assert not (project / "first.yaml").exists() and not list(project.rglob("*.partial"))
    assert weakspot(*arguments)[0] == 0


def test_weights_have_no_room(tmp_path):
    net = nn.Linear(200, 200)
    momentum = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with files_end_at(1000):
        with pytest.raises(RunError, match=r"cannot write .*net.safetensors: .*check free space"):
            save_weights(net, tmp_path / "net.safetensors")
        with pytest.raises(RunError, match=r"cannot write .*checkpoint: .*check free space"):
            Checkpoint(tmp_path / "checkpoint").save(TrainingProgress(), net, momentum)
    assert not list(tmp_path.iterdir())
