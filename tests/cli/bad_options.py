"""Every option of every command with values that cannot be: each must end with one line and exit code 2."""

import os
from pathlib import Path

import typer

from tests.cli.damaging import KINDS, make_all, write_config
from weakspot.cli.main import app

WHOLE = {"limit", "batch_size", "shard_size", "workers", "threads", "engine_workers", "rows", "port", "budget",
         "epochs", "repeats", "folds", "replicates", "seed"}  # fmt: skip
REAL = {"learning_rate", "confidence", "gpus_per_worker"}
UNBOUNDED = {"limit", "rows"}
"""As many as there are, where more are asked for."""
CHOICE = {"on_bad_sample", "engine", "precision", "method", "device"}
READ = {"baseline", "key", "labels", "seal", "signers", "policy", "trained_on", "weights"}
"""Options whose file is read."""
WRITTEN = {"junit", "markdown", "output"}
"""Options whose file is written, of commands that get so far with the good files."""
WRITES = {"report", "gate", "evidence write"}
GOOD = {
    "config": "weakspot.yaml", "run": "run", "name": "robustness.neighbours", "policy": "policy.yaml", "before": "run",
    "after": "other", "other": "other", "runs": "run", "bundle": "bundle", "probe": "neuron_coverage", "output": "copy",
}  # fmt: skip
NO_FILES = [
    "nowhere",
    "",
    "empty_folder",
    "plain.txt",
    "fifo",
    "loop",
    "lost",
    "/dev/zero",
    "x" * 300,
    "a\0b",
    "fifo/x",
]
NO_PLACES = ["plain.txt/x", "nowhere\0", "x" * 300, "loop/x", ""]
WRONG_ARGUMENTS = {"probe": ["nonsense", "", ":", "a:b", "\0"], "output": NO_PLACES}


def make_project(folder: Path, module: str) -> Path:
    """Good files of every kind, and some that are none."""
    make_all(folder)
    write_config(folder, module, KINDS["npz"])
    (folder / "empty_folder").mkdir()
    (folder / "plain.txt").write_text("plain\n")
    (folder / "lost").symlink_to("gone")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    return folder


def commands():
    """(words, click command) of all commands."""
    waiting = [((), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            yield words, command
        else:
            waiting += [((*words, name), one) for name, one in sorted(inner.items(), reverse=True)]


def wrong_values(words, name):
    """Values that this option cannot have."""
    if name in WHOLE:
        return ["x", "1.5", "", "1e3", "9" * 400][: 4 if name in UNBOUNDED else 5]
    if name in REAL:
        return ["x", "", "nan", "-1", "1e400"]
    if name in CHOICE:
        return ["nonsense", ""]
    if name in READ and words != ("init",):
        return NO_FILES
    return NO_PLACES if name in WRITTEN and " ".join(words) in WRITES else []


def calls():
    """Arguments of calls that must fail."""
    for words, command in commands():
        given = [p for p in command.params if type(p).__name__.endswith("Argument") and p.required]
        options = [p for p in command.params if not type(p).__name__.endswith("Argument") and p.opts != ["--help"]]
        must = [part for p in options if p.required for part in (p.opts[0], "data.npz")]
        good = [*words, *(GOOD[p.name] for p in given), *must]
        yield [*good, "--nonsense"]
        yield [*good, *["more"] * 3] if words not in (("lesions", "fit"), ("lesions", "evaluate")) else [*words]
        if given or must:
            yield [*words]
        for option in options:
            if not option.is_flag:
                yield [*good, option.opts[0]]
            yield from ([*good, option.opts[0], value] for value in wrong_values(words, option.name))
        for place, argument in enumerate(given):
            for value in WRONG_ARGUMENTS.get(argument.name, NO_FILES):
                yield [*words, *(value if i == place else GOOD[p.name] for i, p in enumerate(given)), *must]


CALLS = list(dict.fromkeys(tuple(arguments) for arguments in calls() if tuple(arguments) != ("demo",)))
