"""What docs/reader.md says of the reader is what `benchmarks.reader` measured."""

from __future__ import annotations

import re

import pytest

from benchmarks.processes import ROOT
from benchmarks.report import RESULTS
from reward_server.fitting.reader.evaluate import MEASURES

pytestmark = pytest.mark.slow

LINE = re.compile(rf"^\| ({'|'.join(map(re.escape, MEASURES))}) \((\d+)\) \|.* \| (\S+) \| (\S+) \|$", re.MULTILINE)
"""A measure, its number of turns, the share in all collections, and the interval of that."""


def measured() -> list[dict[str, str]]:
    """Of each table of the result file: the cell that the page has for a measure."""
    sections = (RESULTS / "reader.md").read_text(encoding="utf-8").split("\n## ")
    tables = [LINE.findall(section) for section in sections if LINE.search(section)]
    return [{name: f"{share} of {turns} ({interval})" for name, turns, share, interval in rows} for rows in tables]


def test_the_table_has_the_measured_figures_of_all_collections() -> None:
    tables = measured()
    page = (ROOT / "docs/reader.md").read_text(encoding="utf-8")
    rows = [f"| {name} | {' | '.join(table[name] for table in tables)} |" for name in MEASURES]
    assert len(tables) >= 2
    assert [row for row in rows if row not in page] == []
