"""Commands share one loaded encoder, as its texts are encoded once."""

from __future__ import annotations

import pytest

from personas.matcher import Matcher
from reward_server import engine
from reward_server.settings import Settings


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    """The packaged encoder, loaded once."""
    return engine.load_matcher(Settings())


@pytest.fixture
def shared_encoder(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands get the loaded encoder instead of loading their own."""
    monkeypatch.setattr(engine, "load_matcher", lambda settings: matcher)
