"""Every route of the OpenAPI document, whoever added it: with each scope, without a key, and with another lab's ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from reward_server.api.access import access_of
from reward_server.auth.lab import Plan
from reward_server.auth.scopes import Scope
from reward_server.console.mounting import routes as console_routes
from reward_server.server.app import create_app
from reward_server.settings import Settings
from reward_server.training import process
from tests.contract.belongings import BODIES, EVERYBODYS, NOT_REFERENCES, OWNED, UNKNOWN, nobodys, one_of_each
from tests.contract.documented import document
from tests.contract.house import Client, House, Json
from tests.contract.test_training_runs import resolved

APP = create_app(Settings())
DOCUMENT = document()
SOCKETS = {"/api/v1/episodes/ws", "/api/v1/compat/openenv/ws"}
CONSOLE = {route.path_format for route in console_routes()}  # type: ignore[attr-defined]
UNDOCUMENTED = {"/", "/docs", "/docs/assets/{name}", "/openapi.json", "/metrics", "/mcp", *SOCKETS, *CONSOLE}
"""Routes that OpenAPI does not describe: pages, what is for Prometheus, a protocol of its own (`test_mcp`), and sockets
(`tests/cli`, `test_openenv`)."""
NO_LAB_KNOWS = re.compile(r"^(request_id|total_time_ms|evaluation_time_ms)$")


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner, which takes seconds to check a configuration, accepts everything."""

    async def accept(_config: str) -> Json:
        return resolved({})

    monkeypatch.setattr(process, "check", accept)


@dataclass(frozen=True)
class Call:
    """One operation."""

    method: str
    path: str
    scopes: tuple[Scope, ...]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    async def made(self, client: Client, ids: Json) -> httpx2.Response:
        path = re.sub(r"\{(\w+)\}", lambda found: str({**EVERYBODYS, **ids}[found[1]]), self.path)
        body = BODIES[self.name](ids) if self.name in BODIES else {}
        options: dict[str, Any] = {} if self.method in ("GET", "DELETE") else {"json": body}
        return await client.http.request(self.method, path, **options)


def calls() -> Iterator[Call]:
    for route in iter_route_contexts(APP.routes):
        if route.endpoint is not None and getattr(route, "include_in_schema", False):
            for method in route.methods or ():
                yield Call(method, route.path_format, access_of(route.endpoint).scopes)


CALLS = {call.name: call for call in calls()}
KEYED = [name for name, call in CALLS.items() if call.scopes]
OF_LABS = [name for name in KEYED if any(f"{{{each}}}" in name for each in OWNED) or name in BODIES]


def test_every_route_is_documented_or_known_not_to_be() -> None:
    paths = {getattr(route, "path_format", None) for route in iter_route_contexts(APP.routes)}
    assert {path for path in paths if path} - set(DOCUMENT["paths"]) <= UNDOCUMENTED
    assert {f"{method.upper()} {path}" for path, found in DOCUMENT["paths"].items() for method in found} == set(CALLS)


def test_only_probes_take_no_key() -> None:
    assert set(CALLS) - set(KEYED) == {"GET /healthz", "GET /readyz"}


def test_every_id_in_a_path_or_a_body_is_known_to_these_tests() -> None:
    """If not: say in `belongings` how a lab comes to have one."""
    in_paths = {found for path in DOCUMENT["paths"] for found in re.findall(r"\{(\w+)\}", path)}
    schemas = DOCUMENT["components"]["schemas"]
    in_bodies = {name for schema in schemas.values() for name in schema.get("properties", {}) if name.endswith("_id")}
    receipts = {"comparison_id"}  # ids that are given out and taken nowhere
    assert in_paths | in_bodies - receipts <= set(OWNED) | set(EVERYBODYS) | NOT_REFERENCES
    assert set(UNKNOWN) == set(OWNED)


@pytest.mark.parametrize("scope", Scope)
async def test_a_key_opens_the_calls_of_its_scope_and_no_others(house: House, scope: Scope) -> None:
    key = await house.key(scopes=[scope], full_scores=True)
    house.end_development_mode()
    opened, refused = set(), set()
    async with house.client(key) as client:
        for call in (CALLS[name] for name in KEYED):
            response = await call.made(client, nobodys())
            assert response.status_code not in (401, 429, 500, 503), (call.name, response.text)
            if response.status_code == 403:
                assert response.json()["data"]["code"] == "insufficient_scope", call.name
                assert all(f"`{each}`" in response.json()["message"] for each in call.scopes)
                refused.add(call.name)
            else:
                opened.add(call.name)
    assert opened == {name for name in KEYED if scope in CALLS[name].scopes}
    assert refused == set(KEYED) - opened


async def test_no_call_is_open_without_a_key(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with house.client() as client:
        for name in KEYED:
            assert (await CALLS[name].made(client, nobodys())).status_code == 401, name


async def test_another_labs_things_are_like_things_that_do_not_exist(house: House) -> None:
    """Status, message and code are the same; and the owner's own things are there all the same afterwards."""
    async with house.client(await _all_scopes(house, "acme")) as owner, house.client(await _all_scopes(house)) as rival:
        house.end_development_mode()
        ids = await one_of_each(owner)
        for name in OF_LABS:
            theirs, unknown = await CALLS[name].made(rival, ids), await CALLS[name].made(rival, nobodys())
            assert _shape(theirs) == _shape(unknown), name
        episode = await owner.ok("GET", f"/episodes/{ids['episode_id']}")
        assert (episode["status"], episode["turn"]) == ("active", 0)


async def test_no_list_shows_another_labs_things(house: House) -> None:
    async with house.client(await _all_scopes(house, "acme")) as owner, house.client(await _all_scopes(house)) as rival:
        house.end_development_mode()
        ids = await one_of_each(owner)
        seen = ""
        for name in KEYED:
            if name.startswith("GET ") and "{" not in name:
                seen += (await CALLS[name].made(owner, ids)).text
                answer = await CALLS[name].made(rival, ids)
                assert [each for each in ids.values() if each in answer.text] == [], name
        # The test could not fail if the owner did not see them either.
        assert [name for name in ("episode_id",) if ids[name] not in seen] == []


async def _all_scopes(house: House, lab_id: str = "rival") -> str:
    return await house.key(lab_id, scopes=list(Scope), plan=Plan.CUSTOM, rate_per_minute=100_000)


def _shape(response: httpx2.Response) -> tuple[int, Any]:
    """What tells two answers apart, but for what differs between any two requests."""
    return response.status_code, _without_ids(response.json())


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_ids(v) for k, v in value.items() if not NO_LAB_KNOWS.match(k) and not k.endswith("_id")}
    return [_without_ids(each) for each in value] if isinstance(value, list) else value
