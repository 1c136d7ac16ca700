"""Labs, keys, usage and the audit log over HTTP; limits of labs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.failed_keys import MOST_PER_MINUTE
from reward_server.auth.scopes import EVERY, Scope
from reward_server.clock import to_iso
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house
from tests.contract.test_evaluate import body


@pytest.fixture
async def operator(house: House) -> AsyncIterator[Client]:
    key = await house.key("mine", scopes=EVERY)
    house.end_development_mode()
    async with house.client(key) as client:
        yield client


async def limited(operator: Client, **limits: object) -> str:
    """A key of the lab `acme`, which has these limits."""
    made = await operator.ok("POST", "/keys", {"lab_id": "acme", "name": "ci"})
    await operator.ok("PATCH", "/labs/acme", {"limits": limits})
    return str(made["key"])


async def events(operator: Client) -> list[tuple[str, str]]:
    return [(each["action"], each["target"]) for each in (await operator.ok("GET", "/audit"))["data"]]


async def test_a_key_is_shown_once_works_and_ends(operator: Client, house: House) -> None:
    made = await operator.ok("POST", "/keys", {"lab_id": "acme", "name": "ci", "scopes": ["train"], "concurrency": 2})
    [listed] = [each for each in (await operator.ok("GET", "/keys"))["data"] if each["key_id"] == made["key_id"]]
    assert {**listed, "key": made["key"], "request_id": made["request_id"]} == made
    async with house.client(made["key"]) as client:
        await client.create()
        assert_error(await client.call("POST", "/evaluate", body()), 403, "insufficient_scope")
        revoked = await operator.ok("DELETE", f"/keys/{made['key_id']}")
        assert "revoked_at" in revoked
        assert_error(await client.call("GET", "/catalog"), 401, "unauthenticated")
    assert made["key"] not in house.logs.getvalue()
    assert (await operator.ok("GET", "/labs/acme"))["limits"] == {}


async def test_a_key_may_have_every_scope(operator: Client) -> None:
    made = await operator.ok("POST", "/keys", {"lab_id": "acme", "scopes": [scope.value for scope in Scope]})
    assert made["scopes"] == [scope.value for scope in Scope]


async def test_what_operators_do_is_in_the_audit_log(operator: Client) -> None:
    made = await operator.ok("POST", "/keys", {"lab_id": "acme"})
    await operator.ok("DELETE", f"/keys/{made['key_id']}")
    found = await events(operator)
    assert ("GET /audit", "/api/v1/audit") in found
    assert ("key.created", f"{made['key_id']} of acme for train score export label") in found
    assert ("key.revoked", f"{made['key_id']} of acme") in found
    assert ("lab.created", "acme") in found
    [made_it] = [each for each in (await operator.ok("GET", "/audit"))["data"] if each["action"] == "key.revoked"]
    assert (made_it["lab_id"], made_it["address"]) == ("mine", "127.0.0.1")
    pages: list[Json] = []
    path = "/audit?limit=3"
    while path:
        page = await operator.ok("GET", path)
        pages += page["data"]
        path = f"/audit?limit=3&cursor={page['next_cursor']}" if "next_cursor" in page else ""
    assert len({each["id"] for each in pages}) == len(pages) > 3
    assert_error(await operator.call("GET", "/audit?cursor=made-up"), 400, "invalid_cursor")


async def test_a_lab_sees_what_it_used_and_no_other_labs_use(operator: Client, house: House) -> None:
    key = await limited(operator, characters_per_day=10**9)
    async with house.client(key) as client:
        await client.say(await client.create(), "How did it happen?")
        await client.ok("POST", "/evaluate", body())
        used = await client.ok("GET", "/usage")
    assert used["limits"] == {"characters_per_day": 10**9}
    [today] = used["data"]
    assert (today["requests"], today["turns"], today["evaluations"]) == (4, 1, 1)
    assert today["characters"] > len("How did it happen?")
    assert (await operator.ok("GET", "/usage"))["data"][0]["turns"] == 0
    assert_error(await operator.call("GET", "/usage?days=0"), 400, "invalid_request")


async def test_a_budget_of_the_day_ends_at_midnight(operator: Client, house: House) -> None:
    async with house.client(await limited(operator, characters_per_day=1)) as client:
        await client.ok("POST", "/evaluate", body())
        refused = await client.call("POST", "/evaluate", body())
        assert_error(refused, 429, "compute_exhausted")
        house.clock.advance(timedelta(seconds=int(refused.headers["retry-after"])))
        await client.ok("POST", "/evaluate", body())


async def test_who_has_stored_all_it_may_stores_no_more_and_may_read(operator: Client, house: House) -> None:
    async with house.client(await limited(operator, storage_mb=0.0001)) as client:
        episode = await client.create()
        house.app.state.services.storage._measured.clear()
        assert_error(await client.call("POST", "/episodes", WHERE), 429, "storage_exhausted")
        await client.read(episode)


async def test_a_labs_data_is_deleted_and_nobody_elses(operator: Client, house: House) -> None:
    own = await operator.create()
    async with house.client(await limited(operator)) as client:
        episode = await client.create()
        await client.say(episode, "How did it happen?")
        deleted = (await operator.ok("DELETE", "/labs/acme/data"))["deleted"]
        assert deleted["episode"] == 1
        path = f"/episodes/{episode['episode_id']}"
        assert_error(await client.call("GET", path), 404, "episode_not_found")
        assert (await client.ok("GET", "/episodes"))["data"] == []
    await operator.read(own)
    assert ("data.deleted", "acme episode=1") in await events(operator)


async def test_what_was_said_without_a_key_is_a_labs_data_and_is_deleted(house: House) -> None:
    async with house.client() as anybody:
        await anybody.ok("POST", "/evaluate", body())
    boss = await house.key("mine", scopes=EVERY)
    house.end_development_mode()
    async with house.client(boss) as operator:
        assert (await operator.ok("DELETE", "/labs/development/data"))["deleted"] == {"evaluation": 1}
        assert ("lab.created", "development") in await events(operator)


async def test_conversations_older_than_a_lab_lets_be_kept_are_deleted(operator: Client, house: House) -> None:
    tenants = house.app.state.services.tenants
    async with house.client(await limited(operator, retention_days=7)) as client:
        await client.ok("POST", "/evaluate", body())
        house.clock.advance(timedelta(days=6))
        await client.ok("POST", "/evaluate", body())
        house.clock.advance(timedelta(days=2))
        assert await tenants.expire() == {"acme": 1}
        assert await tenants.expire() == {}


async def test_many_bad_keys_of_one_address_have_to_wait_and_good_ones_do_not(operator: Client, house: House) -> None:
    codes = []
    for number in range(MOST_PER_MINUTE + 2):
        async with house.client(f"lab_{'a' * 16}_{number:040}") as stranger:
            codes.append((await stranger.call("GET", "/catalog")).status_code)
    assert codes == [401] * MOST_PER_MINUTE + [429, 429]
    await operator.ok("GET", "/catalog")
    assert [action for action, _ in await events(operator)].count("keys.refused") == 1


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("POST", "/labs", {"lab_id": "Not A Lab"}, 400, "invalid_request"),
        ("POST", "/labs", {"lab_id": "mine"}, 409, "conflict"),
        ("PATCH", "/labs/nobody", {"name": "x"}, 404, "lab_not_found"),
        ("PATCH", "/labs/mine", {"limits": {"retention_days": 0}}, 400, "invalid_request"),
        ("DELETE", "/labs/nobody/data", None, 404, "lab_not_found"),
        ("POST", "/keys", {"lab_id": "acme", "collections": ["none"]}, 400, "invalid_request"),
        ("POST", "/keys", {"lab_id": "acme", "plan": "custom"}, 400, "invalid_request"),
        ("POST", "/keys", {"lab_id": "acme", "scopes": ["everything"]}, 400, "invalid_request"),
        ("DELETE", "/keys/unknown", None, 404, "key_not_found"),
    ],
)
async def test_what_cannot_be_done_is_said(
    operator: Client, method: str, path: str, sent: Json | None, status: int, code: str
) -> None:
    assert_error(await operator.call(method, path, sent), status, code)


async def test_the_list_of_keys_shows_when_each_was_last_used(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library) as house:
        text = await house.key("acme", scopes=EVERY)
        other = await house.key("acme")
        async with house.client(text) as client:
            await client.ok("GET", "/catalog")
            house.clock.advance(timedelta(minutes=5))
            shown = await client.ok("GET", "/keys")
        last = to_iso(house.clock.now())
    # A server that ends writes what it noted.
    async with running_house(data, matcher, library) as house, house.client(text) as client:
        later = await client.ok("GET", "/keys")
    ids = [key.split("_")[1] for key in (text, other)]
    assert [{each["key_id"]: each.get("last_used_at") for each in body["data"]} for body in (shown, later)] == [
        dict.fromkeys(ids),
        {ids[0]: last, ids[1]: None},
    ]
