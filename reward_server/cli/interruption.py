"""Interruption of a command whose work can be gone on with: one line on Ctrl-C, and only what is true.

The interruption goes on its way; `cli.main` ends the process with the code that shells give it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


@contextmanager
def interruption_told(out: Path, is_kept: Callable[[], bool]) -> Iterator[None]:
    """On Ctrl-C say how to go on, or that nothing was kept to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        told = "interrupted; nothing was kept yet, so the same command starts from the beginning"
        if is_kept():
            told = f"interrupted; the same command with --resume continues (--out {out})"
        typer.echo(f"labs: {told}", err=True)
        raise
