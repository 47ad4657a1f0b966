"""`weakspot lesions`: find lesions, train a model that says which are real, and measure how well it does."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weakspot.cli.arguments import ConfigFile, Device, Json, Quiet, RunFolder, RunOption, SetOption
from weakspot.cli.room_commands import ask_command, asking_alone, question
from weakspot.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weakspot.core.finding import Finding
    from weakspot.core.run import Run

app = typer.Typer(cls=question("sample"))
app.command("sample", help=asking_alone("lesions"))(ask_command("lesions"))

RunFolders = Annotated[list[Path], typer.Argument(help="The folder of the Run, or several, one per fold.")]
Patient = Annotated[
    str | None,
    typer.Option(
        help="Regular expression for the patient at the start of a case's id; by default the one of the step before, "
        "or each case is a patient."
    ),
]


@app.command()
def fit(
    runs: RunFolders,
    output: Annotated[Path, typer.Option(help="The folder to write the lesion model to.")] = Path("lesion-model"),
    split: Annotated[str, typer.Option(help="The split whose lesions to learn from.")] = "validation",
    method: Annotated[
        str, typer.Option(help="What gives the probability: best compares all methods; or the name of one.")
    ] = "best",
    epochs: Annotated[int, typer.Option(help="Epochs over all lesions.")] = 60,
    folds: Annotated[int, typer.Option(help="Folds of patients for calibration.")] = 5,
    patient: Patient = None,
    trained_on: Annotated[
        Path | None,
        typer.Option(help="A file with the ids of the cases that the network was trained on, one per line."),
    ] = None,
    training_cases: Annotated[
        bool, typer.Option("--training-cases", help="Allow cases that the network was trained on.")
    ] = False,
    keep_true: Annotated[
        float | None,
        typer.Option(help="Share of the true lesions to keep, such as 0.95: sets a threshold on patients set apart."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
    device: Annotated[str, typer.Option(help="Where the graph networks are trained, such as cuda.")] = "cpu",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a lesion model on lesions of cases with masks, and calibrate it on held-out patients."""
    from weakspot.asking.progress import Bar
    from weakspot.cli.room_commands import tell
    from weakspot.core.progress import showing
    from weakspot.core.run import Run
    from weakspot.lesions.analysis import fit_finding
    from weakspot.lesions.gcn import Learning
    from weakspot.lesions.lesion_model import fit_lesion_model
    from weakspot.lesions.lesion_set import LesionSet, patients_of
    from weakspot.lesions.model_files import save_model
    from weakspot.lesions.probes import check_split

    check_split(split, training_cases=training_cases)
    sampled = [_lesions(Run.open(folder), split) for folder in runs]
    parameters = _alike(sampled)
    patient = patient or parameters.get("patient")
    if not training_cases:
        _check_unseen(sampled, trained_on, patient)
    _check_test_apart(runs, sampled, split, patient)
    lesions = LesionSet.joined([LesionSet.of(finding) for finding in sampled])
    patients = patients_of(lesions.case, patient)
    learning = Learning(epochs=epochs, seed=seed, device=device)
    how: dict[str, Any] = {"method": method, "learning": learning, "folds": folds, "keep": keep_true}
    with showing(None if quiet or as_json else Bar()):
        fitted = fit_lesion_model(lesions, patients, **how, parameters=parameters, patient=patient)
    save_model(fitted.model, output)
    tell([fit_finding(lesions, fitted, patients)], output, as_json=as_json, quiet=quiet)


