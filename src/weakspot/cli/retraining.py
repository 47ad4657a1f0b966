"""`weakspot causes retrain`: from the labels of a Run to a better model, and to what can be said of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from weakspot.cli.arguments import ConfigFile, Device, Json, Quiet, RunOption

if TYPE_CHECKING:
    from weakspot.asking.config import Config, RetrainEntry
    from weakspot.core.run import Run
    from weakspot.core.source import Source
    from weakspot.core.subject import Subject
    from weakspot.repair import RetrainingData
    from weakspot.repair.experiment import Experiment, Method

CLUSTERS = "causes.root_causes"
ERRORS = "causes.errors"
SLICES = "causes.error_slices"
WEIGHTS = "retrained.safetensors"
_HEADER = "# Written by `weakspot causes retrain`, which replaces it next time.\n"


def retrain(
    config: ConfigFile,
    run: RunOption = None,
    split: Annotated[str, typer.Option(help="The split on which the models are compared.")] = "test",
    epochs: Annotated[int | None, typer.Option(help="Epochs, at most.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Step size of the optimiser.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples per step.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Trainings per method, each with another seed.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first training.")] = None,
    validation: Annotated[
        str | None, typer.Option(help="For early stopping: a share of the labelled samples (0 for none), or a split.")
    ] = None,
    train_function: Annotated[
        str | None, typer.Option(help="module:function, a training function of your own.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare with, such as 'least confident images' or 'random images repeated'; again for more."
        ),
    ] = None,
    balance: Annotated[
        bool | None, typer.Option(help="Draw images of rare causes again until all causes are as frequent.")
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Also train on as many other samples, if the pool has targets.")
    ] = True,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the model further on the labelled unsafe set, and compare it with the one before and with baselines."""
    from weakspot.asking.config import read_config
    from weakspot.asking.loading import modules_beside
    from weakspot.asking.session import run_folder
    from weakspot.cli import session
    from weakspot.cli.room_commands import tell

    read = read_config(config)
    flags = {
        "epochs": epochs, "learning_rate": learning_rate, "batch_size": batch_size, "repeats": repeats, "seed": seed,
        "validation": _number_or_name(validation), "train": train_function,
        "methods": tuple(method) if method else None, "balance": balance,
    }  # fmt: skip
    how = read.retrain.model_copy(update={name: value for name, value in flags.items() if value is not None})
    target = run_folder(config, read, run)
    with session.resumable(), modules_beside(config.parent):
        made = _retrained(
            read, config.parent, target, how, split, baselines=baselines, device=device, silent=quiet or as_json
        )
    weights = target / WEIGHTS
    written = _write_config(config, read, weights)
    tell([made.finding], target, as_json=as_json, quiet=quiet)
    if not (quiet or as_json):
        typer.echo(f"weights: {weights}\nnext: weakspot examine {written}")


def _number_or_name(text: str | None) -> float | str | None:
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def _retrained(
    config: "Config",
    folder: Path,
    target: Path,
    how: "RetrainEntry",
    split: str,
    *,
    baselines: bool,
    device: str | None,
    silent: bool,
) -> "Experiment":
    """Retrain as often as asked, and keep the Finding in the Run; after an interruption it resumes."""
    from weakspot.asking.loading import load
    from weakspot.asking.progress import Bar
    from weakspot.cli.session import tell_notes
    from weakspot.core.files import remove_folder
    from weakspot.core.progress import Silent
    from weakspot.core.run import Run
    from weakspot.registry import imported
    from weakspot.repair import ExperimentDesign, Recipe, run_experiment
    from weakspot.repair.checkpoints import save_weights

    run = Run.open(target)
    _labels_of(run)
    loaded = load(config, folder, device=device, sets=target / "sets")
    tell_notes(loaded, silent=silent)
    subject, checkpoints = loaded.subject, target / "retraining"
    data = retraining_data(run, subject, loaded.data, split, baselines=baselines)
    recipe = {name: getattr(how, name) for name in Recipe.__dataclass_fields__}
    with run.locked():
        made = run_experiment(
            subject,
            data,
            ExperimentDesign(
                how.repeats,
                methods=cast("tuple[Method, ...] | None", how.methods),
                validation=_validation(how.validation, loaded.data),
                balance=how.balance,
            ),
            recipe=Recipe(**recipe),
            train=None if how.train is None else imported(how.train),
            checkpoints=checkpoints,
            progress=Silent() if silent else Bar(),
        )
        save_weights(made.model, target / WEIGHTS)
        run.save(made.finding)
        remove_folder(checkpoints)
    return made


