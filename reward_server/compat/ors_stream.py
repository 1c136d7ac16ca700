"""Streams of the Open Reward Standard: a call's id at once, signs of life while it is worked on, then how it ended.

Clients give up after 30 s without a byte. A client whose stream broke off asks again with the id, and gets what the
call gave: the work goes on without a listener, and its answer is stored under the id.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from fastapi import Response
from fastapi.sse import EventSourceResponse, format_sse_event

from reward_server.api.event_stream import LIVE, MEDIA
from reward_server.auth.idempotency import Body
from reward_server.errors import LabsError, TurnInProgress, Unavailable, in_a_line
from reward_server.logs.logger import get_logger

SIGN_OF_LIFE_S = 10.0
PATIENCE_S = 60.0
"""An error ends the rollout of a client, so what may work later is tried again for so long."""
MOST_CHARACTERS = 4096
"""Of the data of an event; clients read lines of limited length."""

log = get_logger(__name__)


class Event(NamedTuple):
    """A server-sent event."""

    name: str
    data: str

    def encoded(self) -> bytes:
        """As it is sent; the data is one line."""
        return format_sse_event(event=self.name, data_str=self.data)


async def ended(work: Callable[[], Awaitable[Body]], request_id: str) -> Event:
    """The last event: `end` with what the work gave, or `error`. Never raises, nor makes a number of a failure."""
    try:
        return Event("end", json.dumps(await _patiently(work), separators=(",", ":")))
    except LabsError as error:
        return Event("error", in_a_line(error))
    except Exception as error:  # noqa: BLE001 (the boundary of a request)
        # The message of an unforeseen error may quote anything.
        log.error("operation_failed", request_id=request_id, error=type(error).__name__)  # noqa: TRY400
        return Event("error", LabsError.default_message)


def followed(call_id: str, ending: asyncio.Task[Event]) -> Response:
    """The stream of a call. Whoever stops listening stops waiting; the turn is played to its end all the same."""
    return EventSourceResponse(_followed(call_id, ending), headers=LIVE)


async def _followed(call_id: str, ending: asyncio.Task[Event]) -> AsyncIterator[bytes]:
    try:
        yield Event("task_id", call_id).encoded()
        while not (await asyncio.wait({ending}, timeout=SIGN_OF_LIFE_S))[0]:
            yield format_sse_event(comment="still at it")
        last = ending.result()
        pieces = list(pieces_of(last.data))
        for piece in pieces[:-1]:
            yield Event("chunk", piece).encoded()
        yield Event(last.name, pieces[-1]).encoded()
    finally:
        ending.cancel()


def told(*events: Event) -> Response:
    """The stream of what is known already."""
    return Response(b"".join(event.encoded() for event in events), media_type=MEDIA, headers=LIVE)


def pieces_of(data: str) -> Iterator[str]:
    """The data in pieces; clients strip blanks from the beginning of each, so none begins with one."""
    while len(data) > MOST_CHARACTERS:
        cut = MOST_CHARACTERS
        while cut < len(data) and data[cut].isspace():
            cut += 1
        yield data[:cut]
        data = data[cut:]
    yield data


async def _patiently(work: Callable[[], Awaitable[Body]]) -> Body:
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    while True:
        try:
            return await work()
        except (Unavailable, TurnInProgress) as error:
            wait_s = error.retry_after_s if isinstance(error, Unavailable) else 1
            if loop.time() + wait_s > until:
                raise
            await asyncio.sleep(wait_s)
