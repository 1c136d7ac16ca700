"""Work that outlives its caller, and digests of requests."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.auth.idempotency import DetachedWork, fingerprint
from reward_server.errors import Stopped


def test_equal_values_have_equal_fingerprints() -> None:
    assert fingerprint("turn", {"a": 1, "b": [1, None]}) == fingerprint("turn", {"b": [1, None], "a": 1})


@pytest.mark.parametrize("other", [{"a": 2}, {"b": 1}, {"a": "1"}, {"a": True}, {"a": [1]}, {"a": 1, "b": None}])
def test_different_values_have_different_fingerprints(other: dict[str, object]) -> None:
    assert fingerprint({"a": 1}) != fingerprint(other)


async def test_work_goes_on_when_its_caller_is_cancelled() -> None:
    outliving, proceed, done = DetachedWork(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await proceed.wait()
        done.set()

    caller = asyncio.create_task(outliving.run(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    proceed.set()
    assert await outliving.drain(timeout_s=5) == 0
    assert done.is_set()


async def test_draining_waits_and_then_stops_what_is_still_running() -> None:
    outliving, proceed = DetachedWork(), asyncio.Event()
    short, long = outliving.start(asyncio.sleep(0)), outliving.start(_wait_for(proceed))
    assert await outliving.drain(timeout_s=0.05) == 1
    assert short.exception() is None
    assert isinstance(long.exception(), Stopped)
    assert await outliving.drain(timeout_s=0) == 0


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
