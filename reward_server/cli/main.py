"""The `labs` command: serve, look after, and author for the reward server.

Sub-commands import what they need when they run, so that `labs --help` and `labs version` answer at
once. Everything that goes wrong on purpose is one line on standard error and exit code 1, or 2 for a
wrong call; tracebacks are for defects.
"""

from __future__ import annotations

import sys

import typer

from reward_server import __version__
from reward_server.cli import doctor, evaluate, keys, scenarios, serve
from reward_server.errors import LabsError

app = typer.Typer(
    name="labs",
    help="Labs: simulated personas and hidden rubrics as a reward service for training conversational agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Settings come from options or from LABS_… in the environment, for example LABS_PORT=9000 labs serve.",
)
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(keys.app, name="keys")
app.add_typer(scenarios.app, name="scenarios")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"labs {__version__}")


def main() -> None:
    """Run the command line; the entry point of the package."""
    try:
        app()
    except LabsError as error:
        typer.echo(f"labs: {error.message}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
