"""`batch_episodes` and `batch_turns`: groups started at once, one step of many conversations at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.trainer_client.scripted_server import envelope, turn_answer
from trainer_client import AsyncLabsClient, BadRequest, LabsClient, MalformedAnswer, NotFound, RetryPolicy, Unavailable
from trainer_client.wire import FailedTurn, Message, PlayedTurn, TurnItem

ONCE = RetryPolicy(attempts=1)
Handler = Callable[[httpx2.Request], httpx2.Response]


def by_sync(handler: Handler, name: str, *args: Any, **options: Any) -> Any:
    with LabsClient("http://lab", "k", retry=ONCE, transport=httpx2.MockTransport(handler)) as client:
        return getattr(client, name)(*args, **options)


def by_async(handler: Handler, name: str, *args: Any, **options: Any) -> Any:
    async def run() -> Any:
        transport = httpx2.MockTransport(handler)
        async with AsyncLabsClient("http://lab", "k", retry=ONCE, transport=transport) as client:
            return await getattr(client, name)(*args, **options)

    return asyncio.run(run())


@pytest.fixture(params=[by_sync, by_async], ids=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    driver: Callable[..., Any] = request.param
    return driver


class Doors:
    """Starts as many episodes as asked for; a turn of an episode whose name ends in 3 fails."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.refuse: set[str] = set()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        assert request.headers["idempotency-key"]
        if request.url.path == "/api/v1/batch/episodes":
            return httpx2.Response(
                200, json={"episodes": self.started(body.get("count") or len(body["items"])), "request_id": "req_1"}
            )
        assert request.url.path == "/api/v1/batch/turns"
        if self.refuse & {item["episode_id"] for item in body["items"]}:
            return httpx2.Response(503, json=envelope("overloaded", "Later."))
        return httpx2.Response(200, json={"results": [*map(self.turn, body["items"])], "request_id": "req_1"})

    @staticmethod
    def started(count: int) -> list[dict[str, Any]]:
        return [
            {
                "episode_id": f"ep_{number}",
                "initial_observation": {"role": "user", "content": "hi"},
                "tools": [],
                "max_turns": 9,
                "expires_at": "2026-01-02T00:00:00Z",
            }
            for number in range(count)
        ]

    @staticmethod
    def turn(item: dict[str, Any]) -> dict[str, Any]:
        name = item["episode_id"]
        if name.endswith("3"):
            return {"episode_id": name, "status": "error", "message": "The judge failed.", "code": "judge_failed"}
        return {**turn_answer(), "episode_id": name, "status": "success", "scoring_version": "sv_1"}


EPISODE = {"collection_slug": "c", "scenario_slug": "s"}


def steps(count: int) -> list[dict[str, Any]]:
    said = [{"role": "assistant", "content": "hello"}]
    return [{"episode_id": f"ep_{number}", "messages": said} for number in range(count)]


def test_a_group_is_one_request(call: Any) -> None:
    doors = Doors()
    found = call(doors, "batch_episodes", "c", "s", 4, seed=7, max_turns=3, observation_role="user")
    assert [each.episode_id for each in found] == ["ep_0", "ep_1", "ep_2", "ep_3"]
    config = {"seed": 7, "max_turns": 3, "observation_role": "user"}
    expected = {"collection_slug": "c", "scenario_slug": "s", "count": 4, "score_turns": True, "config": config}
    assert doors.bodies == [expected]
    with pytest.raises(BadRequest, match="count"):
        call(doors, "batch_episodes", "c", "s", 0)


def test_episodes_that_differ_are_one_request(call: Any) -> None:
    doors = Doors()
    items = [{"collection_slug": "c", "scenario_slug": "s", "config": {"seed": seed}} for seed in (3, 4)]
    assert [each.episode_id for each in call(doors, "start_episodes", items)] == ["ep_0", "ep_1"]
    assert doors.bodies == [{"items": [{**item, "score_turns": True} for item in items], "score_turns": True}]
    with pytest.raises(BadRequest, match="items"):
        call(doors, "start_episodes", [])


def test_each_request_of_many_turns_has_its_own_key_and_keeps_it(call: Any) -> None:
    keys: list[str] = []
    doors = Doors()

    def handler(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["idempotency-key"])
        return doors(request)

    for _ in range(2):
        call(handler, "batch_turns", steps(101), idempotency_key="mine")
    assert sorted(keys) == ["mine-0", "mine-0", "mine-1", "mine-1"]


def test_a_step_of_many_episodes_is_in_order_and_a_failure_is_one_items(call: Any) -> None:
    item = TurnItem(episode_id="ep_9", messages=[Message(role="assistant", content="bye")], terminate=True)
    doors = Doors()
    found = call(doors, "batch_turns", [*steps(4), item])
    assert [each.episode_id for each in found] == ["ep_0", "ep_1", "ep_2", "ep_3", "ep_9"]
    assert all(isinstance(each, PlayedTurn) for each in (*found[:3], found[4]))
    bad = found[3]
    assert isinstance(bad, FailedTurn)
    assert (bad.code, hasattr(bad, "reward")) == ("judge_failed", False)
    assert doors.bodies[0]["items"][4]["terminate"] is True


def test_more_than_a_hundred_turns_are_several_requests_and_one_that_fails_costs_its_own(call: Any) -> None:
    doors = Doors()
    doors.refuse = {"ep_100"}
    found = call(doors, "batch_turns", steps(230))
    assert sorted(len(body["items"]) for body in doors.bodies) == [30, 100, 100]
    assert [each.episode_id for each in found] == [f"ep_{number}" for number in range(230)]
    assert {each.code for each in found[100:200]} == {"overloaded"}
    doors.refuse = {"ep_0"}
    with pytest.raises(Unavailable):
        call(doors, "batch_turns", steps(5))


def test_a_refusal_of_the_whole_is_raised(call: Any) -> None:
    refusal = httpx2.Response(404, json=envelope("scenario_not_found"))
    for name, args in [
        ("batch_episodes", ("c", "no", 2)),
        ("batch_turns", (steps(2),)),
        ("start_episodes", ([EPISODE],)),
    ]:
        with pytest.raises(NotFound):
            call(lambda request: refusal, name, *args)


def test_an_answer_about_other_episodes_is_not_taken(call: Any) -> None:
    mixed = {"results": [Doors.turn(item) for item in reversed(steps(2))], "request_id": "req_1"}
    with pytest.raises(MalformedAnswer, match="other episodes"):
        call(lambda request: httpx2.Response(200, json=mixed), "batch_turns", steps(2))
