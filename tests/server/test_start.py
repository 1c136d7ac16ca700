"""A start looks for no garbage, and a server does."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from reward_server.server.chores import settle_heap


@pytest.fixture
def off() -> Iterator[None]:
    """Collection as `labs serve` has it while it starts; afterwards all is as it was."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("off")
def test_a_server_that_has_started_collects_garbage() -> None:
    settle_heap()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