@app.command()
def score(
    run: RunFolder,
    model: Annotated[Path, typer.Option(help="The folder of the lesion model.")] = Path("lesion-model"),
    split: Annotated[str, typer.Option(help="The split whose lesions to score.")] = "test",
    patient: Patient = None,
    rows: Annotated[int, typer.Option(help="How many lesions to print, the most likely false positives first.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Give every lesion the probability that it is a false positive, and save that in the Run."""
    from weakspot.cli.printing import print_table
    from weakspot.cli.room_commands import tell
    from weakspot.core.run import Run
    from weakspot.lesions.analysis import check_alike, scores_finding
    from weakspot.lesions.model_files import load_model

    opened, trained = Run.open(run), load_model(model)
    cut = _lesions(opened, split)
    check_alike(trained.parameters, cut.provenance["parameters"])
    scored = scores_finding(cut, trained, patient=patient)
    provenance = {name: cut.provenance[name] for name in ("subject", "data", "versions") if name in cut.provenance}
    parameters = {"sampling": cut.provenance["parameters"], "patient": patient}
    scored = scored.with_provenance(**provenance, parameters=parameters, upstream=[cut.digest])
    _keep(opened, scored, "" if split == "test" else f"-{split}")
    tell([scored], run, as_json=as_json, quiet=quiet)
    if rows and not quiet and not as_json and scored.table is not None:
        shown = scored.table.sort_by("rank").slice(0, rows)
        names = [name for name in shown.column_names if name in _SHOWN]
        print_table(names, [[_short(row[name]) for name in names] for row in shown.to_pylist()])


@app.command()
def evaluate(
    runs: RunFolders,
    method: Annotated[
        str | None,
        typer.Option(help="The method to compare the others with; by default the one that gave the probabilities."),
    ] = None,
    patient: Patient = None,
    replicates: Annotated[int, typer.Option(help="How often to resample the patients for intervals.")] = 1000,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="The Run to save the evaluation in; by default the Run given, if it is only one."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare all methods on scored lesions of cases with masks: area under curve, differences, intervals."""
    from weakspot.cli.printing import print_table
    from weakspot.cli.room_commands import tell
    from weakspot.core.run import Run
    from weakspot.lesions.analysis import SCORES, evaluation_finding
    from weakspot.lesions.methods import METHODS

    if method not in (None, *METHODS):
        raise ConfigError(f"method {method!r} is not known: choose one of {', '.join(METHODS)}")
    scored = [Run.open(folder)[SCORES] for folder in runs]
    evaluation = evaluation_finding(scored, method=method, patient=patient, replicates=replicates)
    target = run or (runs[0] if len(runs) == 1 else None)
    if target is not None:
        _keep(Run.create(target), evaluation)
    tell(
        [evaluation],
        target or Path("nowhere, since several Runs are given: choose one with --run"),
        as_json=as_json,
        quiet=quiet,
    )
    if not quiet and not as_json and evaluation.table is not None:
        names = [
            "method",
            "area",
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "spearman_with_size",
        ]
        print_table(names, [[_short(row[name]) for name in names] for row in evaluation.table.to_pylist()])


@app.command()
def export(
    config: ConfigFile,
    output: Annotated[Path, typer.Option(help="The folder to write to, one folder per case.")] = Path("lesions"),
    run: RunOption = None,
    split: Annotated[str, typer.Option(help="The split whose cases to write.")] = "test",
    case: Annotated[list[str] | None, typer.Option(help="One case alone; may be given several times.")] = None,
    settings: SetOption = None,
    device: Device = None,
    quiet: Quiet = False,
) -> None:
    """Write the lesions of each case as tables, label map, voxel maps and pictures, with scores if the Run has them."""
    from weakspot.asking.config import read_config
    from weakspot.asking.loading import load
    from weakspot.asking.progress import Bar
    from weakspot.asking.session import plan_for, run_folder
    from weakspot.cli.room_commands import with_settings
    from weakspot.core.progress import Silent
    from weakspot.core.run import Run
    from weakspot.core.source import innermost
    from weakspot.lesions.analysis import SCORES
    from weakspot.lesions.export import export_cases
    from weakspot.lesions.probes import Lesions

    read = with_settings(read_config(config), "lesions", settings)
    step = next(step for step in plan_for(read, config.parent, []).steps if step.probe is Lesions)
    loaded, opened = load(read, config.parent, device=device), Run.open(run_folder(config, read, run))
    source: Any = loaded.data.get(split)
    volumes: Any = None if source is None else innermost(source)
    if not hasattr(volumes, "grid"):
        raise DataError(f"the split {split!r} holds no volumes in NIfTI files: there is no grid to write label maps on")
    scored = SCORES if split == "test" else f"{SCORES}-{split}"
    finding = opened[scored] if scored in opened else _lesions(opened, split)
    case_sampling = Lesions(**step.options).case_sampling
    progress = Silent() if quiet else Bar()
    written = export_cases(
        finding,
        loaded.subject,
        source,
        output,
        grid=volumes.grid,
        sampling=case_sampling,
        cases=case,
        progress=progress,
    )
    if not quiet:
        typer.echo(f"wrote {len(written)} cases to {output}")


_SHOWN = ("case", "lesion", "z", "y", "x", "voxels", "volume_mm3", "false_positive_probability", "true_positive")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _lesions(run: "Run", split: str) -> "Finding":
    from weakspot.core.errors import RunError
    from weakspot.lesions.analysis import LESIONS

    name = LESIONS if split == "test" else f"{LESIONS}-{split}"
    if name not in run:
        raise RunError(
            f"{run.folder} has no lesions of the split {split!r}: sample them with "
            f"`weakspot lesions sample weakspot.yaml --set splits='[{split}]'`"
        )
    return run[name]


def _check_unseen(sampled: Sequence["Finding"], trained_on: Path | None, patient: str | None) -> None:
    """Refuse cases that the network was trained on, as they were listed when sampled or as a file lists them."""
    from weakspot.lesions.leakage import check_unseen
    from weakspot.lesions.room import case_ids

    listed = [] if trained_on is None else case_ids(trained_on)
    for finding in sampled:
        cases, before = finding.arrays["cases"], finding.provenance["parameters"].get("trained_on", ())
        trained = [*listed, *before, *cases[finding.arrays["case_trained_on"]].tolist()]
        check_unseen(cases.tolist(), trained, patient=patient)


def _check_test_apart(runs: Sequence[Path], sampled: Sequence["Finding"], split: str, patient: str | None) -> None:
    """Refuse to learn from cases, or patients, that are test cases of the same Run."""
    from weakspot.core.run import Run
    from weakspot.lesions.analysis import LESIONS
    from weakspot.lesions.leakage import in_both

    for folder, finding in zip(runs, sampled, strict=True):
        opened = Run.open(folder)
        if split == "test" or LESIONS not in opened:
            continue
        both = in_both(finding.arrays["cases"].tolist(), opened[LESIONS].arrays["cases"].tolist(), patient)
        if both:
            raise DataError(f"{both} of the split {split!r} is in the test split of {folder}, too: keep them apart")


def _alike(sampled: Sequence["Finding"]) -> dict[str, Any]:
    """The options of the sampling, which must be the same in all Runs."""
    from weakspot.lesions.analysis import check_alike

    parameters = dict(sampled[0].provenance["parameters"])
    for other in sampled[1:]:
        check_alike(parameters, other.provenance["parameters"])
    return parameters


def _keep(run: "Run", finding: "Finding", suffix: str = "") -> None:
    from dataclasses import replace

    named = replace(finding, name=finding.name + suffix)
    with run.locked():
        run.save(named)
        before = run.manifest()
        run.describe(subject=before["subject"], data=before["data"], asked=[named.name])
