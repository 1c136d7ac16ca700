"""Server-sent events with OpenAI's chunks of an answer, as it comes.

The first part is waited for before anything is sent, so that an endpoint that gives none is an error with its status. A
failure behind that is an event with `error`, and no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Self

from fastapi import Request
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from reward_server.agents.openai_shapes import CompletionHead, chunks, error_event
from reward_server.agents.streaming import AnswerPart
from reward_server.api.context import services_of
from reward_server.api.event_stream import LIVE
from reward_server.auth.lab import Lab
from reward_server.errors import AgentFailed

Parts = AsyncGenerator[AnswerPart, None]


class ChatStream(EventSourceResponse):
    """The events; `begun` makes one."""

    def __init__(self, request: Request, lab: Lab, events: AsyncIterator[bytes], parts: Parts) -> None:
        super().__init__(events, headers=LIVE)
        self._held = services_of(request).connections.streams.held(lab.lab_id)
        self._parts = parts

    @classmethod
    async def begun(cls, request: Request, lab: Lab, model: str, parts: Parts, *, with_usage: bool) -> Self:
        """The stream of an answer whose first part is there.

        Raises:
            AgentFailed: there is none.
        """
        head = head_of(request, model)
        first = await anext(parts)
        return cls(request, lab, _events(head, first, parts, with_usage=with_usage), parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; `TooManyAtOnce` where the lab follows as many streams as it may."""
        try:
            with self._held:
                await super().__call__(scope, receive, send)
        finally:
            await self._parts.aclose()


def head_of(request: Request, model: str) -> CompletionHead:
    """The head of the completion that answers a request."""
    created = int(services_of(request).clock.now().timestamp())
    return CompletionHead(request.state.request_id, created, model)


async def _events(head: CompletionHead, first: AnswerPart, parts: Parts, *, with_usage: bool) -> AsyncIterator[bytes]:
    for chunk in chunks(head, first, is_first=True, with_usage=with_usage):
        yield _event(chunk)
    try:
        async for part in parts:
            for chunk in chunks(head, part, is_first=False, with_usage=with_usage):
                yield _event(chunk)
    except AgentFailed as failed:
        yield _event(error_event(failed))
        return
    yield format_sse_event(data_str="[DONE]")


def _event(content: object) -> bytes:
    return format_sse_event(data_str=to_json(content).decode())
