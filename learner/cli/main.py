"""The program: all commands, and what becomes of their errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import typer

from learner.cli import evaluation, launching, listings, models, training, tuning
from learner.cli.options import INTERRUPTED
from trainer_client import LabsError

PROGRAM = "labs learner"
# Typer carries its own copy of click and exports of its usage errors only a subclass.
USAGE_ERROR = cast(type[Exception], typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="learner",
    help="Train a policy on the rewards of a Labs server.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (
    training.demo,
    training.train,
    training.check,
    evaluation.evaluate,
    tuning.tune,
    listings.report,
    models.export,
    models.serve,
    listings.algorithms,
    listings.presets,
    listings.profiles,
    listings.config,
    listings.metrics,
):
    app.command(command.__name__)(command)
app.command("launch", context_settings=launching.PASSED_ON)(launching.launch)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    try:
        status = app(args=None if arguments is None else list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("\ninterrupted", err=True)
        return INTERRUPTED
    except USAGE_ERROR as error:
        return _wrong_call(error)
    except _refusals() as error:
        typer.echo(f"learner: {_one_line(error)}", err=True)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        typer.echo(f"learner: {_one_line(error)}", err=True)
        return 2
    return status if isinstance(status, int) else 0


def _wrong_call(error: Any) -> int:
    """One line for a wrong call; nothing where the help was shown instead."""
    if problem := error.format_message().strip().removesuffix("."):
        where = error.ctx.command_path if error.ctx else PROGRAM
        typer.echo(f"learner: {problem} (see {where} --help)", err=True)
    return 2


def _refusals() -> tuple[type[Exception], ...]:
    """Errors that are a message to the user. Torch is only loaded if a command already did."""
    names = (
        ("loop", "NoEpisodesError"),
        ("canary", "CanaryError"),
        ("update", "NonFiniteError"),
        ("update", "MismatchError"),
        ("generate.vllm", "EngineError"),
    )
    loaded = [(sys.modules.get(f"learner.{module}"), name) for module, name in names]
    more = [getattr(module, name) for module, name in loaded if module is not None]
    return (LabsError, ValueError, OSError, training.ServerUnfitError, *more)


def _lacks_memory(error: Exception) -> bool:
    """True if memory ran out; on a CPU torch says so with a plain RuntimeError."""
    is_named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return is_named or "can't allocate memory" in str(error)


def _one_line(error: Exception) -> str:
    said = " ".join(". ".join([str(error).rstrip("."), *getattr(error, "__notes__", [])]).split())
    if _lacks_memory(error):
        return f"too little memory; lower optim.micro_tokens or rollout.groups, or set model.recompute: {said[:200]}"
    return said
