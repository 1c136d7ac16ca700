"""`batch_evaluate`: any number of items, in order, and a failure that never becomes a number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from trainer_client import (
    AsyncLabsClient,
    BatchOutcome,
    FailedItem,
    LabsClient,
    RetryPolicy,
    ScoredItem,
    Unauthenticated,
    Unavailable,
    Unscored,
)
from trainer_client.wire import BatchItem, Message

ONCE = RetryPolicy(attempts=1)
Handler = Callable[[httpx2.Request], httpx2.Response]


def items(count: int) -> list[dict[str, Any]]:
    said = [{"role": "assistant", "content": "hello"}]
    return [{"id": f"i{n}", "collection_slug": "c", "scenario_slug": "s", "messages": said} for n in range(count)]


def scored(name: str, reward: float) -> dict[str, Any]:
    metadata = {"scenario_name": "S", "evaluation_time_ms": 1.0, "judge": "state"}
    return {"id": name, "status": "success", "evaluation_id": f"ev_{name}", "reward": reward, "metadata": metadata}


class Scorer:
    """Answers a batch: odd items fail; reward is the item's number over 1000."""

    def __init__(self, limit: int = 100) -> None:
        self.sizes: list[int] = []
        self.limit = limit
        self.versions = ["sv_1"]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        sent = json.loads(request.content)["items"]
        if len(sent) > self.limit:
            return httpx2.Response(413, json={"message": "big", "data": {"request_id": "r", "code": "too_large"}})
        self.sizes.append(len(sent))
        results = []
        for item in sent:
            number = int(item["id"][1:])
            if number % 2:
                results.append({"id": item["id"], "status": "error", "message": "judge broke", "code": "judge_failed"})
            else:
                results.append(scored(item["id"], number / 1000))
        version = self.versions[min(len(self.sizes), len(self.versions)) - 1]
        answer = {"results": results, "scoring_version": version, "total_time_ms": 2.0, "request_id": "req_1"}
        return httpx2.Response(200, json=answer)


def run_sync(handler: Handler, given: list[Any]) -> BatchOutcome:
    with LabsClient("http://lab", "k", retry=ONCE, transport=httpx2.MockTransport(handler)) as client:
        return client.batch_evaluate(given)


def run_async(handler: Handler, given: list[Any]) -> BatchOutcome:
    async def run() -> BatchOutcome:
        transport = httpx2.MockTransport(handler)
        async with AsyncLabsClient("http://lab", "k", retry=ONCE, transport=transport) as client:
            return await client.batch_evaluate(given)

    return asyncio.run(run())


@pytest.fixture(params=[run_sync, run_async], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Callable[[Handler, list[Any]], BatchOutcome]:
    runner: Callable[[Handler, list[Any]], BatchOutcome] = request.param
    return runner


def test_more_than_a_hundred_items_come_back_in_order(run: Any) -> None:
    scorer = Scorer()
    outcome = run(scorer, items(250))
    assert scorer.sizes == [100, 100, 50]
    assert [result.id for result in outcome] == [f"i{n}" for n in range(250)]
    assert len(outcome.scored) == len(outcome.failed) == 125
    assert outcome.total_time_ms == 6.0
    assert outcome.scoring_version == "sv_1"


def test_an_error_item_has_no_reward(run: Any) -> None:
    outcome = run(Scorer(), items(2))
    good, bad = outcome[0], outcome[1]
    assert isinstance(good, ScoredItem)
    assert isinstance(bad, FailedItem)
    assert (good.reward, bad.code, bad.message) == (0.0, "judge_failed", "judge broke")
    with pytest.raises(Unscored, match="judge broke"):
        _ = bad.reward
    with pytest.raises(Unscored):
        sum(item.reward for item in outcome)


def test_a_body_that_is_too_large_is_halved(run: Any) -> None:
    scorer = Scorer(limit=30)
    outcome = run(scorer, items(101))
    assert [result.id for result in outcome] == [f"i{n}" for n in range(101)]
    assert max(scorer.sizes) <= 30


def test_one_item_that_is_too_large_alone_is_an_error_item(run: Any) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        return Scorer(limit=0 if "i1" in {item["id"] for item in json.loads(request.content)["items"]} else 9)(request)

    outcome = run(handler, items(3))
    assert [result.id for result in outcome.scored] == ["i0", "i2"]
    assert outcome.failed[0].code == "too_large"


def test_a_part_that_stays_unavailable_costs_only_its_items(run: Any) -> None:
    scorer = Scorer()

    def handler(request: httpx2.Request) -> httpx2.Response:
        if json.loads(request.content)["items"][0]["id"] == "i100":
            return httpx2.Response(503, json={"message": "busy", "data": {"request_id": "r", "code": "overloaded"}})
        return scorer(request)

    outcome = run(handler, items(150))
    assert len(outcome.scored) == 50
    assert {item.code for item in outcome.results[100:] if isinstance(item, FailedItem)} == {"overloaded"}


def test_if_every_part_fails_the_failure_is_raised(run: Any) -> None:
    envelope = {"message": "busy", "data": {"request_id": "r", "code": "overloaded"}}
    with pytest.raises(Unavailable):
        run(lambda request: httpx2.Response(503, json=envelope), items(150))


def test_a_refused_key_is_raised_not_spread_over_items(run: Any) -> None:
    envelope = {"message": "who", "data": {"request_id": "r", "code": "unauthenticated"}}
    with pytest.raises(Unauthenticated):
        run(lambda request: httpx2.Response(401, json=envelope), items(150))


def test_rewards_of_two_scoring_versions_are_not_called_one(run: Any) -> None:
    scorer = Scorer()
    scorer.versions = ["sv_1", "sv_2"]
    outcome = run(scorer, items(150))
    assert outcome.scoring_versions == {"sv_1", "sv_2"}
    with pytest.raises(Unscored, match="sv_1, sv_2"):
        _ = outcome.scoring_version


def test_no_items_is_no_request(run: Any) -> None:
    scorer = Scorer()
    assert len(run(scorer, [])) == 0
    assert scorer.sizes == []


def test_typed_items_are_sent_as_the_contract_writes_them(run: Any) -> None:
    bodies: list[Any] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return Scorer()(request)

    said = [Message(role="assistant", content="hello")]
    run(handler, [BatchItem(id="i0", collection_slug="c", scenario_slug="s", messages=said)])
    assert bodies[0]["items"][0] == {
        "id": "i0",
        "collection_slug": "c",
        "scenario_slug": "s",
        "messages": [{"role": "assistant", "content": "hello"}],
        "agent_role": "assistant",
    }
