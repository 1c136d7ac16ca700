"""Folders of collections built from the author's template, whole or with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest

from scenarios import template
from scenarios.template import begin

NAME = "my-collection/my-scenario"
TEMPLATE = Path(template.__file__).parent
Change = Callable[..., Path]


def in_one_file() -> str:
    """The template with rubric and oracle in the scenario's own file, where they may stand, too."""
    scenario, rubric, agents = ((TEMPLATE / f"{name}.yaml").read_text() for name in ("scenario", "rubric", "agents"))
    oracle = agents.partition("\n\n")[0]
    return f"{scenario}  rubric:\n{indent(rubric, '    ')}  exam:\n{indent(oracle, '    ')}\n"


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """A folder with one collection and one scenario that pass."""
    root = tmp_path / "collections"
    begin(NAME, root)
    return root


@pytest.fixture
def change(collections: Path) -> Change:
    """Replaces text in a file of the folder, by default in that of the scenario's own that holds it; its path."""

    def apply(old: str, new: str, file: str | None = None) -> Path:
        folder = collections / "my-collection"
        own = [folder / f"my-scenario.{ending}" for ending in ("yaml", "rubric.yaml", "agents.yaml")]
        path = folder / file if file else next(path for path in own if old in path.read_text())
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))
        return path

    return apply
