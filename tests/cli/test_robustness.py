"""`weakspot robustness export-guard`: the guard of a Run in files, and what it refuses."""

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, RunError

CONFIG = """
subject: {model: "weakspot.data.digits:model", classes: 10, scores: logits, bounds: [0, 1]}
data:
  validation: {path: "weakspot.data.digits:train"}
  test: {path: "weakspot.data.digits:test"}
ask:
  robustness:
    looks: 1
    guard: {from: validation, least: 20}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guard")
    (folder / "weakspot.yaml").write_text(CONFIG)
    return folder / "weakspot.yaml"


@pytest.fixture(scope="module")
def examined(config):
    called("robustness", config, "--quiet", "--limit", 600)
    return config


def called(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_before_there_is_a_guard_it_says_what_to_do(tmp_path):
    (tmp_path / "weakspot.yaml").write_text(CONFIG)
    with pytest.raises(RunError):
        called("robustness", "export-guard", tmp_path / "weakspot.yaml", "--output", tmp_path / "guard")
    assert not (tmp_path / "guard").exists()


def test_a_guard_is_written_once(examined, tmp_path):
    printed = called("robustness", "export-guard", examined, "--output", tmp_path / "guard", "--onnx", "--limit", 600)
    names = sorted(path.name for path in (tmp_path / "guard").iterdir())
    assert names == ["guard.json", "guard.safetensors", "guard_runtime.py", "guarded.onnx"]
    assert all(name in printed for name in names)
    with pytest.raises(ConfigError, match="exists already"):
        called("robustness", "export-guard", examined, "--output", tmp_path / "guard")
