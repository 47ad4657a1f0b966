"""`weakspot share`: a copy of a Run to hand on; and what `report` leaves out of the page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from weakspot.cli.arguments import Quiet, RunFolder

if TYPE_CHECKING:
    from weakspot.core.run import Run
    from weakspot.sharing import Sharing

_MOST_KEY = 4096
Pictures = Annotated[bool, typer.Option("--pictures/--no-pictures", help="Whether pictures stay.")]
Pseudonyms = Annotated[
    bool, typer.Option("--pseudonyms", help="Put a keyed hash in place of ids; without --key the key is thrown away.")
]
KeyFile = Annotated[
    Path | None, typer.Option(help="A file with the key of the pseudonyms, 16 bytes or more; keep it to yourself.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(share)


def share(
    run: RunFolder,
    output: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.")],
    pictures: Pictures = True,
    pseudonyms: Pseudonyms = False,
    key: KeyFile = None,
    metadata: Annotated[bool, typer.Option(help="Whether columns that came with the data stay.")] = True,
    without: Annotated[list[str] | None, typer.Option(help="A Finding to leave out, by name or pattern.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a copy of a Run to hand on: without pictures, with pseudonyms in place of ids."""
    from dataclasses import replace

    from weakspot.cli.error_attribution import reading
    from weakspot.core.run import Run
    from weakspot.sharing import shared_run

    how = _sharing(pictures, pseudonyms, key)
    with reading(run):
        copied = shared_run(Run.open(run), output, replace(how, metadata=metadata, without=tuple(without or ())))
    if not quiet:
        typer.echo(f"run: {copied.folder}, {len(copied.names())} Findings")


@contextmanager
def shown(run: "Run", *, pictures: bool, pseudonyms: bool, key: Path | None) -> Iterator["Run"]:
    """The Run, or a passing copy without what is to be left out."""
    from weakspot.sharing import shared_run

    if pictures and not pseudonyms and key is None:
        yield run
        return
    with TemporaryDirectory(prefix="weakspot-") as scratch:
        yield shared_run(run, Path(scratch) / (run.folder.resolve().name or "run"), _sharing(pictures, pseudonyms, key))


def _sharing(pictures: bool, pseudonyms: bool, key: Path | None) -> "Sharing":
    from weakspot.core.guarded_open import open_plain
    from weakspot.sharing import Sharing, random_key

    if key is None:
        return Sharing(pictures, key=random_key() if pseudonyms else None)
    with open_plain(key) as file:
        return Sharing(pictures, key=file.read(_MOST_KEY).strip())
