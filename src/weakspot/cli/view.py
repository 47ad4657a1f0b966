"""`weakspot view`: a Run in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from weakspot.cli.arguments import RunFolder

PORT = 8765


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(view)


def view(
    run: RunFolder,
    other: Annotated[Path | None, typer.Argument(help="Another Run, to see the same samples before and after.")] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free port.", min=0, max=65535)] = PORT,
    host: Annotated[
        str,
        typer.Option(help="Name or address to listen on; with any but localhost, other machines may reach it."),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Show a Run in the browser, until Ctrl-C; with a second Run, both side by side."""
    from weakspot.asking.answers import viewer_module
    from weakspot.core.run import Run

    for folder in (run, other):
        if folder is not None:
            Run.open(folder)
    viewer = viewer_module()
    if not viewer.is_loopback(host):
        typer.echo(
            f"weakspot: {host} can be reached from other machines, and what passes can be read on the way: whoever has "
            "the token sees the Run and can change its labels",
            err=True,
        )
    viewer.serve([run] if other is None else [run, other], host=host, port=port, browser=browser, say=_say)
    typer.echo("weakspot: viewer ended", err=True)


def _say(text: str) -> None:
    typer.echo(text)
    typer.get_text_stream("stdout").flush()
