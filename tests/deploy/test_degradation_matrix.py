"""The table of what fails how names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_line_of_the_matrix_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    [table] = re.findall(r"\| lost \| tests \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    lines = table.strip().splitlines()
    assert len(lines) == 7
    for line in lines:
        named = re.findall(r"`(test_\w+)`", line)
        assert named, line
        assert set(named) <= there, line
