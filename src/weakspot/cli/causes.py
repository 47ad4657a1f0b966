"""`weakspot causes`: from error-inducing images to root-cause clusters, and from these to a better model."""

import typer

from weakspot.cli.questions import ask_command, asking_alone, question

app = typer.Typer(cls=question("cluster"), no_args_is_help=True)
app.command("cluster", help=asking_alone("causes"))(ask_command("causes"))
