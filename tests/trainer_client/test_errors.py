"""An error says why and where, and comes whole out of another process."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import socket
import ssl
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import httpx2
import pytest

from tests.trainer_client.scripted_server import Answer, envelope, serving
from trainer_client import (
    AsyncLabsClient,
    BadRequest,
    ConnectionFailed,
    LabsClient,
    LabsError,
    NotFound,
    RateLimited,
    RetryPolicy,
    errors,
)
from trainer_client.wire import ErrorDetail

ONCE = RetryPolicy(attempts=1)
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LabsError)]


def made(kind: type[LabsError] = BadRequest) -> LabsError:
    detail = ErrorDetail(loc=["messages", 0, "content"], msg="must be text")
    error = kind("No.", code="some_code", status=400, request_id="req_1", errors=(detail,), retry_after_s=2.5)
    error.host = "lab:1"
    error.add_note("a note")
    return error


def fail_elsewhere() -> None:
    raise made(RateLimited)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_pickles_and_copies_with_all_it_carries(kind: type[LabsError]) -> None:
    error = made(kind)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is kind
        assert (str(other), vars(other), other.args) == (str(error), vars(error), error.args)


def test_an_error_of_a_worker_process_arrives_as_it_was() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool, pytest.raises(RateLimited) as caught:
        pool.submit(fail_elsewhere).result()
    assert (caught.value.code, caught.value.retry_after_s) == ("some_code", 2.5)


def test_reasons_are_in_the_text_and_said_once() -> None:
    assert str(made()) == "No. (messages.0.content: must be text) [some_code, HTTP 400, req_1, lab:1]"
    details = tuple(ErrorDetail(loc=["items", number], msg="bad") for number in range(5))
    many = BadRequest("No.", code="c", errors=details)
    assert str(many) == "No. (items.0: bad; items.1: bad; items.2: bad; and 2 more) [c]"
    said = BadRequest("items.0: bad", code="c", errors=details[:1])
    assert str(said) == "items.0: bad [c]"


def test_a_refusal_names_the_server_and_its_reasons() -> None:
    body = envelope("invalid_request", "It is not valid.", errors=[{"loc": ["config", "seed"], "msg": "too large"}])
    with serving(Answer(400, body)) as server, LabsClient(server.url) as client, pytest.raises(BadRequest) as caught:
        client.catalog()
    host = server.url.removeprefix("http://")
    assert str(caught.value) == f"It is not valid. (config.seed: too large) [invalid_request, HTTP 400, req_1, {host}]"
    with serving(Answer(404, raw=b"?")) as server, LabsClient(server.url) as client, pytest.raises(NotFound) as caught:
        client.catalog()
    assert server.url.removeprefix("http://") in str(caught.value)


CAUSES: list[tuple[BaseException | None, str]] = [
    (socket.gaierror(-2, "Name or service not known"), "its name cannot be resolved"),
    (ConnectionRefusedError(111, "Connection refused"), "the connection was refused (is the server running"),
    (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "no TLS connection"),
    (ConnectionResetError(104, "Connection reset by peer"), "the connection was broken off"),
    (ExceptionGroup("all", [OSError("x"), ConnectionRefusedError("y")]), "the connection was refused"),
    (OSError("No route to host"), "ConnectError: No route to host"),
    (None, "ConnectError"),
]


@pytest.mark.parametrize(("cause", "text"), CAUSES, ids=[type(cause).__name__ for cause, _ in CAUSES])
def test_what_went_wrong_on_the_way_is_told_apart(cause: BaseException | None, text: str) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("", request=request) from cause

    transport = httpx2.MockTransport(handler)
    client = LabsClient("https://lab.test:8443", "k", retry=ONCE, transport=transport)
    with client, pytest.raises(ConnectionFailed) as caught:
        client.catalog()
    assert f"GET /api/v1/catalog got no answer from lab.test:8443: {text}" in str(caught.value)


def test_a_real_refusal_and_a_server_without_tls_are_told_apart() -> None:
    async def text_of(url: str) -> str:
        async with AsyncLabsClient(url, "k", retry=ONCE) as client:
            with pytest.raises(ConnectionFailed) as caught:
                await client.catalog()
        return str(caught.value)

    def text_of_sync(url: str) -> Any:
        with LabsClient(url, "k", retry=ONCE) as client, pytest.raises(ConnectionFailed) as caught:
            client.catalog()
        return str(caught.value)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for text in (asyncio.run(text_of(url)), text_of_sync(url)):
            assert "was refused (is the server running there?)" in text
    with serving(Answer()) as server:
        url = server.url.replace("http:", "https:")
        for text in (asyncio.run(text_of(url)), text_of_sync(url)):
            assert "check http or https" in text
