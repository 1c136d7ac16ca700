"""The template scenario with the server's own encoder and scorer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.server.engine import OfflineEngine, load_matcher, offline_engine
from reward_server.settings import Settings
from scenarios.library import Library, load_library
from scenarios.template import begin

COLLECTION, SCENARIO = "my-collection", "my-scenario"


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    """The packaged encoder, loaded once."""
    return load_matcher(Settings())


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template scenario."""
    folder = tmp_path_factory.mktemp("collections")
    begin(f"{COLLECTION}/{SCENARIO}", folder)
    return folder


@pytest.fixture(scope="session")
def library(root: Path) -> Library:
    return load_library(root)


@pytest.fixture(scope="session")
def engine(library: Library, matcher: Matcher) -> Iterator[OfflineEngine]:
    with offline_engine(Settings(), library, matcher) as built:
        yield built


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows to a JSONL file."""

    def write(*rows: Any, name: str = "input.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return path

    return write
