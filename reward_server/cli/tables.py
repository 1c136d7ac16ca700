"""Tables whose names can be copied: a terminal that is too narrow wraps their lines, and nothing cuts their cells."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

WIDE = 1000
"""Of a file or a pipe, which have no width."""


def wide_console(*, stderr: bool = False) -> Console:
    """A terminal keeps its own width; a file or a pipe gets one that holds every table."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=WIDE)


def name_columns(table: Table, *headings: str) -> None:
    """Add columns of what users copy: each cell stays whole and on one line."""
    for heading in headings:
        table.add_column(heading, no_wrap=True)


def show(table: Table, console: Console) -> None:
    """Print it as narrow as the console, but no narrower than its columns that do not wrap."""
    for column in table.columns:
        if column.no_wrap:
            lines = [line for cell in (column.header, *column.cells) for line in str(cell).splitlines()]
            column.min_width = max(map(cell_len, lines), default=0)
    least = console.measure(table, options=console.options.update(max_width=WIDE)).minimum
    console.width = max(console.width, least)
    console.print(table, crop=False)
