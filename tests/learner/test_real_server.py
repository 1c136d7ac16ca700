"""The learner's rollouts against the real app: what was trained on is what was scored."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from learner.config import read
from learner.generate.hf import HfGenerator
from learner.rollout import RolloutCollector, RolloutStage
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.stages import open_stages
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from scenarios.library import load_library
from tests.learner.small import policy, tokenizer
from trainer_client import AsyncLabsClient
from trainer_client.chat.tokens import Renderer

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"


@pytest.mark.slow
async def test_the_reward_of_a_trajectory_is_that_of_the_text_its_tokens_say(tmp_path: Path) -> None:
    words = tokenizer()
    renderer = Renderer(words)
    app = create_app(Settings(data=tmp_path), ports=Ports(library=load_library(COLLECTIONS), own_process=False))
    stage = RolloutStage("bike-shop", "flat-tyre", max_turns=3)
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), AsyncLabsClient("http://localhost", "", transport=transport) as client:
        generator = HfGenerator(policy(words, spread=3.0), max_tokens=6)
        collected = await RolloutCollector(client, generator, renderer, stage).collect([1, 2], 2, (0,))
        assert collected.errored == 0
        for trajectory in collected.trajectories:
            said = [renderer.spoken(list(each.ids)).text for each in trajectory.segments if each.sampled]
            episode = await client.get_episode(trajectory.episode_id)
            assert [message.content for message in episode.messages[1::2]] == said
            assert tuple(episode.rewards) == trajectory.turn_rewards
            evaluated = await client.evaluate(stage.collection, stage.scenario, episode.messages)
            assert evaluated.reward == trajectory.reward


@pytest.mark.parametrize("lost", ["answer", "request"])
@pytest.mark.slow
async def test_turns_one_by_one_and_together_are_the_same_to_the_last_bit(lost: str, tmp_path: Path) -> None:
    """Whether the turns of a refused request were played (only its answer is lost) or not."""
    words = tokenizer()
    app = create_app(Settings(data=tmp_path), ports=Ports(library=load_library(COLLECTIONS), own_process=False))
    stage = RolloutStage("bike-shop", "flat-tyre", max_turns=3)

    class Losing(httpx2.ASGITransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if not request.url.path.endswith("/batch/turns"):
                return await super().handle_async_request(request)
            if lost == "answer":
                await (await super().handle_async_request(request)).aread()
            return httpx2.Response(413, json={"message": "No.", "data": {"request_id": "req_1", "code": "too_large"}})

    async def played(transport: httpx2.AsyncBaseTransport) -> list[object]:
        async with AsyncLabsClient("http://localhost", "", transport=transport) as client:
            generator = HfGenerator(policy(words, spread=3.0), max_tokens=6)
            collected = await RolloutCollector(client, generator, Renderer(words), stage).collect([1, 2], 2, (0,))
        assert collected.errored == 0
        return [(each.segments, each.turn_rewards, each.scores) for each in collected.trajectories]

    async with app.router.lifespan_context(app):
        assert await played(httpx2.ASGITransport(app=app)) == await played(Losing(app=app))


@pytest.mark.slow
async def test_training_meets_the_cases_of_its_split_alone_and_evaluations_those_of_theirs(tmp_path: Path) -> None:
    words = tokenizer()
    library = load_library(only=["customer-support/charged-twice"])
    app = create_app(Settings(data=tmp_path), ports=Ports(library=library, own_process=False))
    settings = read({"server": {"collection": "customer-support", "scenario": "charged-twice", "max_turns": 1}})
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), AsyncLabsClient("http://localhost", "", transport=transport) as client:
        stages = await open_stages(settings, client)
        assert stages.told() is not None
        rollouts = RolloutCollector(client, HfGenerator(policy(words), max_tokens=4), Renderer(words), stages.of(0))
        for split, stage, first in (("train", stages.of(0), 0), ("eval", stages.of(0, held_out=True), 2**40)):
            assert first in (0, FIRST_HELD_OUT_SEED)
            found = await rollouts.collect(range(first, first + 12), 1, (0,), stages=[stage] * 12)
            assert found.errored == 0
            met = set()
            for each in found.trajectories:
                opening = (await client.get_episode(each.episode_id)).messages[0].content
                met.add(library.vault.heard("customer-support", "charged-twice", opening).split)
            assert met == {split}
