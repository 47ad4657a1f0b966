"""MLflow and Weights & Biases: numbers, report and verdict of a Run, beside the experiment they belong to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weakspot.core.run import Run
from weakspot.gate.evaluation import Verdict
from weakspot.gate.output import as_json, as_markdown
from weakspot.integrations.flat_numbers import run_numbers
from weakspot.integrations.needed import needed
from weakspot.report import write_report

FOLDER = "weakspot"
VERDICT = "weakspot.verdict"


def log_to_mlflow(run: Run, *, verdict: Verdict | None = None, client: Any = None, run_id: str | None = None) -> None:
    """Log to MLflow: numbers as metrics, report and verdict as artifacts in `weakspot/`, the verdict as a tag.

    client: an `MlflowClient`; by default one for the current tracking server, or folder.
    run_id: of MLflow's run; by default the active one, which is begun where there is none.
    """
    mlflow = needed("mlflow", "mlflow")
    tracking = client or mlflow.MlflowClient()
    target = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
    for name, value in run_numbers(run).items():
        tracking.log_metric(target, name, value)
    tracking.set_tag(target, "weakspot.run", str(run.folder))
    if verdict is not None:
        tracking.set_tag(target, VERDICT, _word(verdict))
    with _files(run, verdict) as files:
        for path in files:
            tracking.log_artifact(target, str(path), FOLDER)


def log_to_wandb(run: Run, *, verdict: Verdict | None = None, to: Any = None) -> None:
    """Log to Weights & Biases: numbers and verdict in the summary, the report as a panel, files as an artifact.

    to: a run of wandb; by default the current one, which must have been begun (`wandb.init`).
    """
    wandb = needed("wandb", "wandb")
    target = to or wandb.run or wandb.init()
    target.summary.update(run_numbers(run))
    if verdict is not None:
        target.summary.update({VERDICT: _word(verdict)})
    artifact = wandb.Artifact(f"weakspot-{target.id}", type="weakspot")
    with _files(run, verdict) as files:
        for path in files:
            artifact.add_file(str(path))
        target.log({"weakspot report": wandb.Html(files[0].read_text(encoding="utf-8"), inject=False)})
        target.log_artifact(artifact)


def _word(verdict: Verdict) -> str:
    return "passed" if verdict.passed else "failed"


@contextmanager
def _files(run: Run, verdict: Verdict | None) -> Iterator[list[Path]]:
    """The report, and the verdict as JSON and Markdown."""
    with TemporaryDirectory(prefix="weakspot-") as folder:
        files = [write_report(run, Path(folder) / "report.html")]
        if verdict is not None:
            written = {"verdict.json": json.dumps(as_json(verdict), indent=1), "verdict.md": as_markdown(verdict)}
            for name, text in written.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
                files.append(Path(folder) / name)
        yield files
