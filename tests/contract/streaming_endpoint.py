"""An OpenAI-compatible endpoint on loopback that streams what a test says, step by step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

BREAK = "break"
"""A step: the connection is cut."""
Step = bytes | asyncio.Event | str


def said(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    """A chunk as an event."""
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields}
    return event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def event(content: Any) -> bytes:
    """Server-sent, in one line."""
    return f"data: {content if isinstance(content, str) else json.dumps(content)}\n\n".encode()


DONE = event("[DONE]")


@dataclass
class StreamingEndpoint:
    """Where it is, and what it was asked."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client left before the end."""


@asynccontextmanager
async def streaming(*steps: Step) -> AsyncIterator[StreamingEndpoint]:
    """Every request gets the same steps."""
    endpoint = StreamingEndpoint("")
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await _answer(endpoint, steps, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # a client that gave up
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield endpoint
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(
    endpoint: StreamingEndpoint, steps: Sequence[Step], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    size = int(head.partition("content-length: ")[2].split("\r\n")[0])
    endpoint.asked.append(json.loads(await reader.readexactly(size)))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for step in steps:
        if step == BREAK:
            writer.transport.abort()
            return
        if isinstance(step, bytes):
            writer.write(b"%x\r\n%s\r\n" % (len(step), step))
            await writer.drain()
        elif isinstance(step, asyncio.Event):
            left, free = asyncio.create_task(reader.read(1)), asyncio.create_task(step.wait())
            _, pending = await asyncio.wait({left, free}, return_when=asyncio.FIRST_COMPLETED)
            for each in pending:
                each.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            if not step.is_set():
                endpoint.hung_up.set()
                return
    writer.write(b"0\r\n\r\n")
    await writer.drain()
