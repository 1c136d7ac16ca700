"""The `labs` command: serve, look after, and author for the reward server.

Sub-commands import what they need when they run, so that `labs --help` and `labs version` answer at
once. Everything that goes wrong on purpose is one line on standard error and exit code 1, or 2 for a
wrong call; tracebacks are for defects.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import typer

from reward_server import __version__
from reward_server.cli import calibrate, doctor, evaluate, judges, keys, reward_model, scenarios, serve
from reward_server.cli.program import as_called, called
from reward_server.errors import LabsError

# Typer carries its own copy of click and exports of its usage errors only a subclass.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="labs",
    help="Labs: simulated personas and hidden rubrics as a reward service for training conversational agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Settings come from options or from LABS_… in the environment, for example LABS_PORT=9000. "
    "In a checkout, ./labs test runs all checks and ./labs learner is the bundled learner.",
)
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)
app.command("evaluate")(evaluate.evaluate)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(keys.app, name="keys")
app.add_typer(judges.app, name="judges")
app.add_typer(scenarios.app, name="scenarios")
app.add_typer(reward_model.app, name="reward-model")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"labs {__version__}")


def _wrong_call(error: Any) -> None:
    """One line for a wrong call; nothing where the help was shown instead."""
    if problem := error.format_message().strip():
        where = error.ctx.command_path if error.ctx else called()
        typer.echo(f"labs: {problem} (see {where} --help)", err=True)


def main() -> None:
    """Run the command line; the entry point of the package."""
    try:
        code = app(prog_name=called(), standalone_mode=False)
    except USAGE_ERROR as error:
        _wrong_call(error)
        sys.exit(2)
    except LabsError as error:
        typer.echo(f"labs: {as_called(error.message)}", err=True)
        sys.exit(1)
    except OSError as error:
        # Of a file that the caller named or the data folder; anything else is a defect and keeps its traceback.
        if error.filename is None:
            raise
        typer.echo(f"labs: {error.filename} cannot be read or written: {error.strerror}", err=True)
        sys.exit(1)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
