"""Counts that are written to the database now and then: a write that has begun is finished, also when the server stops.

A cancelled write may have been committed or not, so nobody could say whether it has to be written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def flush_every(interval_s: float, flush: Callable[[], Awaitable[None]]) -> None:
    """Call `flush` every `interval_s` seconds until cancelled.

    A call in progress ends first, but for a second cancel.
    """
    while True:
        await asyncio.sleep(interval_s)
        flushing = asyncio.ensure_future(flush())
        try:
            await asyncio.shield(flushing)
        except asyncio.CancelledError:
            await flushing
            raise
