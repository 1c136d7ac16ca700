"""Commands in the docs and in messages work as they stand when they are copied from the root of a checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
COMMANDS = (
    "serve|doctor|top|migrate|backup|restore|evaluate|agents|leaderboard|calibrate|keys|judges|preferences|scenarios"
    "|score|store|reward-model"
)
BARE = re.compile(rf"(?<![./\w-])(?<!--rm )labs (?:{COMMANDS})\b")
"""`labs` alone; in a container, where the service is called that, it stands after `run --rm`."""


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_name_the_command_as_it_can_be_typed(page: Path) -> None:
    bare = [line for line in page.read_text().splitlines() if BARE.search(line)]
    assert bare == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_name_the_python_that_has_the_packages(page: Path) -> None:
    """`python` alone is one without them, or none at all; what needs no packages, any Python 3 runs."""
    wrong = re.compile(r"(?<![./\w-])(?:python -m (?!venv|pip)|python3 -m (?!venv|pip|json\.tool))")
    bare = [line for line in page.read_text().splitlines() if wrong.search(line)]
    assert bare == []


def test_texts_for_people_name_it_so_too() -> None:
    """Strings on one line of code; docstrings speak of the command by its name."""
    found = [
        f"{path.name}: {line.strip()}"
        for package in ("reward_server", "learner", "scenarios")
        for path in sorted((ROOT / package).rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(rf'"[^"]*{BARE.pattern}[^"]*"', line) and '"""' not in line
    ]
    assert found == []
