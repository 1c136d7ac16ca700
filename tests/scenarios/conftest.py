"""Folders of collections built from the author's template, whole or with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.template import begin

NAME = "my-collection/my-scenario"
Change = Callable[..., Path]


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """A folder with one collection and one scenario that pass."""
    root = tmp_path / "collections"
    begin(NAME, root)
    return root


@pytest.fixture
def change(collections: Path) -> Change:
    """Replaces text in a file of the folder; the file's path."""

    def apply(old: str, new: str, file: str = "my-scenario.yaml") -> Path:
        path = collections / "my-collection" / file
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))
        return path

    return apply
