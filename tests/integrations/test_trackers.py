"""MLflow and Weights & Biases, the real packages, offline."""

import json

import pytest

from weakspot.core.errors import ConfigError
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy
from weakspot.integrations import log_to_mlflow, log_to_wandb, run_numbers


def test_mlflow_holds_numbers_report_and_verdict(run, policy, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs weakspot[mlflow]")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setattr("mlflow.utils.git_utils.get_git_commit", lambda path: None)
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "tracked").as_uri())
    begun = client.create_run(client.create_experiment("e")).info.run_id
    log_to_mlflow(run, verdict=judge(run, read_policy(policy(0.999))), client=client, run_id=begun)
    logged = client.get_run(begun)
    assert logged.data.metrics == pytest.approx(run_numbers(run))
    assert logged.data.tags["weakspot.verdict"] == "failed"
    names = {entry.path for entry in client.list_artifacts(begun, "weakspot")}
    assert names == {f"weakspot/{name}" for name in ("report.html", "verdict.json", "verdict.md")}
    stored = client.download_artifacts(begun, "weakspot/verdict.json", str(tmp_path))
    with open(stored, encoding="utf-8") as file:  # noqa: PTH123 - a path of MLflow's
        assert json.load(file)["passed"] is False


def test_wandb_holds_numbers_report_and_verdict(run, policy, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="needs weakspot[wandb]")
    monkeypatch.setenv("WANDB_SILENT", "true")
    begun = wandb.init(mode="offline", dir=str(tmp_path), project="p", settings=wandb.Settings(disable_git=True))
    try:
        log_to_wandb(run, verdict=judge(run, read_policy(policy(0.0))), to=begun)
        summary = dict(begun.summary)
    finally:
        begun.finish()
        wandb.teardown()
    assert {name: summary[name] for name in run_numbers(run)} == pytest.approx(run_numbers(run))
    assert summary["weakspot.verdict"] == "passed"
    [written] = (tmp_path / "wandb").rglob("*.wandb")
    assert written.stat().st_size > 1000
    assert list((tmp_path / "wandb").rglob("media/html/*.html"))


def test_a_missing_package_is_named(run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match="this needs mlflow, which is not installed: pip install mlflow"):
        log_to_mlflow(run)
