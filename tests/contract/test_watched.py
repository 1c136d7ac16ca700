"""What an operator sees of a request: its line in the log, its span, and the rewards of its scenario."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from personas.reading.matcher import Matcher
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from reward_server.telemetry.traces import Traces
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, packaged_reader, running_house


def lines(house: House, route: str) -> list[Json]:
    """What the log has of requests to this route."""
    found = [json.loads(line) for line in house.logs.getvalue().splitlines()]
    return [line for line in found if line["event"] == "request" and line["route"] == route]


async def test_a_request_is_logged_with_its_lab_episode_and_address(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, "How did it happen?")
    [created] = lines(house, "/api/v1/episodes")
    [turn] = lines(house, "/api/v1/episodes/{episode_id}/turns")
    for line in (created, turn):
        assert line["episode"] == episode["episode_id"]
        assert line["address"] == "127.0.0.1"
        assert line["lab"]
        assert line["request_id"].startswith("req_")


async def test_a_request_is_logged_with_the_id_of_its_key_and_never_the_key(house: House) -> None:
    key = await house.key()
    _, key_id, secret = key.split("_")
    async with house.client(key) as labs:
        await labs.create()
    [line] = lines(house, "/api/v1/episodes")
    assert line["key"] == key_id
    assert secret not in house.logs.getvalue()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_that_succeed_have_no_line_and_those_that_fail_have(house: House, path: str) -> None:
    async with house.client() as client:
        for method in ("GET", "HEAD"):
            assert (await client.http.request(method, path)).status_code == 200
        assert lines(house, path) == []
        await client.http.post(path)
    assert [line["status"] for line in lines(house, path)] == [405]


async def test_what_a_client_writes_in_place_of_an_episode_is_not(labs: Client, house: House) -> None:
    await labs.call("GET", "/episodes/ep_quokka-wrote-this")
    [line] = lines(house, "/api/v1/episodes/{episode_id}")
    assert "episode" not in line
    assert "quokka" not in house.logs.getvalue()


@pytest.mark.parametrize(("access", "shown"), [("operator", True), ("open", False)])
async def test_rewards_are_by_scenario_where_the_page_is_for_operators(
    data: Path, matcher: Matcher, library: Library, access: str, shown: bool
) -> None:
    async with running_house(data, matcher, library, metrics_access=access) as house, house.client() as labs:
        await labs.ok("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": "Hello?"}]})
        page = (await labs.http.get("/metrics")).text
    assert ('labs_rewards_count{collection="bike-shop",scenario="flat-tyre"} 1.0' in page) is shown
    assert ('labs_rewards_count{collection="all",scenario="all"} 1.0' in page) is not shown


async def test_spans_hold_what_the_log_holds_and_no_text(data: Path, matcher: Matcher, library: Library) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ports = Ports(
        matcher=matcher, reader=packaged_reader(), library=library, traces=Traces(provider), own_process=False
    )
    app = create_app(Settings(data=data), ports=ports)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost/api/v1") as http,
    ):
        made = (await http.post("/episodes", json=WHERE)).json()["episode_id"]
        said = {"messages": [{"role": "user", "content": "quokka, how did it happen?"}]}
        await http.post(f"/episodes/{made}/turns", json=said)
        await http.get("/episodes/ep_nobodys-quokka")
    spans = exporter.get_finished_spans()
    turns = "/api/v1/episodes/{episode_id}/turns"
    assert [span.name for span in spans] == [
        "POST /api/v1/episodes",
        f"POST {turns}",
        "GET /api/v1/episodes/{episode_id}",
    ]
    told = dict(spans[1].attributes or {})
    assert told["http.route"] == turns
    assert told["http.response.status_code"] == 200
    assert told["labs.episode_id"] == made
    assert dict(spans[2].attributes or {})["labs.error_code"] == "episode_not_found"
    assert spans[2].status.status_code is not StatusCode.ERROR
    assert "quokka" not in "".join(span.to_json() for span in spans)


def test_there_are_no_traces_unless_somebody_asks(tmp_path: Path) -> None:
    with Traces().span() as span:
        span.tell("GET", "/healthz", 200, "req_x", {})
    assert Settings(data=tmp_path).otlp_endpoint is None
