"""The event loop that `labs serve` runs on."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reward_server.cli import serve


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """The loops that servers ran on; the last one was stopped by Ctrl-C."""
    seen: list[type] = []

    async def run(_settings: Any, *, standby: bool) -> int:
        seen.append(type(asyncio.get_running_loop()))
        return signal.SIGINT if standby else signal.SIGTERM

    monkeypatch.setattr(serve, "_run", run)
    return seen


def test_it_is_uvloop_where_that_is_installed(loops: list[type], tmp_path: Path) -> None:
    serve.serve(data=tmp_path)
    assert loops == [uvloop.Loop]


def test_ctrl_c_is_passed_on(loops: list[type], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        serve.serve(data=tmp_path, standby=True)
