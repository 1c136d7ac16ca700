"""One WebSocket at the edge of the app: peers that say or read nothing, and what operators see of its operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from personas.reading.matcher import Matcher
from reward_server.api.routes import sockets
from reward_server.telemetry.traces import Traces
from scenarios.library import Library
from tests.contract.house import WHERE, House, Json, running_house

WAIT_S = 60.0


@dataclass
class Peer:
    """The client's end of a socket, without a network."""

    reads: bool = True
    said: asyncio.Queue[Json] = field(default_factory=asyncio.Queue)
    heard: asyncio.Queue[Json] = field(default_factory=asyncio.Queue)

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.send" and not self.reads:
            await asyncio.Event().wait()
        await self.heard.put(message)

    def says(self, **operation: Any) -> None:
        self.said.put_nowait({"type": "websocket.receive", "text": json.dumps(operation)})

    async def hears(self) -> Json:
        async with asyncio.timeout(WAIT_S):
            return await self.heard.get()

    async def answer(self) -> Json:
        found: Json = json.loads((await self.hears())["text"])
        return found


@asynccontextmanager
async def socket(house: House, **kind: Any) -> AsyncIterator[Peer]:
    peer = Peer(**kind)
    scope = {
        "type": "websocket",
        "path": sockets.PATH,
        "raw_path": sockets.PATH.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
        "state": {},
        "subprotocols": [],
    }
    peer.said.put_nowait({"type": "websocket.connect"})
    serving = asyncio.create_task(house.app(scope, peer.said.get, peer.send))  # type: ignore[arg-type]
    assert (await peer.hears())["type"] == "websocket.accept"
    try:
        yield peer
    finally:
        peer.said.put_nowait({"type": "websocket.disconnect", "code": 1000})
        async with asyncio.timeout(WAIT_S):
            await serving


@pytest.fixture
async def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def house(data: Path, matcher: Matcher, library: Library, spans: InMemorySpanExporter) -> AsyncIterator[House]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    async with running_house(data, matcher, library, traces=Traces(provider)) as running:
        yield running


async def test_a_peer_that_says_nothing_is_hung_up_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "IDLE_S", 0.05)
    async with socket(house) as peer:
        assert await peer.hears() == {"type": "websocket.close", "code": 1001, "reason": ""}


async def test_a_peer_that_waits_for_an_answer_is_not_idle(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async with socket(house) as peer:
        peer.says(op="create", **WHERE)
        episode = (await peer.answer())["episode_id"]
        house.matcher.close()
        monkeypatch.setattr(sockets, "IDLE_S", 0.05)
        peer.says(op="turn", episode_id=episode, messages=[{"role": "user", "content": "How did it happen?"}])
        await house.matcher.somebody_waits()
        await asyncio.sleep(0.2)
        house.matcher.open()
        assert (await peer.answer())["turn"] == 1
        assert (await peer.hears())["code"] == 1001


async def test_a_peer_that_reads_nothing_loses_the_socket(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "WRITE_S", 0.05)
    async with socket(house, reads=False) as peer:
        peer.says(op="create", **WHERE)
        assert await peer.hears() == {"type": "websocket.close", "code": 1008, "reason": ""}


async def test_operations_are_counted_logged_and_traced(house: House, spans: InMemorySpanExporter) -> None:
    async with socket(house) as peer:
        peer.says(op="create", **WHERE)
        episode = (await peer.answer())["episode_id"]
        peer.says(op="turn", episode_id=episode, messages=[{"role": "user", "content": "What does the quokka say?"}])
        played = await peer.answer()
        peer.says(op="quokka")
        assert (await peer.answer())["status"] == 400
        async with house.client() as labs:
            page = (await labs.http.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(page)}
    assert {
        (sample.labels["op"], sample.labels["status"]): sample.value
        for sample in families["labs_socket_operations"].samples
        if sample.name.endswith("_total")
    } == {("create", "200"): 1.0, ("turn", "200"): 1.0, ("unknown", "400"): 1.0}
    assert families["labs_sockets_open"].samples[0].value == 1.0
    told = {span.name: dict(span.attributes or {}) for span in spans.get_finished_spans()}
    turn = told[f"WS turn {sockets.PATH}"]
    assert turn["labs.request_id"] == played["request_id"]
    assert turn["labs.episode_id"] == episode
    assert turn["http.response.status_code"] == 200
    assert told[f"WS unknown {sockets.PATH}"]["labs.error_code"] == "invalid_request"
    logged = [json.loads(line) for line in house.logs.getvalue().splitlines() if '"operation"' in line]
    assert [(line["op"], line["status"]) for line in logged] == [("create", 200), ("turn", 200), ("unknown", 400)]
    assert {line["episode"] for line in logged[:2]} == {episode}
    assert {line["address"] for line in logged} == {"127.0.0.1"}
    assert "quokka" not in str(told) + house.logs.getvalue()
