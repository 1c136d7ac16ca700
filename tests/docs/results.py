"""Reads the tables of benchmarks/results, and writes their cells as prose does."""

from __future__ import annotations

import re
from functools import cache

from benchmarks.report import RESULTS

Row = dict[str, str]


@cache
def tables(name: str) -> dict[str, list[Row]]:
    """The rows of every captioned table of a result file, by caption; a row by column."""
    found: dict[str, list[Row]] = {}
    caption, head = "", []
    for line in (RESULTS / f"{name}.md").read_text().splitlines():
        if line.startswith("**") and line.endswith("**"):
            caption, head = line.strip("*"), []
            found[caption] = []
        elif line.startswith("| ") and caption:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not head:
                head = cells
            elif cells[0] != "---":
                found[caption].append(dict(zip(head, cells, strict=True)))
    return found


def rows(name: str, caption: str) -> list[Row]:
    """The rows of the one table whose caption begins so."""
    [found] = [rows for title, rows in tables(name).items() if title.startswith(caption)]
    return found


def row(name: str, caption: str, *first: str) -> Row:
    """The one row that begins with these cells; of the last of them the beginning is enough."""
    *whole, last = first
    found = {
        cells[len(whole)]: each
        for each in rows(name, caption)
        if (cells := list(each.values()))[: len(whole)] == whole and cells[len(whole)].startswith(last)
    }
    if last in found:
        return found[last]
    [only] = found.values()
    return only


def number(cell: str) -> float:
    """The figure of a cell, without its interval or range."""
    found = re.match(r"-?[\d,]+(?:\.\d+)?", cell)
    assert found, cell
    return float(found.group().replace(",", ""))


def bare(cell: str) -> str:
    """A cell as prose has it: no zero before the point."""
    return re.sub(r"(?<![\d.])0\.", ".", cell)


def point(cell: str) -> str:
    """The figure alone, as prose has it."""
    return bare(cell.partition(" ")[0])
