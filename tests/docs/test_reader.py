"""What docs/reader.md says of the reader is what `benchmarks.reader` measured."""

from __future__ import annotations

import re

import pytest

from benchmarks.processes import ROOT
from benchmarks.report import RESULTS
from reward_server.fitting.reader.evaluate import MEASURES

pytestmark = pytest.mark.slow

LINE = re.compile(rf"^\| (?:{'|'.join(map(re.escape, MEASURES))}) \(\d+\) \|.*$", re.MULTILINE)


def test_the_tables_are_the_measured_ones_in_their_order() -> None:
    shown = LINE.findall((ROOT / "docs/reader.md").read_text(encoding="utf-8"))
    assert shown == LINE.findall((RESULTS / "reader.md").read_text(encoding="utf-8"))
    assert len(shown) >= 2 * len(MEASURES)
