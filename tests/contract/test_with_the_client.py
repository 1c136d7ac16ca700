"""The bundled client against the real server: both sides mean the same contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from reward_server.errors import JudgeFailed
from tests.contract.house import COLLECTION, SCENARIO, House
from trainer_client import AsyncLabsClient, BadRequest, NotFound, ProviderFailed, Unauthenticated
from trainer_client.batch import FailedItem, ScoredItem
from trainer_client.retry import RetryPolicy
from trainer_client.rollout import play_async

QUESTIONS = ("How did it happen?", "When do you need it back?", "Then I will put in a new tube.")


@pytest.fixture
async def client(house: House) -> AsyncIterator[AsyncLabsClient]:
    key = await house.key()
    house.end_development_mode()
    transport = httpx2.ASGITransport(app=house.app)
    policy = RetryPolicy(attempts=1)
    async with AsyncLabsClient("http://localhost", key, transport=transport, retry=policy) as made:
        yield made


def asks_in_turn(messages: Sequence[dict[str, str]]) -> str:
    """An agent that has three questions."""
    return QUESTIONS[sum(message["role"] == "assistant" for message in messages) % 3]


async def test_many_episodes_at_once(client: AsyncLabsClient) -> None:
    rollouts = await play_async(client, asks_in_turn, COLLECTION, SCENARIO, seeds=range(6), max_turns=3, concurrency=6)
    assert len(rollouts.rollouts) == 6
    for rollout in rollouts.rollouts:
        assert rollout.ok, rollout.error
        assert rollout.turns == 3
        evaluated = await client.evaluate(COLLECTION, SCENARIO, rollout.messages)
        assert evaluated.reward == rollout.reward > 0


async def test_catalog_batch_and_compare(client: AsyncLabsClient) -> None:
    catalog = await client.catalog()
    assert [collection.slug for collection in catalog.collections] == [COLLECTION, "front-desk"]
    good = [{"role": "assistant", "content": "How did it happen?"}, {"role": "user", "content": "I rode over glass."}]
    bad = [{"role": "assistant", "content": "Buy a new bike."}]
    where = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO}
    items = [{"id": str(i), **where, "messages": good} for i in range(130)]
    outcome = await client.batch_evaluate([*items, {"id": "none", **where, "messages": []}])
    assert len(outcome.results) == 131
    assert isinstance(outcome.results[0], ScoredItem)
    failed = outcome.results[-1]
    assert isinstance(failed, FailedItem)
    assert failed.code == "invalid_request"
    compared = await client.compare(COLLECTION, SCENARIO, good, bad)
    assert compared.margin >= 0
    group = await client.rank(COLLECTION, SCENARIO, {"bad": bad, "good": good, "twin": good})
    assert [(member.id, member.rank) for member in group.results] == [("bad", 3), ("good", 1), ("twin", 1)]
    assert group.relative
    assert group.results[1].score == compared.reward_a


async def test_errors_are_typed(client: AsyncLabsClient, house: House) -> None:
    with pytest.raises(NotFound):
        await client.create_episode(COLLECTION, "unknown")
    with pytest.raises(BadRequest):
        await client.create_episode(COLLECTION, SCENARIO, max_turns=50)
    house.failure = lambda request: JudgeFailed()
    with pytest.raises(ProviderFailed):
        await client.evaluate(COLLECTION, SCENARIO, [{"role": "assistant", "content": "Hi"}])
    transport = httpx2.ASGITransport(app=house.app)
    async with AsyncLabsClient("http://localhost", "lab_wrong", transport=transport) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.catalog()


async def test_preferences_from_comparison_to_file(client: AsyncLabsClient) -> None:
    opening = {"role": "user", "content": "Hello, my bike has a flat tyre.\u2028It is new."}
    sides: list[Any] = [
        [opening, {"role": "assistant", "content": text}] for text in ("How did it happen?", "Buy a new bike.")
    ]
    compared = await client.compare(COLLECTION, SCENARIO, *sides)
    said = await client.prefer("a", comparison_id=compared.comparison_id, margin=0.5, labeller="rater-7")
    pair = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO, "messages_a": sides[1], "messages_b": sides[0]}
    own = await client.prefer("b", margin=0.5, **pair)
    listed = [each.id async for each in client.preferences(limit=1)]
    assert sorted(listed) == sorted([said.id, own.id, compared.comparison_id])
    manifest = await client.preference_manifest()
    file = await client.export_preferences(until=manifest.until)
    assert file.sha256 == manifest.sha256
    assert [(row.chosen, row.margin) for row in file.rows] == [(sides[0][1:], 0.5)]
    assert await client.export_preferences("openai", source="episodes") == type(file)(rows=[], text="")
    with pytest.raises(BadRequest):
        await client.prefer("a", comparison_id=compared.comparison_id, messages_a=sides[0])


async def test_a_webhook_from_its_secret_to_a_message_that_is_sent_again(client: AsyncLabsClient) -> None:
    hook = await client.add_webhook("https://8.8.8.8/labs", events=["job.finished"])
    assert hook.secret.startswith("whsec_")
    sent = await client.test_webhook(hook.webhook_id)
    assert [each.webhook_id async for each in client.webhooks()] == [hook.webhook_id]
    assert [each.message_id async for each in client.webhook_deliveries(hook.webhook_id)] == [sent.message_id]
    assert (await client.resend_delivery(hook.webhook_id, sent.message_id)).state == "pending"
    assert (await client.get_webhook(hook.webhook_id)).events == ["job.finished"]
    await client.delete_webhook(hook.webhook_id)
    with pytest.raises(NotFound):
        await client.get_webhook(hook.webhook_id)


async def test_an_agent_from_its_endpoint_to_the_leaderboard(client: AsyncLabsClient) -> None:
    agent = await client.agents.add("Anna", "https://8.8.8.8/v1", "anna-8b", api_key="sk-anna", max_tokens=64)
    assert (agent.has_api_key, agent.max_tokens) == (True, 64)
    assert [each.agent_id async for each in client.agents.list()] == [agent.agent_id]
    changed = await client.agents.change(agent.agent_id, {"name": "Berta", "max_tokens": None})
    assert (changed.name, changed.max_tokens, changed.has_api_key) == ("Berta", None, True)
    assert (await client.agents.get(agent.agent_id)).name == "Berta"
    job = await client.agents.evaluate(agent.agent_id, COLLECTION, seeds=[1, 2])
    assert (job.type, job.counts.total) == ("evaluate_agent", 2)
    await client.jobs.cancel(job.job_id)
    board = await client.agents.leaderboard(COLLECTION)
    assert (board.data, board.confidence) == ([], 0.95)
    await client.agents.delete(agent.agent_id)
    with pytest.raises(NotFound):
        await client.agents.chat(agent.agent_id, [{"role": "user", "content": "Hello."}])
    with pytest.raises(NotFound):
        await client.agents.complete(agent.agent_id, [{"role": "user", "content": "Hello."}], temperature=0.5)
