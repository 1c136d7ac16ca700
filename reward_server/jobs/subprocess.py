"""Has an errand done in a process of its own. Cancelled, or out of time, the process is killed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from reward_server.errors import LabsError, Unavailable
from reward_server.logs.logger import get_logger
from reward_server.store.records import JsonObject

MOST_BYTES = 4_000_000
"""Of a line that the process says."""
log = get_logger(__name__)


@dataclass(frozen=True)
class DataRefused:
    """The reason why an errand cannot be done: its data is at fault."""

    code: str
    message: str


async def run(
    errand: str, order: JsonObject, note: Callable[[JsonObject], Awaitable[None]]
) -> JsonObject | DataRefused:
    """The result; `note` hears of `stage` and `progress` meanwhile.

    Raises:
        Unavailable: the process was killed, for its memory, say; it may work another time.
        LabsError: it met a defect of the program.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "reward_server.fitting.process", errand),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=MOST_BYTES,
    )
    try:
        with suppress(ConnectionError):
            await _give(process, order)
        return await _answer(process, errand, note)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()


async def _give(process: asyncio.subprocess.Process, order: JsonObject) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    await process.stdin.drain()


async def _answer(
    process: asyncio.subprocess.Process, errand: str, note: Callable[[JsonObject], Awaitable[None]]
) -> JsonObject | DataRefused:
    assert process.stdout is not None
    async for line in process.stdout:
        message: JsonObject = json.loads(line)
        if "stage" in message:
            await note(message)
        elif "code" in message:
            return DataRefused(message["code"], message["message"])
        elif "failed" in message:
            log.error("errand_failed", errand=errand, error=message["failed"], at=message["at"])
            raise LabsError
        else:
            result: JsonObject = message["result"]
            return result
    raise Unavailable("Its process was killed.")
