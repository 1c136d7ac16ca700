"""The reference page is the one that the code gives, and has every setting, route and error code once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts

from reward_server.cli import reference
from reward_server.console.mounting import routes as console_routes
from reward_server.server.app import create_app
from reward_server.settings import PREFIX, Settings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference.md").read_text()
CODE = re.compile(r'^ *code = "(\w+)"', re.MULTILINE)
PAGES_OF_CONSOLE = {route.path_format for route in console_routes()}  # type: ignore[attr-defined]
NOT_LISTED = {"/docs/assets/{name}", *PAGES_OF_CONSOLE}


def first_cells(section: str) -> list[str]:
    """The names in the first column of a section's table."""
    rows = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0].splitlines()
    return [name for row in rows if row.startswith("| `") for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_the_page_is_the_one_that_the_code_gives() -> None:
    """If not: .venv/bin/python -m reward_server.cli.reference > docs/reference.md"""
    assert reference.page() == PAGE


def test_every_setting_has_one_row() -> None:
    assert sorted(first_cells("Settings")) == sorted(f"{PREFIX}{name.upper()}" for name in Settings.model_fields)


def test_every_route_has_one_row() -> None:
    listed = first_cells("Routes")
    assert len(listed) == len(set(listed))
    paths = {getattr(route, "path_format", None) for route in iter_route_contexts(create_app(Settings()).routes)}
    assert {path for path in paths if path} - {name.split(" ", 1)[1] for name in listed} - NOT_LISTED == set()


def test_every_error_code_has_one_row() -> None:
    listed = first_cells("Error codes")
    assert len(listed) == len(set(listed))
    code = "\n".join(path.read_text() for path in (ROOT / "reward_server").rglob("*.py"))
    assert set(CODE.findall(code)) - set(listed) == set()
