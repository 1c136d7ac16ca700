"""Writes what was measured: `agreement.json`, `report.md` and a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.plot import drawn
from reward_server.preferences.agreement_tables import NAMES, tables
from reward_server.preferences.figures import Figures
from reward_server.reward_models.artefact import refuse_taken
from scenarios.spelling import counted

JSON, REPORT, PLOT = "agreement.json", "report.md", "agreement.png"


def refuse_written(folder: Path) -> None:
    """`InvalidRequest` for a folder that holds something: a report takes long to make, and is not written over."""
    try:
        refuse_taken(folder)
    except InvalidRequest as taken:
        raise InvalidRequest(f"{taken.message}, or --force") from None


def write(folder: Path, measured: Figures) -> None:
    """All three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_text(json.dumps(measured, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    _plot(folder / PLOT, measured)
    (folder / REPORT).write_text(markdown(measured), encoding="utf-8")


def markdown(measured: Figures) -> str:
    """The report; brackets are 95 % intervals, drawn by dialogue."""
    lines = [
        f"# Agreement of {counted(len(measured['judges']), 'judge')}",
        "",
        f"{counted(measured['entries'], 'row')} of {counted(measured['dialogues'], 'dialogue')}; "
        "brackets are 95 % intervals over dialogues.",
        "",
    ]
    for table in tables(measured):
        lines += [f"## {table.title}", ""]
        lines += [table.before, ""] if table.before else []
        lines += [_row(table.head), f"|{'---|' * len(table.head)}", *map(_row, table.rows), ""]
        lines += [table.after, ""] if table.after else []
    return "\n".join([*lines, f"![Figures]({PLOT})", ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plot(path: Path, measured: Figures) -> None:
    drawn(measured, NAMES).savefig(path, format="png", dpi=110)
