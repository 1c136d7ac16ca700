"""The page on architecture and the import rules name what is there."""

from __future__ import annotations

import configparser
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_the_server_has_every_folder_and_file() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    parts = [path for path in (ROOT / "reward_server").iterdir() if not path.name.startswith("__")]
    names = [f"`{path.name}/`" if path.is_dir() else f"`{path.name}`" for path in parts]
    assert [name for name in names if name not in page] == []


def test_errors_and_the_name_of_the_command_are_under_the_rules() -> None:
    """Errors know by which name the process was started, which is all that they know of terminals."""
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter")
    held = rules["importlinter:contract:http"]["source_modules"].split()
    assert {"reward_server.errors", "reward_server.program"} <= set(held)
