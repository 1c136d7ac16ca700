"""What holds for every call: format, request ids, keys, limits, envelopes."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.api.credentials import NO_KEY, NOT_A_KEY, NOT_VALID
from reward_server.auth.lab import Plan
from reward_server.errors import JudgeFailed
from scenarios.library import Library
from tests.contract.house import OTHER, WHERE, Client, House, Json, assert_error, running_house

pytestmark = pytest.mark.one_house

EVERY_CALL = [
    ("GET", "/catalog", None),
    ("GET", "/collections", None),
    ("GET", "/collections/bike-shop", None),
    ("GET", "/collections/bike-shop/scenarios/flat-tyre", None),
    ("POST", "/episodes", WHERE),
    ("GET", "/episodes", None),
    ("GET", "/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa", None),
    ("DELETE", "/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa", None),
    ("POST", "/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa/turns", {"messages": [{"role": "user", "content": "Hi"}]}),
    ("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": "Hi"}]}),
    ("POST", "/batch/evaluate", {"items": []}),
    ("POST", "/rank", {**WHERE, "responses": []}),
    ("GET", "/calibrations", None),
    ("POST", "/compare", WHERE),
]


# --- request ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "body"), EVERY_CALL)
async def test_the_request_id_is_in_body_and_header(labs: Client, method: str, path: str, body: Any) -> None:
    response = await labs.call(method, path, body)
    content = response.json()
    request_id = content["request_id"] if response.status_code == 200 else content["data"]["request_id"]
    assert re.fullmatch(r"req_[a-z0-9]+", request_id)
    assert response.headers["x-request-id"] == request_id
    assert response.headers["content-type"] == "application/json"


async def test_every_request_has_an_id_of_its_own(labs: Client) -> None:
    headers = {"X-Request-ID": "req_mine"}
    ids = {(await labs.call("GET", "/catalog", headers=headers)).headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5
    assert "req_mine" not in ids


@pytest.mark.parametrize("path", ["/nope", "/../secrets", "/episodes/ep_x/turns/1", "//", "/catalog%00"])
async def test_an_unknown_route_is_404_in_the_envelope(labs: Client, path: str) -> None:
    assert_error(await labs.call("GET", path), 404, "not_found")


async def test_unknown_routes_outside_the_api_have_the_envelope_too(labs: Client) -> None:
    assert_error(await labs.http.get("/nowhere"), 404, "not_found")
    assert_error(await labs.http.get("/api"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/episodes", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("POST", "/catalog", {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/evaluate", {"POST", "OPTIONS"}),
        ("PATCH", "/episodes/ep_x", {"GET", "HEAD", "DELETE", "OPTIONS"}),
        ("TRACE", "/compare", {"POST", "OPTIONS"}),
    ],
)
async def test_a_wrong_method_is_405_and_says_which_are_right(
    labs: Client, method: str, path: str, allowed: set[str]
) -> None:
    response = await labs.call(method, path)
    assert_error(response, 405, "method_not_allowed")
    assert set(response.headers["allow"].split(", ")) == allowed


async def test_options_and_head_make_sense(labs: Client) -> None:
    options = await labs.call("OPTIONS", "/episodes")
    assert (options.status_code, options.content) == (204, b"")
    assert options.headers["x-request-id"]
    get, head = await labs.call("GET", "/catalog"), await labs.call("HEAD", "/catalog")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    assert (await labs.call("HEAD", "/nope")).status_code == 404


# --- keys -----------------------------------------------------------------------------------------


async def test_development_mode_needs_no_key(labs: Client) -> None:
    assert (await labs.call("GET", "/catalog")).status_code == 200
    assert (await labs.call("GET", "/catalog", headers={"Authorization": "Bearer lab_dummy"})).status_code == 200


REFUSALS = [
    (None, NO_KEY),
    ("", NOT_A_KEY),
    ("Bearer", NOT_A_KEY),
    ("Bearer ", NOT_A_KEY),
    ("Basic bGFicw==", NOT_A_KEY),
    ("Basic /w==", NOT_A_KEY),
    ("Basic no base64", NOT_A_KEY),
    ("lab_aaaaaaaaaaaaaaaa_" + "a" * 40, NOT_A_KEY),
    ("Basic dXNlcjpwYXNz", NOT_VALID),
    ("Bearer lab_", NOT_VALID),
    ("Bearer nonsense", NOT_VALID),
    ("Bearer lab_aaaaaaaaaaaaaaaa_" + "a" * 40, NOT_VALID),
    ("Bearer lab_aaaaaaaaaaaaaaaa_" + "a" * 39, NOT_VALID),
    ("Bearer " + "x" * 5000, NOT_VALID),
]


async def test_a_refusal_says_what_was_sent_and_nothing_about_the_keys_there_are(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with house.client() as client:
        for value, told in REFUSALS:
            headers = {} if value is None else {"Authorization": value}
            response = await client.call("GET", "/catalog", headers=headers)
            assert_error(response, 401, "unauthenticated")
            assert response.json()["message"] == told, value
            assert response.headers["www-authenticate"] == "Bearer"
            assert "x-ratelimit-limit" not in response.headers


async def test_revoked_and_expired_keys_are_unknown(house: House) -> None:
    revoked = await house.keys().create("acme")
    await house.keys().revoke(revoked.row.key_id)
    expired = await house.keys().create("acme", expires_in=timedelta(days=1))
    house.clock.advance(timedelta(days=2))
    house.end_development_mode()
    for made in (revoked, expired):
        async with house.client(made.text) as client:
            response = await client.call("GET", "/catalog")
            assert_error(response, 401, "unauthenticated")
            assert response.json()["message"] == NOT_VALID


async def test_every_call_needs_the_key(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with house.client() as client:
        answers = {(method, path): await client.call(method, path, body) for method, path, body in EVERY_CALL}
    assert [call for call, answer in answers.items() if answer.status_code != 401] == []
    for answer in answers.values():
        assert_error(answer, 401, "unauthenticated")


async def test_a_good_key_opens(house: House) -> None:
    async with house.client(await house.key()) as client:
        assert (await client.call("GET", "/catalog")).status_code == 200


async def test_a_key_may_be_the_password_of_the_address(house: House) -> None:
    """For clients that take nothing but an address: `http://labs:KEY@host`."""
    key = await house.key()
    house.end_development_mode()
    async with house.client() as client:
        assert_error(await client.call("GET", "/catalog"), 401, "unauthenticated")
        for auth in (("labs", key), ("", key)):
            assert (await client.call("GET", "/catalog", auth=auth)).status_code == 200
        assert_error(await client.call("GET", "/catalog", auth=(key, "")), 401, "unauthenticated")


async def test_one_changed_character_closes(house: House) -> None:
    key = await house.key()
    house.end_development_mode()
    changed = key[:-1] + ("a" if key[-1] != "a" else "b")
    async with house.client(changed) as client:
        assert_error(await client.call("GET", "/catalog"), 401, "unauthenticated")


# --- access to collections ------------------------------------------------------------------------

IN_A_COLLECTION = [
    ("GET", "/collections/front-desk", None),
    ("GET", "/collections/front-desk/scenarios/lost-key", None),
    ("POST", "/episodes", OTHER),
    ("POST", "/evaluate", {**OTHER, "messages": [{"role": "assistant", "content": "Hi"}]}),
    (
        "POST",
        "/compare",
        {
            **OTHER,
            "response_a": {"messages": [{"role": "assistant", "content": "Hi"}]},
            "response_b": {"messages": [{"role": "assistant", "content": "Ho"}]},
        },
    ),
]


@pytest.mark.parametrize(("method", "path", "body"), IN_A_COLLECTION)
async def test_a_collection_out_of_bounds_is_403(house: House, method: str, path: str, body: Any) -> None:
    async with house.client(await house.key(collections=["bike-shop"])) as client:
        assert_error(await client.call(method, path, body), 403, "forbidden")
    async with house.client(await house.key(collections=["bike-shop", "front-desk"])) as client:
        assert (await client.call(method, path, body)).status_code == 200


async def test_a_batch_item_out_of_bounds_fails_alone(house: House) -> None:
    message = [{"role": "assistant", "content": "Hi"}]
    items = [{"id": "in", **WHERE, "messages": message}, {"id": "out", **OTHER, "messages": message}]
    async with house.client(await house.key(collections=["bike-shop"])) as client:
        results = (await client.ok("POST", "/batch/evaluate", {"items": items}))["results"]
    assert [result["status"] for result in results] == ["success", "error"]
    assert results[1]["code"] == "forbidden"


async def test_the_catalog_shows_what_the_key_may_use(house: House) -> None:
    async with house.client(await house.key(collections=["front-desk"])) as client:
        for path in ("/catalog", "/collections"):
            assert [c["slug"] for c in (await client.ok("GET", path))["collections"]] == ["front-desk"]


async def test_an_episode_of_a_collection_out_of_bounds_is_403(house: House) -> None:
    all_of_it, part = await house.key(), await house.key(collections=["front-desk"])
    async with house.client(all_of_it) as one, house.client(part) as other:
        episode = await one.create()
        path = f"/episodes/{episode['episode_id']}"
        assert_error(await other.call("GET", path), 403, "forbidden")
        assert_error(await other.call("DELETE", path), 403, "forbidden")
        assert_error(await other.turn(episode, "Hello?"), 403, "forbidden")
        assert (await other.ok("GET", "/episodes"))["data"] == []


async def test_pages_count_only_what_the_key_may_use(house: House) -> None:
    async with (
        house.client(await house.key()) as one,
        house.client(await house.key(collections=["front-desk"])) as other,
    ):
        wanted = await one.ok("POST", "/episodes", OTHER)
        for _ in range(3):
            await one.create()
        page = await other.ok("GET", "/episodes?limit=1")
        assert [episode["episode_id"] for episode in page["data"]] == [wanted["episode_id"]]
        assert "next_cursor" not in page
        assert (await other.ok("GET", "/episodes?collection_slug=bike-shop"))["data"] == []


# --- two labs -------------------------------------------------------------------------------------


async def test_another_labs_episode_does_not_exist(house: House) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("globex")) as globex:
        episode = await acme.create()
        path = f"/episodes/{episode['episode_id']}"
        missing = await globex.call("GET", "/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa")
        for response in (
            await globex.call("GET", path),
            await globex.call("DELETE", path),
            await globex.turn(episode, "Hello?"),
            await globex.turn(episode, *(await acme.log(episode)), "Hello?"),
        ):
            data = assert_error(response, 404, "episode_not_found")
            assert response.json()["message"] == missing.json()["message"]
            assert set(data) == {"request_id", "code"}
        assert (await globex.ok("GET", "/episodes"))["data"] == []
        assert (await acme.read(episode))["status"] == "active"


async def test_two_keys_of_a_lab_share_its_episodes(house: House) -> None:
    async with house.client(await house.key("acme")) as one, house.client(await house.key("acme")) as other:
        episode = await one.create()
        assert (await other.say(episode, "How did it happen?"))["turn"] == 1
        assert (await one.read(episode))["turn"] == 1


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plan", "limit"), [(Plan.STANDARD, 60), (Plan.PREMIUM, 300)])
async def test_plans_have_their_limits(house: House, plan: Plan, limit: int) -> None:
    async with house.client(await house.key(plan=plan, rate_per_minute=None)) as client:
        response = await client.call("GET", "/catalog")
        assert response.headers["x-ratelimit-limit"] == str(limit)
        assert response.headers["x-ratelimit-remaining"] == str(limit - 1)
        assert response.headers["x-ratelimit-reset"].isdigit()


async def test_a_used_up_limit_is_429_with_retry_after(house: House) -> None:
    async with house.client(await house.key(plan=Plan.CUSTOM, rate_per_minute=3)) as client:
        left = [(await client.call("GET", "/catalog")).headers["x-ratelimit-remaining"] for _ in range(3)]
        refused = await client.call("GET", "/catalog")
    assert left == ["2", "1", "0"]
    assert_error(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert refused.headers["x-ratelimit-limit"] == "3"


async def test_keys_are_limited_one_by_one(house: House) -> None:
    spent = await house.key(plan=Plan.CUSTOM, rate_per_minute=1)
    fresh = await house.key(plan=Plan.CUSTOM, rate_per_minute=1)
    async with house.client(spent) as one, house.client(fresh) as other:
        assert (await one.call("GET", "/catalog")).status_code == 200
        assert (await one.call("GET", "/catalog")).status_code == 429
        assert (await other.call("GET", "/catalog")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa", None),
        ("POST", "/episodes", {}),
        ("GET", "/collections/unknown", None),
        ("GET", "/episodes?limit=0", None),
    ],
)
async def test_errors_after_the_limiter_have_its_headers(house: House, method: str, path: str, body: Any) -> None:
    async with house.client(await house.key(plan=Plan.STANDARD, rate_per_minute=None)) as client:
        response = await client.call(method, path, body)
    assert response.status_code in (400, 404)
    assert response.headers["x-ratelimit-limit"] == "60"


async def test_there_is_no_limit_in_development_mode(labs: Client) -> None:
    responses = [await labs.call("GET", "/catalog") for _ in range(70)]
    assert {response.status_code for response in responses} == {200}
    assert "x-ratelimit-limit" not in responses[0].headers


async def test_more_requests_than_can_be_worked_on_are_503(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, max_concurrency=1) as house, house.client() as labs:
        episode = await labs.create()
        house.matcher.close()
        turn = asyncio.create_task(labs.say(episode, "How did it happen?"))
        await house.matcher.somebody_waits()
        response = await labs.call("GET", "/catalog")
        assert_error(response, 503, "overloaded")
        assert int(response.headers["retry-after"]) >= 1
        assert (
            (await labs.call("GET", "/healthz")).status_code == (await labs.call("GET", "/readyz")).status_code == 200
        )
        house.matcher.open()
        assert (await turn)["turn"] == 1
        assert (await labs.call("GET", "/catalog")).status_code == 200


# --- envelopes ------------------------------------------------------------------------------------


async def test_an_unforeseen_error_is_a_500_that_tells_nothing(house: House, labs: Client) -> None:
    def explode(request: object) -> None:
        raise ZeroDivisionError("quokka-internal")

    house.failure = explode  # type: ignore[assignment]
    response = await labs.call("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": "Hi"}]})
    assert_error(response, 500, "internal_error")
    assert "quokka" not in response.text
    assert "ZeroDivision" not in response.text
    assert "quokka" not in house.logs.getvalue()
    assert "ZeroDivisionError" in house.logs.getvalue()


async def test_a_failing_judge_is_502(house: House, labs: Client) -> None:
    house.failure = lambda request: JudgeFailed()
    response = await labs.call("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": "Hi"}]})
    assert_error(response, 502, "judge_failed")


async def test_optional_fields_are_absent_not_null(labs: Client, episode: Json) -> None:
    bodies = [
        episode,
        await labs.say(episode, "How did it happen?"),
        await labs.read(episode),
        await labs.ok("GET", "/episodes"),
        await labs.ok("GET", "/catalog"),
        await labs.ok("POST", "/evaluate", {**WHERE, "messages": [{"role": "assistant", "content": "Hi"}]}),
    ]
    assert not [place for body in bodies for place in _nulls(body)]


def _nulls(value: object, path: str = "") -> list[str]:
    if value is None:
        return [path]
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in _nulls(inner, f"{path}/{key}")]
    if isinstance(value, list):
        return [place for inner in value for place in _nulls(inner, f"{path}/*")]
    return []


async def test_times_are_iso_8601_in_utc(labs: Client, episode: Json) -> None:
    moment = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
    body = await labs.read(episode)
    assert moment.fullmatch(body["created_at"])
    assert moment.fullmatch(body["expires_at"])
    assert body["expires_at"] == episode["expires_at"]
