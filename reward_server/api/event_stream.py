"""Server-sent events that follow something until it is over, or until its key may not look any more.

Every look asks for the key again, so that a stream ends as soon as any other call of a revoked key is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from fastapi import Request
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from reward_server.api.context import readmit, services_of
from reward_server.auth.lab import Lab
from reward_server.errors import ClientError

MEDIA = EventSourceResponse.media_type
LOOK_EVERY_S = 1.0
SPEAK_EVERY_S = 15.0
"""A line that says nothing, so that nobody in between takes a quiet stream for a dead one."""
LIVE = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""So that proxies pass events on as they come; nginx holds them back otherwise."""


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """The state of a job or run at one look."""

    data: bytes
    """JSON in one line, for who follows."""
    state: bytes
    """What makes it news: where this is as it was, nothing is told."""
    is_over: bool
    has_more: bool = False
    """Whether another look finds more at once."""


Look = Callable[[Lab], Awaitable[ProgressSnapshot]]


class EventStream(EventSourceResponse):
    """The events `progress`, whenever a look finds news, and `finished`, when it is over.

    Raises, when it is about to start:
        TooManyAtOnce: the lab follows as many streams as it may.
    """

    def __init__(self, request: Request, lab: Lab, look: Look) -> None:
        super().__init__(_events(request, look), headers=LIVE)
        self._held = services_of(request).connections.streams.held(lab.lab_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._held:
            await super().__call__(scope, receive, send)


async def _events(request: Request, look: Look) -> AsyncIterator[bytes]:
    told, quiet_s = b"", 0.0
    while not services_of(request).stopping.is_set():
        try:
            seen = await look(await readmit(request))
        except ClientError:
            return  # without `finished`, as when the server stops: whoever follows asks again, and is told why
        if seen.state != told or seen.is_over:
            told, quiet_s = seen.state, 0.0
            event = "finished" if seen.is_over else "progress"
            yield format_sse_event(event=event, data_str=seen.data.decode())
        if seen.is_over:
            return
        if seen.has_more:
            continue
        if quiet_s >= SPEAK_EVERY_S:
            quiet_s = 0.0
            yield format_sse_event(comment="still at it")
        await asyncio.sleep(LOOK_EVERY_S)
        quiet_s += LOOK_EVERY_S