def _validation(share_or_split: float | str, data: Mapping[str, "Source"]) -> "float | Source":
    return _split(data, share_or_split) if isinstance(share_or_split, str) else share_or_split


def _split(data: Mapping[str, "Source"], name: str) -> "Source":
    from weakspot.core.errors import ConfigError

    if name not in data:
        raise ConfigError(f"retraining needs the split {name!r}, and the data have only {', '.join(data)}: add it")
    return data[name]


def _labels_of(run: "Run") -> Any:
    """The table of labels; a Run without any is refused."""
    from weakspot.causes.labelling import LABELS, UNSAFE, keep_labels
    from weakspot.core.errors import RunError

    table = keep_labels(run).table if UNSAFE in run else run[LABELS].table if LABELS in run else None
    if table is None or table["label"].null_count == len(table):
        raise RunError(
            f"{run.folder} holds no labels, so there is nothing to retrain on: choose images with `weakspot causes "
            "select`, and label them with `weakspot causes label`"
        )
    return table


def retraining_data(
    run: "Run", subject: "Subject", data: Mapping[str, "Source"], split: str, *, baselines: bool
) -> "RetrainingData":
    """What a Run and its data give to retrain on: labels of the unsafe set, clusters of the test set, a pool."""
    import numpy as np

    from weakspot.core.answer_book import known_as
    from weakspot.core.errors import RunError
    from weakspot.repair import Labelled, RetrainingData, targets_of

    if run.manifest()["subject"].get("fingerprint") != known_as(subject, run.manifest()):
        raise RunError(f"{run.folder} is of another model than the file names now: examine this one first")
    table, pool = _labels_of(run), _split(data, _chosen_from(run))
    clusters = dict(zip(table["id"].to_pylist(), table["cluster"].to_pylist(), strict=True))
    targets = targets_of(table, task=subject.task, classes=subject.classes)
    chosen = {name: target for name, target in targets.items() if clusters[name]}
    has_targets = pool.read(np.arange(1)).targets is not None
    return RetrainingData(
        unsafe=Labelled(pool, chosen),
        clusters=clusters,
        test=_split(data, split),
        train=data.get("train"),
        pool=pool if baselines and has_targets else None,
        causes=_causes(run) if split == "test" else {},
        threshold=_threshold(run),
    )


def _chosen_from(run: "Run") -> str:
    """The split from which the images to label were chosen."""
    from weakspot.causes.labelling import UNSAFE

    data = run[UNSAFE].provenance.get("data") if UNSAFE in run else None
    splits = [name for name, noted in run.manifest()["data"].items() if noted.get("fingerprint") == data]
    return splits[0] if data and splits else "pool"


def _causes(run: "Run") -> dict[str, int]:
    """The cause of each error of the test data, by what chose the images to label: clusters, or rules."""
    from weakspot.causes.labelling import UNSAFE

    by_rules = UNSAFE in run and "chosen_by" in run[UNSAFE].arrays
    if by_rules and SLICES in run and ERRORS in run:
        return _errors_of_rules(run)
    if CLUSTERS not in run:
        return {}
    arrays = run[CLUSTERS].arrays
    return dict(zip(arrays["image_id"].tolist(), arrays["image_cluster"].tolist(), strict=True))


def _errors_of_rules(run: "Run") -> dict[str, int]:
    arrays, table = run[SLICES].arrays, run[ERRORS].table
    place = dict(zip(arrays["image_id"].tolist(), arrays["image_slice"].tolist(), strict=True))
    rows = [] if table is None else zip(table["id"].to_pylist(), table["correct"].to_pylist(), strict=True)
    return {name: place[name] for name, correct in rows if not correct}


def _threshold(run: "Run") -> float | None:
    """Above which error a number is incorrect, as the Run has it."""
    threshold = run[ERRORS].summary.get("threshold") if ERRORS in run else None
    return None if threshold is None or threshold.value is None else float(threshold.value)


def _write_config(file: Path, config: "Config", weights: Path) -> Path:
    """The configuration with the new weights, beside the old one."""
    import os

    import yaml

    from weakspot.core.files import write_text
    from weakspot.yaml_file import read_yaml

    raw, _ = read_yaml(file)
    subject = {name: value for name, value in raw["subject"].items() if name != "weights_entry"}
    raw["subject"] = {**subject, "weights": os.path.relpath(weights, file.parent)}
    if config.run is not None:
        raw["run"] = f"{config.run}-retrained"
    target = file.with_name(f"{file.stem}-retrained{file.suffix}")
    write_text(target, _HEADER + yaml.safe_dump(raw, sort_keys=False, allow_unicode=True))
    return target
