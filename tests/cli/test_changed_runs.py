"""Commands that read a Run say which Finding was changed after it was written, and nothing else."""

import json
import shutil

import numpy as np
import pytest

from tests.cli.damaging import OF_RUN, POLICY, make_all

COMMANDS = {
    "show": ("show", "run"),
    "show one": ("show", "run", "robustness.neighbours"),
    "report": ("report", "run"),
    "compare": ("compare", "run", "other"),
    "gate": ("gate", "run", "policy.yaml"),
    "evidence": ("evidence", "run"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make_all(tmp_path_factory.mktemp("good") / "project")


@pytest.fixture
def folder(good, tmp_path, monkeypatch):
    for name in ("run", "other"):
        shutil.copytree(good / name, tmp_path / name)
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scaled(path):
    np.save(path, np.load(path) * 2)


def summed(path):
    index = json.loads(path.read_text())
    index["summary"][0][1]["value"] = 0.01
    path.write_text(json.dumps(index, sort_keys=True, separators=(",", ":")))


def other_picture(path):
    path.write_bytes(path.read_bytes() + b"\0")


CHANGES = {
    "curve_size.npy": (scaled, "it was changed after it was written: curve_size.npy"),
    "finding.json": (summed, "it is not the Finding that the manifest names"),
    "picture-0000.png": (other_picture, "it was changed after it was written: picture-0000.png"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_reader_refuses_a_changed_finding_by_its_name(weakspot, folder, command, name):
    assert weakspot(*COMMANDS[command])[0] in (0, 1)
    shutil.rmtree(folder / "run" / "evidence", ignore_errors=True)
    change, reason = CHANGES[name]
    change(folder / OF_RUN / name)
    code, out, err = weakspot(*COMMANDS[command])
    assert (code, out) == (2, "")
    assert err.startswith(f"weakspot: {OF_RUN} is damaged: {reason}; ") and err.count("\n") == 1
    assert not (folder / "run" / "evidence").exists()
