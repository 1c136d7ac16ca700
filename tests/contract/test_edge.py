"""What web pages in somebody's browser may not do to a server that this browser reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Scope

from personas.reading.matcher import Matcher
from reward_server.api.edge import KnownHosts
from scenarios.library import Library
from tests.contract.documented import document
from tests.contract.house import Client, House, assert_error, running_house

pytestmark = pytest.mark.one_house

SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None)
"""What a page may send anywhere without asking first."""


async def test_no_operation_is_done_for_a_body_that_does_not_say_it_is_json(labs: Client, house: House) -> None:
    calls = [
        (method, path)
        for path, methods in document()["paths"].items()
        for method in {"post", "put", "patch"} & set(methods)
    ]
    assert {method for method, _ in calls} >= {"post", "patch"}
    assert any(path.endswith("/activate") for _, path in calls)
    for method, path in calls:
        for kind in SIMPLE:
            headers = {"Origin": "http://evil.example"} | ({} if kind is None else {"Content-Type": kind})
            plain = path.replace("{", "").replace("}", "")
            response = await labs.http.request(method, plain, content=b"", headers=headers)
            assert_error(response, 415, "unsupported_media_type")
            assert "Content-Type: application/json" in response.json()["message"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 404),
        ("http://localhost:8321", 404),
        ("http://localhost:9000", 415),
        ("http://evil.example", 415),
        ("null", 415),
    ],
)
async def test_a_call_without_a_body_needs_to_say_nothing_unless_a_page_of_others_makes_it(
    labs: Client, origin: str | None, status: int
) -> None:
    headers = {"Host": "localhost:8321"} | ({"Origin": origin} if origin else {})
    path = "/api/v1/jobs/job_none/cancel"
    assert (await labs.http.post(path, headers=headers)).status_code == status
    assert (await labs.http.post(path, headers=headers, content=b"x")).status_code == 415


async def test_a_call_without_a_body_needs_to_say_nothing_if_it_has_a_key(house: House) -> None:
    key = await house.key()
    path = "/api/v1/reward-models/rm_none/activate"
    async with house.client(key) as labs:
        assert (await labs.http.post(path)).status_code in (403, 404)
        assert_error(await labs.http.post(path, content=b"x"), 415, "unsupported_media_type")
        headers = {"Content-Type": "text/plain"}
        assert_error(await labs.http.post(path, headers=headers), 415, "unsupported_media_type")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8321", "127.0.0.1:8321", "[::1]:8321", "10.0.3.7"])
async def test_own_names_and_addresses_are_served(labs: Client, host: str) -> None:
    assert (await labs.http.get("/api/v1/catalog", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8321", "a b", "@"])
@pytest.mark.parametrize("path", ["/api/v1/catalog", "/metrics", "/docs"])
async def test_a_name_that_somebody_else_points_here_is_not(labs: Client, host: str, path: str) -> None:
    response = await labs.http.get(path, headers={"Host": host})
    assert_error(response, 400, "unknown_host")
    assert "LABS_HOSTS" in response.json()["message"]


async def test_the_operator_lists_names(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, hosts="labs.example.com, labs") as house, house.client() as labs:
        for host, status in (("Labs.Example.com", 200), ("labs:8321", 200), ("localhost", 400), ("127.0.0.1", 200)):
            assert (await labs.http.get("/api/v1/catalog", headers={"Host": host})).status_code == status


async def opened(scope: dict[str, Any]) -> list[str]:
    """What a WebSocket with these headers comes to."""
    reached: list[str] = []

    async def app(_scope: Scope, _receive: object, _send: object) -> None:
        reached.append("app")

    async def send(message: Message) -> None:
        reached.append(message["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    await KnownHosts(app, names={"localhost"})({"type": "websocket", **scope}, receive, send)
    return reached


@pytest.mark.parametrize(
    ("host", "origin", "outcome"),
    [
        (b"localhost:8321", None, "app"),
        (b"localhost:8321", b"http://localhost:8321", "app"),
        (b"localhost:8321", b"http://evil.example", "websocket.close"),
        (b"localhost:8321", b"http://localhost:9000", "websocket.close"),
        (b"localhost:8321", b"null", "websocket.close"),
        (b"evil.example", None, "websocket.close"),
    ],
)
async def test_a_page_of_others_opens_no_socket(host: bytes, origin: bytes | None, outcome: str) -> None:
    headers = [(b"host", host), *([(b"origin", origin)] if origin else [])]
    assert await opened({"headers": headers}) == [outcome]


async def test_every_answer_tells_browsers_to_load_and_frame_nothing(labs: Client) -> None:
    for path in ("/api/v1/catalog", "/api/v1/nope", "/healthz", "/openapi.json", "/docs/assets/swagger-ui.css"):
        headers = (await labs.http.get(path)).headers
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


async def test_pages_run_the_scripts_they_came_with_and_no_others(labs: Client) -> None:
    page = await labs.http.get("/docs")
    [policy] = page.headers.get_list("content-security-policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    # One hash for the one script that is written into the page.
    assert page.text.count("<script>") == rules["script-src"].count("'sha256-") == 1
