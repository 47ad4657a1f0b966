"""The GitHub Action and the Dockerfile: their steps are run here, as far as that goes without GitHub and Docker."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
POLICY = """
rules:
  - {name: accurate, finding: robustness.neighbour_accuracy, number: accuracy, at_least: BOUND}
"""
CONFIG = """
subject: {model: "nets:net", classes: [dark, bright], scores: logits, bounds: [0, 1]}
data: {test: {path: data.npz}}
ask: {robustness: {looks: 3}}
"""
NETS = """
import torch


class Mean(torch.nn.Module):
    def forward(self, images):
        bright = 20 * (images.mean((1, 2, 3)) - 0.5)
        return torch.stack([-bright, bright], 1)
def net():
    return Mean()
"""


@pytest.fixture
def project(tmp_path):
    values = np.linspace(0, 1, 40, dtype=np.float32)[:, None, None, None] * np.ones((1, 1, 8, 8), dtype=np.float32)
    np.savez(tmp_path / "data.npz", x_test=values, y_test=(values[:, 0, 0, 0] > 0.5).astype(np.int64))
    (tmp_path / "weakspot.yaml").write_text(CONFIG)
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "weakspot"  # the command of this environment, wherever it lies
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from weakspot.cli.main import run; run()" "$@"\n')
    command.chmod(0o755)
    return tmp_path


def step(name, project, **inputs):
    """Run a step as GitHub does: bash -e with the inputs that it names in its environment."""
    given = {key: str(one.get("default", "")) for key, one in ACTION["inputs"].items()} | inputs
    variables = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], value)
        for key, value in STEPS[name]["env"].items()
    }
    environment = {**os.environ, **variables, "PATH": f"{project / 'bin'}:{os.environ['PATH']}"}
    environment["GITHUB_STEP_SUMMARY"] = str(project / "summary.md")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_the_steps_of_the_action_examine_and_judge(project):
    for bound, code, word in (("0.1", 0, "passed"), ("0.9999", 1, "failed")):
        (project / "policy.yaml").write_text(POLICY.replace("BOUND", bound))
        for name in ("Examine", "Report"):
            done = step(name, project)
            assert done.returncode == 0, done.stderr
        done = step("Gate", project)
        assert done.returncode == code, done.stderr
        assert f"## weakspot: {word}" in (project / "summary.md").read_text()
        assert "<testsuite" in (project / "runs/gate/gate.xml").read_text()
        (project / "summary.md").unlink()
    assert (project / "runs/gate/report.html").stat().st_size > 1000


def test_every_input_is_used_and_said():
    text = (ROOT / "action.yml").read_text()
    assert all(f"inputs.{name}" in text and one["description"] for name, one in ACTION["inputs"].items())
    assert all("${{" not in one["run"] for one in STEPS.values()), "inputs reach the shell as variables, never as code"


def test_the_dockerfile_takes_what_is_there():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {"README.md", built["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]} <= set(copied), "pip builds it"
    assert 'ENTRYPOINT ["weakspot"]' in lines
    assert lines.index("USER weakspot") < lines.index('ENTRYPOINT ["weakspot"]'), "not as root"
