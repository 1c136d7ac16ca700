"""Commands share one loaded encoder, as its texts are encoded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from personas.reading.matcher import Matcher
from reward_server.server import engine
from reward_server.settings import Settings
from tests.cli.warm import Labs, Warm


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    """The packaged encoder, loaded once."""
    return engine.load_matcher(Settings())


@pytest.fixture
def shared_encoder(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands get the loaded encoder instead of loading their own."""
    monkeypatch.setattr(engine, "load_matcher", lambda settings: matcher)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    process = Warm(tmp_path_factory.mktemp("warm"))
    yield process
    process.end()


@pytest.fixture
def labs(warm: Warm) -> Labs:
    """`labs` in a process of its own, which is forked from one that has loaded everything."""
    return warm.run
