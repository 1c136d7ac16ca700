"""The server's connections: how long a head may be, and what answers that which is not HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from reward_server.server import http_protocol
from reward_server.server.http_protocol import MAX_HEAD_BYTES, BoundedHttpProtocol

OK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the size of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
    await send({"type": "http.response.body", "body": b"%08d" % size})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = Config(echo, lifespan="off", log_config=None)
    server = await asyncio.get_running_loop().create_server(
        lambda: BoundedHttpProtocol(config, ServerState(), {}), "127.0.0.1", 0
    )
    async with server:
        yield server.sockets[0].getsockname()[1]


async def told(port: int, sent: list[bytes]) -> bytes:
    """What the server answers until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in sent:
            writer.write(part)
            await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_head_without_end_is_cut_off(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ")
    for _ in range(5_000):
        try:
            writer.write(b"a" * MAX_HEAD_BYTES)
            await writer.drain()
        except ConnectionError:
            break
    else:
        pytest.fail("the server read 300 MiB of headers")
    writer.close()
    del reader


async def test_ordinary_requests_pass_also_with_large_bodies_and_on_one_connection(port: int) -> None:
    body = b"x" * (8 * MAX_HEAD_BYTES)
    post = b"POST / HTTP/1.1\r\nX-Some: " + b"a" * 4000 + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    answer = await told(port, [post, OK, post[:50], post[50:], OK + OK[:9], OK[9:], LAST])
    assert answer.count(b"HTTP/1.1 200 OK") == answer.count(b"HTTP/1.1 ") == 6
    assert answer.count(b"%08d" % len(body)) == 2


async def test_what_is_not_http_gets_the_error_envelope_and_a_request_id(port: int) -> None:
    head, _, body = (await told(port, [b"FOO BAR\r\n\r\n"])).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    data = json.loads(body)["data"]
    assert data["code"] == "invalid_request"
    assert f"x-request-id: {data['request_id']}".encode() in head


@pytest.mark.parametrize("wanted", [b"h2c", b"websocket", b"anything/1"])
@pytest.mark.parametrize("parts", [1, 7, 1000])
async def test_a_client_that_asks_for_another_protocol_is_served_with_this_one(
    port: int, wanted: bytes, parts: int
) -> None:
    upgrade = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "
        + wanted
        + b"\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
    )
    get = b"GET / HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n"
    post = b"POST / HTTP/1.1\r\nHost: x\r\n" + upgrade + b"Content-Length: 11\r\n\r\nhello\r\nGET "
    chunked = b"POST / HTTP/1.1\r\n" + upgrade + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n2\r\n!!\r\n0\r\n\r\n"
    sent = get + post + get + chunked + OK + post + LAST
    size = -(-len(sent) // parts)
    answer = await told(port, [sent[start : start + size] for start in range(0, len(sent), size)])
    bodies = [part[-8:] for part in answer.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"%08d" % each for each in (0, 11, 0, 7, 0, 11, 0)]


async def test_a_broken_body_after_such_a_head_is_refused_and_not_taken_for_a_short_one(port: int) -> None:
    head = b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await told(port, [head, b"2\r\nhi\r\n", b"zz\r\n", OK])
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_head_that_does_not_come_is_hung_up_on(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_DEADLINE_S", 0.01)
    assert await told(port, [b"GET / HTTP/1.1\r\nHost:"]) == b""
    assert await told(port, []) == b""
