"""Lines of jobs are read beside what else the event loop has to do."""

from __future__ import annotations

import asyncio
import json
import threading

from pydantic import BaseModel, field_validator

from reward_server.api.body import LARGE_BYTES
from reward_server.jobs.kinds import JobItem
from reward_server.server.background import line_reader


class Remembered(BaseModel):
    """Knows where it was read."""

    text: str
    thread: int = 0

    @field_validator("thread", mode="before")
    @classmethod
    def here(cls, _given: object) -> int:
        return threading.get_ident()


def line(characters: int) -> bytes:
    return json.dumps({"text": "x" * characters, "thread": 0}).encode()


async def test_a_large_line_is_read_in_a_thread() -> None:
    read = await line_reader().read(Remembered, line(LARGE_BYTES), {})
    assert read.thread != threading.get_ident()
    _, read = await line_reader().read_named(Remembered, JobItem(0, 1, line(LARGE_BYTES)), {})
    assert read.thread != threading.get_ident()


async def test_others_have_their_turn_before_each_line() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    for number in range(1, 10):
        await line_reader().read(Remembered, line(1), {})
        assert turns >= number
    beside.cancel()
