"""The `labs` command: serve, look after, and author for the reward server.

Sub-commands import what they need when they run, so that `labs --help` and `labs version` answer at
once. Everything that goes wrong on purpose is one line on standard error and exit code 1, or 2 for a
wrong call; tracebacks are for defects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

from reward_server import __version__
from reward_server.cli import (
    agents,
    backup,
    calibrate,
    doctor,
    evaluate,
    jobs,
    judges,
    keys,
    migrate,
    preferences,
    reader,
    reward_model,
    runs,
    scenarios,
    serve,
    store,
    tenants,
    top,
    worker,
)
from reward_server.errors import LabsError
from reward_server.program import IN_A_CHECKOUT, called

# Typer carries its own copy of click and exports of its usage errors only a subclass.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    name="labs",
    help="Labs: simulated personas and hidden rubrics as a reward service for training conversational agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Settings come from options or from LABS_… in the environment, for example LABS_PORT=9000.",
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("doctor")(doctor.doctor)
app.command("top")(top.top)
app.command("migrate")(migrate.migrate)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("evaluate")(evaluate.evaluate)
app.command("score", hidden=True, context_settings=ANYTHING)(evaluate.score)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(keys.app, name="keys")
app.add_typer(tenants.app, name="tenants")
app.add_typer(jobs.app, name="jobs")
app.add_typer(agents.app, name="agents")
app.add_typer(runs.app, name="runs")
app.command("leaderboard")(agents.leaderboard)
app.add_typer(judges.app, name="judges")
app.add_typer(preferences.app, name="preferences")
app.add_typer(store.app, name="store")
app.add_typer(scenarios.app, name="scenarios")
app.add_typer(reward_model.app, name="reward-model")
app.add_typer(reader.app, name="reader")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"labs {__version__}")


def _of_the_checkout(name: str) -> Callable[[], None]:
    def run() -> None:
        raise LabsError(f"{name} is a command of ./labs in a checkout")

    return run


if called() == IN_A_CHECKOUT:
    # `deploy/bootstrap.py` runs these before it comes to this program: they are here for the help alone.
    for name, about in {
        "learner": "Train an agent with the bundled learner.",
        "test": "Run all checks of the checkout, or the given tests.",
        "audit": "Ask for known vulnerabilities of the pinned packages.",
    }.items():
        app.command(name, help=about, rich_help_panel="In a checkout", context_settings=ANYTHING)(
            _of_the_checkout(name)
        )


def _wrong_call(error: Any) -> None:
    """One line for a wrong call; nothing where the help was shown instead."""
    if problem := error.format_message().replace("Value error, ", "").strip().removesuffix("."):
        where = error.ctx.command_path if error.ctx else called()
        typer.echo(f"labs: {problem} (see {where} --help)", err=True)


def main() -> None:
    """Run the command line; `cli.start` is the entry point."""
    try:
        code = app(prog_name=called(), standalone_mode=False)
    except USAGE_ERROR as error:
        _wrong_call(error)
        sys.exit(2)
    except LabsError as error:
        typer.echo(f"labs: {error.message}", err=True)
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
