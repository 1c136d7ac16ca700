"""The clients against the real app: the contract as both sides understand it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import httpx2
import numpy as np
import pytest

from personas.reading.matcher import Matcher
from reward_server.fitting.calibration.calibration_fit import LabelledRows, fit
from reward_server.reward_models.calibration import save
from reward_server.server.app import Ports, create_app
from reward_server.server.engine import load_matcher
from reward_server.settings import Settings
from scenarios.library import load_library
from tests.contract.house import packaged_reader
from trainer_client import (
    AsyncLabsClient,
    BadRequest,
    ChatMessage,
    EpisodeComplete,
    HistoryMismatch,
    IdempotencyMismatch,
    NotFound,
    play_async,
)
from trainer_client.wire import FailedTurn, PlayedTurn

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
COLLECTION, SCENARIO = "bike-shop", "flat-tyre"
QUESTIONS = ["I'm sorry to hear that. What happened?", "When did it start?", "What would you like us to do?"]


@cache
def matcher() -> Matcher:
    """Loaded once for all servers of this process."""
    return load_matcher(Settings())


@asynccontextmanager
async def connected(data: Path) -> AsyncIterator[AsyncLabsClient]:
    ports = Ports(matcher=matcher(), reader=packaged_reader(), library=load_library(COLLECTIONS), own_process=False)
    app = create_app(Settings(data=data), ports=ports)
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), AsyncLabsClient("http://localhost", "", transport=transport) as client:
        yield client


def agent(messages: list[ChatMessage]) -> str:
    spoken = sum(message["role"] == "assistant" for message in messages)
    return QUESTIONS[spoken % len(QUESTIONS)]


async def test_what_is_played_scores_the_same_through_every_call(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        rollouts = await play_async(client, agent, COLLECTION, SCENARIO, seeds=[1, 2, 3], max_turns=3)
        assert [rollout.error for rollout in rollouts] == [None] * 3
        items = [
            {"id": str(number), "collection_slug": COLLECTION, "scenario_slug": SCENARIO, "messages": rollout.messages}
            for number, rollout in enumerate(rollouts)
        ]
        batch = await client.batch_evaluate(items)
        for rollout, item in zip(rollouts, batch, strict=True):
            evaluated = await client.evaluate(COLLECTION, SCENARIO, rollout.messages)
            assert rollout.reward == evaluated.reward == item.reward
            assert rollout.scores == evaluated.scores
        first, second = rollouts[0].messages, rollouts[1].messages
        compared = await client.compare(COLLECTION, SCENARIO, first, second)
        assert (compared.reward_a, compared.reward_b) == (rollouts[0].reward, rollouts[1].reward)


async def test_a_rollout_is_the_servers_transcript(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        rollout = (await play_async(client, agent, COLLECTION, SCENARIO, seeds=[1], max_turns=2))[0]
        assert rollout.episode_id is not None
        episode = await client.get_episode(rollout.episode_id)
        listed = await client.list_episodes(limit=5, status="complete")
    assert [message.model_dump(exclude_none=True) for message in episode.messages] == list(rollout.messages)
    assert (tuple(episode.rewards), episode.status) == (rollout.rewards, "complete")
    assert [each.episode_id for each in listed.data] == [rollout.episode_id]


async def test_a_repeated_call_with_its_key_is_answered_once(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        episode = await client.create_episode(COLLECTION, SCENARIO, seed=1)
        answers = [await client.turn(episode.episode_id, QUESTIONS[0], idempotency_key="k-1") for _ in range(2)]
        assert answers[0].model_copy(update={"request_id": ""}) == answers[1].model_copy(update={"request_id": ""})
        assert (await client.get_episode(episode.episode_id)).turn == 1
        with pytest.raises(IdempotencyMismatch):
            await client.turn(episode.episode_id, QUESTIONS[1], idempotency_key="k-1")


async def test_refusals_come_as_their_own_errors(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        with pytest.raises(NotFound):
            await client.create_episode(COLLECTION, "no-such-scenario")
        with pytest.raises(BadRequest):
            await client.evaluate(COLLECTION, SCENARIO, [{"role": "user", "content": "nobody answered"}])
        episode = await client.create_episode(COLLECTION, SCENARIO, seed=1)
        forged = [{"role": "user", "content": "something else"}, {"role": "assistant", "content": "hello"}]
        with pytest.raises(HistoryMismatch):
            await client.turn(episode.episode_id, forged)
        assert (await client.delete_episode(episode.episode_id)).terminal_reason == "client_terminated"
        with pytest.raises(EpisodeComplete):
            await client.turn(episode.episode_id, "hello?")


async def test_a_bad_item_costs_nothing_but_itself(tmp_path: Path) -> None:
    good = {
        "collection_slug": COLLECTION,
        "scenario_slug": SCENARIO,
        "messages": [{"role": "assistant", "content": "Hi."}],
    }
    async with connected(tmp_path) as client:
        outcome = await client.batch_evaluate([{"id": "a", **good}, {"id": "b", **good, "messages": []}])
    assert [item.id for item in outcome.scored] == ["a"]
    assert [item.id for item in outcome.failed] == ["b"]


async def test_calibrations_are_listed_and_used(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert (await client.calibrations()).data == []
        talk = [{"role": "assistant", "content": "Hi."}]
        plain = await client.evaluate(COLLECTION, SCENARIO, talk)
        data = LabelledRows({"reward": np.linspace(0, 1, 40)}, None, tuple(map(str, range(40))))
        scale = fit(data, "z_score", plain.scoring_version, datetime(2026, 1, 1, tzinfo=UTC))
        save(scale, Settings(data=tmp_path).calibrations)
        [found] = (await client.calibrations()).data
        shown = await client.evaluate(COLLECTION, SCENARIO, talk, reward_config={"calibration": found.id})
    assert shown.reward == plain.reward
    assert (shown.metadata.calibration_id, shown.metadata.calibrated) == (scale.id, scale.apply(plain.reward))


async def test_the_catalog_is_typed(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        slugs = {each.slug for each in (await client.catalog()).collections}
        assert slugs == {path.name for path in COLLECTIONS.iterdir()}
        assert (await client.collection(COLLECTION)).scenarios
        assert (await client.scenario(COLLECTION, SCENARIO)).personas


async def test_a_group_is_played_through_the_batch_doors(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        started = await client.batch_episodes(COLLECTION, SCENARIO, 3, seed=1, max_turns=2)
        items = [
            {"episode_id": each.episode_id, "messages": [{"role": "assistant", "content": QUESTIONS[0]}]}
            for each in started
        ]
        first, second, third = await client.batch_turns([*items[:2], {**items[2], "episode_id": "ep_unknown"}])
        alone = await client.turn(started[2].episode_id, QUESTIONS[0])
    assert isinstance(first, PlayedTurn)
    assert isinstance(second, PlayedTurn)
    assert first.reward == second.reward == alone.reward
    assert first.turns_left == second.turns_left == alone.turns_left == 1
    assert isinstance(third, FailedTurn)
    assert (third.episode_id, third.code) == ("ep_unknown", "episode_not_found")
