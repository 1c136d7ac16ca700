"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INTERRUPTED = 130
"""What shells give a command that ended on Ctrl-C."""

Url = Annotated[
    str | None,
    typer.Option(help="Address of the server.", show_default="LABS_URL, else http://127.0.0.1:8321", metavar="URL"),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Change a setting of the file, such as optim.learning_rate=1e-5 or run.updates=50; may be repeated.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and the memory it needs, then exit.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows of the training file that cannot be used.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove the run that is in the folder, and start anew.")]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", help="Named changes of the file, such as conservative; `profiles` lists them."),
]
PluginNames = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE:OBJECT",
        help="A reward, an environment or a callback of your own (docs/build-your-own.md); may be repeated.",
    ),
]
ConfigFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A TOML, YAML or JSON file such as run.toml, or the name of a preset.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a run.")]
Which = Annotated[
    str, typer.Option(metavar="best|last|STEP", help="Which checkpoint: the best evaluation's, the newest, or one.")
]


def interrupted(what_then: str) -> typer.Exit:
    """Say that the command was interrupted, and what that leaves; to be raised."""
    typer.echo(f"\ninterrupted{what_then}", err=True)
    return typer.Exit(INTERRUPTED)
